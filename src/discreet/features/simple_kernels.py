"""Kernels on the unit cube, normalised to k(x, x) <= 1, and their spectral densities.

A kernel is frozen public data. It is called on two lists of points and gives the matrix of
their similarities. Stationary kernels depend on the difference only and are the Fourier
transform of a probability density (Bochner): k(delta) = E_p[cos(omega . delta)].
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from discreet import checks
from discreet.arrays import Floats, as_rows
from discreet.errors import InvalidArgument


class _Stretched:
    """What kernels with lengthscales share."""

    lengthscale: float | tuple[float, ...]

    def check(self, dimension: int) -> None:
        """Refuse a dimension the lengthscales do not fit."""
        _lengthscales(self.lengthscale, dimension)

    def lengthscales(self, dimension: int) -> Floats:
        """One lengthscale per coordinate."""
        return _lengthscales(self.lengthscale, dimension)


@dataclass(frozen=True)
class SquaredExponential(_Stretched):
    """k(delta) = exp(-sum_j (delta_j / l_j)^2 / 2); one lengthscale, or one per coordinate.

    >>> SquaredExponential(0.5)([[0.0]], [[0.0], [0.5]]).round(4)
    array([[1.    , 0.6065]])
    """

    lengthscale: float | tuple[float, ...] = 0.2

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", _lengthscale(self.lengthscale))

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The matrix k(x_i - y_j)."""
        return np.exp(-0.5 * _squared_distances(self.lengthscale, x, y))

    def correlation(self, differences: ArrayLike) -> Floats:
        """k at each row of differences."""
        scaled = _scaled(self.lengthscale, differences)
        return np.exp(-0.5 * np.sum(scaled * scaled, axis=1))

    def spectral_density(self, frequencies: ArrayLike) -> Floats:
        """p(omega) = prod_j l_j / sqrt(2 pi) exp(-omega_j^2 l_j^2 / 2), at each row."""
        omega = as_rows("frequencies", frequencies)
        scales = self.lengthscales(omega.shape[1])
        scaled = omega * scales
        height = float(np.prod(scales)) / (2.0 * math.pi) ** (omega.shape[1] / 2)
        return height * np.exp(-0.5 * np.sum(scaled * scaled, axis=1))

    def second_moment(self, dimension: int) -> Floats:
        """E_p[omega_j^2] = 1 / l_j^2, for each coordinate."""
        return self.lengthscales(dimension) ** -2.0

    def curvature(self, differences: ArrayLike) -> Floats:
        """A bound on |d^2 k / d delta_j^2|, decreasing in every |delta_i|: one per coordinate.

        The derivative is (u_j^2 - 1) k / l_j^2 with u = delta / l. The bound is
        (2 + u_j^2) k / l_j^2: its derivative in u_j has the sign of -u_j^3.
        """
        scaled = _scaled(self.lengthscale, differences)
        k = np.exp(-0.5 * np.sum(scaled * scaled, axis=1))
        return (2.0 + scaled**2) * k[:, None] * self.second_moment(scaled.shape[1])

    def frequencies(self, rng: np.random.Generator, count: int, dimension: int) -> Floats:
        """Independent draws from the spectral density, one a row."""
        return rng.standard_normal((count, dimension)) / self.lengthscales(dimension)


@dataclass(frozen=True)
class Matern(_Stretched):
    """Matern kernels of smoothness 1/2, 3/2 and 5/2.

    With s = sqrt(2 nu) r: exp(-s), (1 + s) exp(-s), (1 + s + s^2 / 3) exp(-s), where r is
    the norm of delta / l (`form="isotropic"`), or the product of these over the coordinates
    with r_j = |delta_j| / l_j (`form="product"`, the paper's decomposable Matern).

    >>> Matern(1.5, 0.5)([[0.0, 0.0]], [[0.3, 0.4]]).round(4)
    array([[0.4834]])
    >>> Matern(1.5, 0.5, "product")([[0.0, 0.0]], [[0.3, 0.4]]).round(4)
    array([[0.4305]])
    """

    smoothness: float
    lengthscale: float | tuple[float, ...] = 0.2
    form: Literal["isotropic", "product"] = "isotropic"

    def __post_init__(self) -> None:
        if self.smoothness not in (0.5, 1.5, 2.5):
            raise InvalidArgument("smoothness", "0.5, 1.5 or 2.5", self.smoothness)
        if self.form not in ("isotropic", "product"):
            raise InvalidArgument("form", "'isotropic' or 'product'", self.form)
        object.__setattr__(self, "smoothness", float(self.smoothness))
        object.__setattr__(self, "lengthscale", _lengthscale(self.lengthscale))

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The matrix k(x_i - y_j)."""
        if self.form == "isotropic":
            return self._profile(np.sqrt(_squared_distances(self.lengthscale, x, y)))
        left, right = pair(x, y)
        product = np.ones((len(left), len(right)))
        for j, scale in enumerate(self.lengthscales(left.shape[1])):
            product *= self._profile(np.abs(left[:, j, None] - right[None, :, j]) / scale)
        return product

    def correlation(self, differences: ArrayLike) -> Floats:
        """k at each row of differences."""
        scaled = _scaled(self.lengthscale, differences)
        if self.form == "isotropic":
            return self._profile(np.sqrt(np.sum(scaled * scaled, axis=1)))
        return np.prod(self._profile(np.abs(scaled)), axis=1)

    def _profile(self, radius: Floats) -> Floats:
        s = math.sqrt(2.0 * self.smoothness) * radius
        decay = np.exp(-s)
        if self.smoothness == 0.5:
            return decay
        if self.smoothness == 1.5:
            return (1.0 + s) * decay
        return (1.0 + s + s * s / 3.0) * decay

    def spectral_density(self, frequencies: ArrayLike) -> Floats:
        """A multivariate t density with 2 nu degrees of freedom, at each row.

        p(omega) = C prod_j l_j (1 + sum_j (omega_j l_j)^2 / (2 nu))^-(nu + d/2) with
        C = Gamma(nu + d/2) / (Gamma(nu) (2 nu pi)^(d/2)); the product form is a product of
        its one-dimensional cases.
        """
        omega = as_rows("frequencies", frequencies)
        dimension = omega.shape[1]
        scales = self.lengthscales(dimension)
        squares = (omega * scales) ** 2
        if self.form == "isotropic":
            return float(np.prod(scales)) * self._t_density(np.sum(squares, axis=1), dimension)
        return float(np.prod(scales)) * np.prod(self._t_density(squares, 1), axis=1)

    def _t_density(self, squares: Floats, dimension: int) -> Floats:
        nu, power = self.smoothness, self.smoothness + dimension / 2
        height = math.gamma(power) / (math.gamma(nu) * (2.0 * nu * math.pi) ** (dimension / 2))
        return height * (1.0 + squares / (2.0 * nu)) ** -power

    def second_moment(self, dimension: int) -> Floats:
        """E_p[omega_j^2] = nu / ((nu - 1) l_j^2), for each coordinate; infinite for nu = 1/2."""
        nu = self.smoothness
        factor = nu / (nu - 1.0) if nu > 1.0 else math.inf
        return factor * self.lengthscales(dimension) ** -2.0

    def curvature(self, differences: ArrayLike) -> Floats:
        """A bound on |d^2 k / d delta_j^2|, decreasing in every |delta_i|: one per coordinate.

        With M_j the second moment and s = sqrt(2 nu) r the derivative is, for nu = 3/2,
        -M_j exp(-s)(1 - s u_j^2 / r^2), and for nu = 5/2, -M_j exp(-s)(1 + s - 5 u_j^2).
        As u_j^2 <= r^2 these are at most M_j k and 3 M_j k. For nu = 1/2: infinite.
        """
        moments = self.second_moment(as_rows("differences", differences).shape[1])
        factor = 3.0 if self.smoothness == 2.5 else 1.0
        return factor * self.correlation(differences)[:, None] * moments

    def frequencies(self, rng: np.random.Generator, count: int, dimension: int) -> Floats:
        """Independent draws from the spectral density, one a row."""
        freedom = 2.0 * self.smoothness
        if self.form == "product":
            draws = rng.standard_t(freedom, (count, dimension))
        else:
            radial = np.sqrt(rng.chisquare(freedom, (count, 1)) / freedom)
            draws = rng.standard_normal((count, dimension)) / radial
        return draws / self.lengthscales(dimension)


@dataclass(frozen=True)
class Polynomial:
    """k(x, x') = ((b^2 + z . z') / (b^2 + d))^degree with z = 2x - 1, so that k(x, x) <= 1.

    >>> Polynomial(2, bias=1.0)([[1.0]], [[1.0], [0.0], [0.5]])
    array([[1.  , 0.  , 0.25]])
    """

    degree: int
    bias: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or self.degree not in range(1, 100):
            raise InvalidArgument("degree", "a whole number from 1 to 99", self.degree)
        object.__setattr__(self, "degree", int(self.degree))
        object.__setattr__(self, "bias", checks.number("bias", self.bias, at_least=0.0))

    def check(self, dimension: int) -> None:
        """Refuse a dimension below 1."""
        checks.count("dimension", dimension)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The matrix k(x_i, y_j)."""
        left, right = pair(x, y)
        square = self.bias**2
        # One coordinate after the other: a row's last bits do not depend on the rows beside it.
        inner = np.zeros((len(left), len(right)))
        for one, other in zip(left.T, right.T, strict=True):
            inner += (2.0 * one[:, None] - 1.0) * (2.0 * other - 1.0)
        return ((square + inner) / (square + left.shape[1])) ** self.degree


@dataclass(frozen=True)
class Linear:
    """k(x, x') = (b^2 + z . z') / (b^2 + d) with z = 2x - 1, so that k(x, x) <= 1.

    >>> Linear(bias=1.0)([[1.0]], [[1.0], [0.0], [0.5]])
    array([[1. , 0. , 0.5]])
    """

    bias: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bias", checks.number("bias", self.bias, at_least=0.0))

    def check(self, dimension: int) -> None:
        """Refuse a dimension below 1."""
        checks.count("dimension", dimension)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The matrix k(x_i, y_j)."""
        return Polynomial(1, self.bias)(x, y)


@dataclass(frozen=True)
class Categories:
    """k(a, a) = 1, and `correlation` between any two different categories.

    For one coordinate with names as values, which an ordinary kernel would need a column each for.

    >>> Categories(0.5)([[0.0]], [[0.0], [1.0]])
    array([[1. , 0.5]])
    """

    correlation: float = 0.0

    def __post_init__(self) -> None:
        share = checks.number("correlation", self.correlation, at_least=0.0)
        if share >= 1.0:
            raise InvalidArgument("correlation", "a number from 0 to below 1", share)
        object.__setattr__(self, "correlation", share)

    def check(self, dimension: int) -> None:
        """Refuse a dimension below 1."""
        checks.count("dimension", dimension)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The matrix k(x_i, y_j); encoded categories are at distance 0 or 1."""
        apart = _squared_distances(1.0, x, y) > 0.25
        return np.where(apart, self.correlation, 1.0)


Stationary = SquaredExponential | Matern
Simple = SquaredExponential | Matern | Linear | Polynomial | Categories


def pair(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Two lists of points of as many coordinates."""
    left, right = as_rows("x", x), as_rows("y", y)
    if left.shape[1] != right.shape[1]:
        raise InvalidArgument("y", f"points of {left.shape[1]} coordinates", right.shape[1])
    return left, right


def _squared_distances(
    lengthscale: float | tuple[float, ...], x: ArrayLike, y: ArrayLike
) -> Floats:
    # One coordinate at a time: differences are exact where points are close, and no n x n' x d.
    left, right = pair(x, y)
    total = np.zeros((len(left), len(right)))
    for j, scale in enumerate(_lengthscales(lengthscale, left.shape[1])):
        total += ((left[:, j, None] - right[None, :, j]) / scale) ** 2
    return total


def _scaled(lengthscale: float | tuple[float, ...], differences: ArrayLike) -> Floats:
    delta = as_rows("differences", differences)
    return delta / _lengthscales(lengthscale, delta.shape[1])


def _lengthscale(value: float | tuple[float, ...]) -> float | tuple[float, ...]:
    if isinstance(value, tuple | list):
        if not value:
            raise InvalidArgument("lengthscale", "one positive number per coordinate", value)
        return tuple(checks.number("lengthscale", scale, above=0.0) for scale in value)
    return checks.number("lengthscale", value, above=0.0)


def _lengthscales(lengthscale: float | tuple[float, ...], dimension: int) -> Floats:
    checks.count("dimension", dimension)
    if not isinstance(lengthscale, tuple):
        return np.full(dimension, lengthscale)
    if len(lengthscale) != dimension:
        raise InvalidArgument("lengthscale", f"one number, or {dimension} of them", lengthscale)
    return np.array(lengthscale)
