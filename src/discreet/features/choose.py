"""x -> phi(x): a few numbers per point whose inner products are the kernel, nearly.

`choose` finds the smallest map for a wanted kernel error; sums of kernels over groups of
coordinates become blocks of features; `measured_error` attacks a claimed bound.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from discreet import checks
from discreet.errors import InvalidArgument, OutOfReach
from discreet.features.error_bounds import DifferenceSet
from discreet.features.grids import common_rule, grid_rule
from discreet.features.kernels import Additive, Kernel, Learned, Linear, Polynomial, Simple
from discreet.features.maps import (
    FourierFeatures,
    Group,
    PolynomialFeatures,
    SimpleFeatures,
    coefficients_of,
    rows_of,
)
from discreet.features.quadrature import Rule, hermite_rule, random_rule

__all__ = [
    "AdditiveFeatures",
    "FeatureMap",
    "FeaturePart",
    "FourierFeatures",
    "Group",
    "Method",
    "PolynomialFeatures",
    "choose",
    "measured_error",
]

Floats = NDArray[np.float64]
Method = Literal["grid", "hermite", "random"]


@dataclass(frozen=True, eq=False)
class FeaturePart:
    """One block of an additive map: sqrt(weight) times `features` of some columns."""

    features: SimpleFeatures
    columns: tuple[int, ...]
    weight: float

    def __post_init__(self) -> None:
        columns = tuple(int(column) for column in self.columns)
        if len(columns) != self.features.inputs:
            raise InvalidArgument("columns", f"{self.features.inputs} column numbers", columns)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "weight", checks.number("weight", self.weight, above=0.0))


@dataclass(frozen=True, eq=False)
class AdditiveFeatures:
    """phi(x) = (sqrt(weight_g) phi_g(x_g))_g, the blocks one after the other.

    Inner products add up: the error is at most sum_g weight_g error_g.

    >>> linear = PolynomialFeatures(1, 1.0, 1)
    >>> phi = AdditiveFeatures((FeaturePart(linear, (1,), 0.5),), inputs=2)
    >>> phi.groups
    (Group(columns=(1,), features=slice(0, 2, None)),)
    """

    parts: tuple[FeaturePart, ...]
    inputs: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        object.__setattr__(self, "inputs", int(self.inputs))
        if not self.parts or max(max(part.columns) for part in self.parts) >= self.inputs:
            raise InvalidArgument("parts", f"one or more, on columns below {self.inputs}")
        if math.fsum(part.weight for part in self.parts) > 1.0:
            raise InvalidArgument("parts", "weights that sum to at most 1")

    @property
    def dimension(self) -> int:
        """The number of features m."""
        return sum(part.features.dimension for part in self.parts)

    @property
    def norm_bound(self) -> float:
        """sqrt(sum of weights) <= 1."""
        return math.sqrt(math.fsum(part.weight for part in self.parts))

    @property
    def error_bound(self) -> float:
        """sum_g weight_g error_g."""
        return math.fsum(part.weight * part.features.error_bound for part in self.parts)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The coordinates and the slice of features of every part."""
        ends = list(itertools.accumulate(part.features.dimension for part in self.parts))
        starts = [0, *ends[:-1]]
        return tuple(
            Group(part.columns, slice(start, end))
            for part, start, end in zip(self.parts, starts, ends, strict=True)
        )

    @cached_property
    def _alike(self) -> tuple[list[int], float, FourierFeatures] | None:
        """Where every part is one map on a column of its own: the columns, sqrt(weight), the map.

        A row's features do not depend on the rows beside it, so all columns go through at once.
        """
        first, columns = self.parts[0].features, [part.columns[0] for part in self.parts]
        if not isinstance(first, FourierFeatures) or first.inputs != 1:
            return None
        same = all(_same(part.features, first) for part in self.parts)
        if not same or len({part.weight for part in self.parts}) > 1:
            return None
        if len(set(columns)) < len(columns):
            return None
        return columns, math.sqrt(self.parts[0].weight), first

    def __call__(self, x: ArrayLike) -> Floats:
        """phi at each row of x: an n x m matrix."""
        rows = rows_of(x, self.inputs)
        if (alike := self._alike) is not None:
            columns, scale, features = alike
            together = features(rows[:, columns].reshape(-1, 1))
            return (scale * together).reshape(len(rows), self.dimension)
        blocks = [
            math.sqrt(part.weight) * part.features(rows[:, list(part.columns)])
            for part in self.parts
        ]
        return np.concatenate(blocks, axis=1)

    def gradient(self, x: ArrayLike, coefficients: ArrayLike) -> Floats:
        """d/dx of coefficients . phi(x), at each row: n x d; coefficients (m,) or (n, m)."""
        rows = rows_of(x, self.inputs)
        c = coefficients_of(coefficients, len(rows), self.dimension)
        slopes = np.zeros_like(rows)
        if (alike := self._alike) is not None:
            columns, scale, features = alike
            own = np.broadcast_to(c, (len(rows), self.dimension)).reshape(-1, features.dimension)
            found = features.gradient(rows[:, columns].reshape(-1, 1), own)
            slopes[:, columns] = scale * found.reshape(len(rows), len(columns))
            return slopes
        for part, group in zip(self.parts, self.groups, strict=True):
            columns = list(part.columns)
            slope = part.features.gradient(rows[:, columns], c[:, group.features])
            slopes[:, columns] += math.sqrt(part.weight) * slope
        return slopes


def _same(one: SimpleFeatures, other: FourierFeatures) -> bool:
    return (
        isinstance(one, FourierFeatures)
        and np.array_equal(one.frequencies, other.frequencies)
        and np.array_equal(one.weights, other.weights)
    )


FeatureMap = FourierFeatures | PolynomialFeatures | AdditiveFeatures


def choose(
    kernel: Kernel,
    *,
    widths: ArrayLike,
    diameter: float | None = None,
    error: float = 1e-3,
    method: Method = "grid",
    limit: int = 2048,
    seed: int = 0,
) -> FeatureMap:
    """The smallest map whose kernel error is at most `error` on a domain of this size.

    The bound holds for every pair of points with |x_j - y_j| <= widths_j and ||x - y|| <=
    diameter (by default that of the box). Linear and polynomial kernels are exact and ignore
    the rest. Raises `OutOfReach`, with the number it would take, beyond `limit` features.

    >>> from discreet.features.kernels import SquaredExponential
    >>> phi = choose(SquaredExponential(0.25), widths=(1, 1), diameter=1.0, error=6e-3)
    >>> phi.dimension <= 49 and phi.error_bound <= 6e-3
    True
    """
    differences = DifferenceSet.of(widths, diameter)
    kernel.check(differences.dimension)
    if isinstance(kernel, Learned):
        if method != "grid":
            raise InvalidArgument("features", "'grid' with Learned: its options share one lattice")
        return _choose_learned(kernel, differences, error, limit)
    if isinstance(kernel, Additive):
        return _choose_additive(kernel, differences, error, method, limit, seed)
    return _choose_simple(kernel, differences, error, method, limit, seed)


def _choose_simple(
    kernel: Simple,
    differences: DifferenceSet,
    error: float,
    method: Method,
    limit: int,
    seed: int,
) -> SimpleFeatures:
    if isinstance(kernel, Linear | Polynomial):
        degree = 1 if isinstance(kernel, Linear) else kernel.degree
        return _choose_exact(degree, kernel.bias, differences.dimension, limit)
    if method == "grid":
        return _map(grid_rule(kernel, differences, error, limit))
    if method == "hermite":
        return _map(hermite_rule(kernel, differences, error, limit))
    if method == "random":
        return _map(random_rule(kernel, differences, error, limit, seed))
    raise InvalidArgument("method", "'grid', 'hermite' or 'random'", method)


def _choose_exact(degree: int, bias: float, inputs: int, limit: int) -> PolynomialFeatures:
    needed = math.comb(inputs + degree - (bias == 0.0), degree)
    if needed > limit:
        raise OutOfReach(
            f"degree {degree} in {inputs} dimensions takes {needed} features, over "
            f"the limit of {limit}; lower the degree or use Additive",
            needed,
        )
    return PolynomialFeatures(degree, bias, inputs)


def _choose_additive(
    kernel: Additive,
    differences: DifferenceSet,
    error: float,
    method: Method,
    limit: int,
    seed: int,
) -> AdditiveFeatures:
    inexact = [p.weight for p in kernel.parts if not isinstance(p.kernel, Linear | Polynomial)]
    share = min(error / max(math.fsum(inexact), error), 1.0)
    parts: list[FeaturePart] = []
    for offset, part in enumerate(kernel.parts):
        on = differences.on(part.columns)
        features = _choose_simple(part.kernel, on, share, method, limit, seed + offset)
        parts.append(FeaturePart(features, part.columns, part.weight))
    chosen = AdditiveFeatures(tuple(parts), differences.dimension)
    if chosen.dimension > limit:
        raise OutOfReach(
            f"the {len(parts)} parts take {chosen.dimension} features together, over "
            f"the limit of {limit}; allow a larger error",
            chosen.dimension,
        )
    return chosen


def _choose_learned(
    kernel: Learned, differences: DifferenceSet, error: float, limit: int
) -> FeatureMap:
    """Lattice features for all options at once; alike for each coordinate of a sum."""
    if not kernel.additive:
        return _map(common_rule(kernel.options, differences, error, limit))
    d = differences.dimension
    rules = [common_rule(kernel.options, differences.on((j,)), error, limit // d) for j in range(d)]
    weight = (1.0 - 1e-12) / d  # the sum of d weights must not exceed 1 by rounding
    parts = tuple(FeaturePart(_map(rule), (j,), weight) for j, rule in enumerate(rules))
    return AdditiveFeatures(parts, d)


def _map(rule: Rule) -> FourierFeatures:
    return FourierFeatures(
        rule.frequencies, rule.weights, rule.error_bound, rule.indices, rule.spacing
    )


def measured_error(
    kernel: Kernel,
    features: FeatureMap,
    *,
    widths: ArrayLike,
    diameter: float | None = None,
    rng: np.random.Generator,
    pairs: int = 100_000,
    starts: int = 16,
) -> float:
    """The largest |phi(x) . phi(y) - k(x, y)| found: random pairs, then ascent from the worst.

    The points lie in the box [0, widths], and in the ball of this diameter around its centre
    when the diameter is less than that of the box. Never more than the true maximum: a
    `features.error_bound` below this figure would be a bug.

    >>> from discreet.features.kernels import Linear
    >>> phi = choose(Linear(), widths=(1, 1))
    >>> measured_error(Linear(), phi, widths=(1, 1), rng=np.random.default_rng(0)) < 1e-12
    True
    """
    differences = DifferenceSet.of(widths, diameter)
    errors = _Errors(kernel, features, differences)
    draws = rng.uniform(-1.0, 1.0, (pairs, 2 * differences.dimension))
    draws[: pairs // 3] = np.sign(draws[: pairs // 3]) * np.abs(draws[: pairs // 3]) ** 0.1
    found = np.concatenate([errors(chunk) for chunk in np.array_split(draws, pairs // 10_000 + 1)])
    worst = np.argsort(found)[::-1][:starts]
    return max([float(found.max()), *(errors.ascend(draws[i]) for i in worst)])


@dataclass(frozen=True, eq=False)
class _Errors:
    """|phi(x) . phi(y) - k(x, y)| as a function of a pair in [-1, 1]^(2d)."""

    kernel: Kernel
    features: FeatureMap
    differences: DifferenceSet

    def __call__(self, pairs: Floats) -> Floats:
        d = self.differences.dimension
        x, y = self._place(pairs[:, :d]), self._place(pairs[:, d:])
        near = np.sum(self.features(x) * self.features(y), axis=1)
        return np.abs(near - self._exact(x, y))

    def _place(self, u: Floats) -> Floats:
        half = np.array(self.differences.widths) / 2.0
        offset = np.clip(u, -1.0, 1.0) * half
        radius = np.sqrt(np.sum(offset**2, axis=1, keepdims=True))
        shrink = np.minimum(1.0, self.differences.diameter / 2.0 / np.maximum(radius, 1e-300))
        return half + offset * shrink

    def _exact(self, x: Floats, y: Floats) -> Floats:
        values = [
            np.diagonal(self.kernel(x[i : i + 64], y[i : i + 64])) for i in range(0, len(x), 64)
        ]
        return np.concatenate(values)

    def ascend(self, start: Floats) -> float:
        """Climb from one pair (L-BFGS, central differences in one batch)."""
        scale = max(float(self(start[None, :])[0]), 1e-300)
        steps = 1e-5 * np.concatenate([np.eye(len(start)), -np.eye(len(start))])

        def objective(u: Floats) -> tuple[float, Floats]:
            values = self(np.vstack([u, u + steps])) / scale
            slopes = (values[1 : len(u) + 1] - values[len(u) + 1 :]) / 2e-5
            return -float(values[0]), -slopes

        bounds = [(-1.0, 1.0)] * len(start)
        result: Any = optimize.minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60}
        )
        return float(self(np.asarray(result.x)[None, :])[0])
