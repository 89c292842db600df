"""The exact kernel Gaussian process, as in any textbook: the reference for the tests."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve


class ExactProcess:
    """Zero prior mean, covariance signal^2 k, independent noise of variance rho^2."""

    def __init__(
        self, kernel: Callable, points, rewards, *, signal_variance: float, noise_variance: float
    ):
        self.kernel, self.points, self.signal_variance = kernel, points, signal_variance
        covariance = signal_variance * kernel(points, points)
        self.factor = cho_factor(covariance + noise_variance * np.eye(len(points)), lower=True)
        self.weights = cho_solve(self.factor, rewards)

    def mean(self, x):
        """k(x, X) (K + rho^2 I)^-1 y."""
        return self.signal_variance * self.kernel(x, self.points) @ self.weights

    def covariance(self, x):
        """k(x, x') - k(x, X) (K + rho^2 I)^-1 k(X, x')."""
        cross = self.signal_variance * self.kernel(x, self.points)
        prior = self.signal_variance * self.kernel(x, x)
        return prior - cross @ cho_solve(self.factor, cross.T)
