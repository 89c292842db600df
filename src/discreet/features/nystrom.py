"""The leading eigenfunctions of any kernel, on public points: for kernels that are no products."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats, as_rows, frozen
from discreet.errors import InvalidArgument
from discreet.features.fourier import Group, coefficients_of, one_group
from discreet.features.kernels import Kernel
from discreet.features.left_out import LeftOut

#: Steps of the numerical derivative.
STEP = 1e-6


@dataclass(frozen=True, eq=False)
class NystromFeatures(LeftOut):
    """phi(x) = W^T k(X, x), X public points: with K = k(X, X) = U diag(e) U^T, W = U e^(-1/2).

    For the first m columns of U, ||phi(x)||^2 <= k(x, X) K^-1 k(X, x) <= k(x, x) <= 1; rows that
    rounding made longer are scaled to length 1. `kept` is the share of the kernel's variance on
    the points that they carry; the rest is left to the noise of rewards.
    """

    kernel: Kernel
    points: Floats
    weights: Floats
    kept: float

    def __post_init__(self) -> None:
        points, weights = as_rows("points", self.points), as_rows("weights", self.weights)
        if len(points) != len(weights):
            raise InvalidArgument("weights", "one row for each point")
        self.kernel.check(points.shape[1])
        object.__setattr__(self, "points", frozen(points))
        object.__setattr__(self, "weights", frozen(weights))
        object.__setattr__(self, "kept", float(self.kept))

    @property
    def dimension(self) -> int:
        """The number of features m."""
        return self.weights.shape[1]

    @property
    def inputs(self) -> int:
        """The number of coordinates d of a point."""
        return self.points.shape[1]

    @property
    def groups(self) -> tuple[Group, ...]:
        """One group: all coordinates, all features."""
        return one_group(self.inputs, self.dimension)

    def __call__(self, x: ArrayLike) -> Floats:
        """phi at each row of x: an n x m matrix."""
        # One product a row: in a product of matrices a row's last bits depend on the others.
        near = self.kernel(as_rows("x", x, self.inputs), self.points)
        features = np.matmul(near[:, None, :], self.weights)[:, 0, :]
        return features / np.maximum(1.0, np.linalg.norm(features, axis=1, keepdims=True))

    def gradient(self, x: ArrayLike, coefficients: ArrayLike) -> Floats:
        """d/dx of coefficients . phi(x), at each row, by central differences: n x d."""
        rows = as_rows("x", x, self.inputs)
        c = coefficients_of(coefficients, len(rows), self.dimension)
        slopes = np.empty_like(rows)
        for j in range(self.inputs):
            step = STEP * np.eye(self.inputs)[j]
            rise = np.sum((self(rows + step) - self(rows - step)) * c, axis=1)
            slopes[:, j] = rise / (2.0 * STEP)
        return slopes
