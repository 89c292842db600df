"""kernel -> phi: the smallest map within a wanted kernel error.

Sums of kernels over groups of coordinates become blocks of features.
"""

import math
from typing import Literal

from numpy.typing import ArrayLike

from discreet.errors import InvalidArgument, OutOfReach
from discreet.features.error_bounds import DifferenceSet
from discreet.features.fourier import FourierFeatures
from discreet.features.grids import common_rule, grid_rule
from discreet.features.kernels import Additive, Kernel, Learned, Product, Structured
from discreet.features.maps import (
    AdditiveFeatures,
    FeatureMap,
    FeaturePart,
    PolynomialFeatures,
    SimpleFeatures,
)
from discreet.features.quadrature import Rule, hermite_rule, random_rule
from discreet.features.simple_kernels import Categories, Linear, Polynomial, Simple

#: Maps with a stated uniform error.
Method = Literal["grid", "hermite", "random"]
#: What a plan may ask for.
FeatureChoice = Literal["auto", "grid", "hermite", "random", "leading"]


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
    if isinstance(kernel, Product | Categories | Structured):
        raise OutOfReach("this kernel has no features with a stated error: take 'leading'", 0)
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
    if isinstance(kernel, Categories):
        raise OutOfReach("Categories has no features with a stated error: take 'leading'", 0)
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
        on = differences.on(part.places)
        features = _choose_simple(part.kernel, on, share, method, limit, seed + offset)
        parts.append(FeaturePart(features, part.places, part.weight))
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
