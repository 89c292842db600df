"""What has been learnt: a Gaussian over the coefficients theta of f(x) = theta phi(x).

In information form, where observations only ever add:

    precision = I / signal^2 + sum of A^T R^-1 A        information = sum of A^T R^-1 v

for noisy linear observations v = A theta + noise, Cov(noise) = R. The exact statistics of
rounds are the case A = S, R = rho^2 S, which adds S / rho^2 and u / rho^2 and never needs S
to be invertible. (The paper's posterior with lambda = rho^2 / signal^2; docs/errata.)
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from discreet import checks
from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.features.maps import FeatureMap


@dataclass(frozen=True, eq=False)
class Posterior:
    """N(mean, precision^-1) over the coefficients of a feature map.

    >>> from discreet.features.choose import choose
    >>> from discreet.features.kernels import SquaredExponential
    >>> features = choose(SquaredExponential(0.3), widths=np.ones(1), diameter=1.0)
    >>> prior = Posterior.prior(features, signal_variance=1.0)
    >>> x = np.array([[0.5]])
    >>> phi = features(x)
    >>> after = prior.absorb(phi.T @ phi, phi[0] * 0.8, noise_variance=0.01)
    >>> round(float(after.mean(x)[0]), 3), round(float(after.variance(x)[0]), 4)
    (0.792, 0.0099)
    """

    features: FeatureMap
    precision: Floats
    information: Floats

    @classmethod
    def prior(cls, features: FeatureMap, signal_variance: float) -> "Posterior":
        """N(0, signal_variance I): f is a Gaussian process with the approximate kernel."""
        m = features.dimension
        return cls(features, np.eye(m) / signal_variance, np.zeros(m))

    def observe(self, design: Floats, values: Floats, covariance: Floats) -> "Posterior":
        """Learn from v = A theta + noise with a positive definite noise covariance R."""
        m = self.features.dimension
        if design.ndim != 2 or design.shape[1] != m:
            raise InvalidArgument("design", f"a matrix with {m} columns")
        if values.shape != design.shape[:1] or covariance.shape != 2 * design.shape[:1]:
            raise InvalidArgument("values, covariance", "the design's number of rows")
        _check_finite(design=design, values=values, covariance=covariance)
        rounding = 1e-12 * float(np.abs(covariance).max(initial=0.0))
        if not np.allclose(covariance, covariance.T, rtol=1e-9, atol=rounding):
            raise InvalidArgument("covariance", "a symmetric matrix")
        try:
            weighted = cho_solve(cho_factor(covariance, lower=True), design)
        except np.linalg.LinAlgError:
            raise InvalidArgument("covariance", "a positive definite matrix") from None
        return Posterior(
            self.features,
            _symmetric(self.precision + design.T @ weighted),
            self.information + weighted.T @ values,
        )

    def absorb(self, gram: Floats, cross: Floats, *, noise_variance: float) -> "Posterior":
        """Learn from exact statistics: A = S, R = noise_variance S, without inverting S."""
        m = self.features.dimension
        if gram.shape != (m, m) or cross.shape != (m,):
            raise InvalidArgument("gram, cross", f"a square matrix and a vector of side {m}")
        _check_finite(gram=gram, cross=cross)
        checks.number("noise_variance", noise_variance, above=0.0)
        return Posterior(
            self.features,
            _symmetric(self.precision + gram / noise_variance),
            self.information + cross / noise_variance,
        )

    @cached_property
    def factor(self) -> Floats:
        """The lower Cholesky factor L of the precision: Var[c theta] = ||L^-1 c||^2."""
        return cholesky(self.precision, lower=True)

    @cached_property
    def whitening(self) -> Floats:
        """L^-1, lower triangular: one product instead of a solve for each prediction."""
        return solve_triangular(self.factor, np.eye(len(self.precision)), lower=True)

    @cached_property
    def coefficients(self) -> Floats:
        """The mean of theta."""
        return cho_solve((self.factor, True), self.information)

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of theta."""
        return self.whitening.T @ self.whitening

    def mean(self, points: Floats) -> Floats:
        """E f(x) for each row."""
        return self.features(points) @ self.coefficients

    def variance(self, points: Floats) -> Floats:
        """Var f(x) for each row."""
        return self.variance_of(self.features(points))

    def variance_of(self, phi: Floats) -> Floats:
        """Var f for each row of features."""
        return np.square(self.whitening @ phi.T).sum(axis=0)

    def shape_variance(self, points: Floats) -> float:
        """The mean over the points of Var[f(x) - mean of f over the points]."""
        phi = self.features(points)
        whitened = self.whitening @ (phi - phi.mean(axis=0)).T
        return float(np.sum(np.square(whitened))) / len(phi)

    def draws(self, normals: Floats) -> Floats:
        """Draws of theta, one for each row of standard normals: mean + L^-T z."""
        return self.coefficients + normals @ self.whitening


def _check_finite(**arrays: Floats) -> None:
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise InvalidArgument(name, "finite numbers")


def _symmetric(matrix: Floats) -> Floats:
    return (matrix + matrix.T) / 2
