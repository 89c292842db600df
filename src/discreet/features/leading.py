"""kernel -> phi: the few leading eigenfunctions, for any number of coordinates.

Noise lets nobody learn more than a few dozen directions, so a plan needs no more features: those
of the largest eigenvalues under the uniform law. A kernel that is a product over coordinates (the
squared exponential is) has products of one-coordinate functions; any other is taken on public
points. What is left out counts as noise of the rewards. Under `confidence="theory"`, and where few
dimensions allow it, grids with a proven uniform error stand instead.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Floats
from discreet.errors import InvalidArgument, OutOfReach
from discreet.features.error_bounds import DifferenceSet
from discreet.features.fourier import FourierFeatures
from discreet.features.grids import common_rule, grid_rule
from discreet.features.kernels import Additive, Kernel, Learned, Product
from discreet.features.maps import AdditiveFeatures, FeatureMap, FeaturePart, SimpleFeatures
from discreet.features.nystrom import NystromFeatures
from discreet.features.products import CategoryFactor, Factor, NumberFactor, ProductFeatures
from discreet.features.simple_kernels import (
    Categories,
    Matern,
    Simple,
    SquaredExponential,
    Stationary,
)
from discreet.features.structured import Structured

#: Wanted and still acceptable errors of the features of one number.
ONE_NUMBER = (1e-3, 1e-2)
#: A factor has at most this many functions, none of less variance than this share of its first.
MOST_FUNCTIONS, LEAST_SHARE = 24, 1e-7
#: Points on which a kernel that is no product is taken apart, and where one number is looked at.
POINTS, MIDPOINTS = 384, 512


@dataclass(frozen=True, eq=False)
class Coordinate:
    """The columns of a coordinate; for categories, what these hold for each of them."""

    columns: tuple[int, ...]
    vertices: Floats | None = None


def leading_features(
    kernel: Kernel, coordinates: Sequence[Coordinate], points: Floats, most: int
) -> FeatureMap:
    """At most `most` features of the largest variance; `points` fill the domain evenly.

    >>> numbers = [Coordinate((j,)) for j in range(6)]
    >>> points = np.random.Generator(np.random.Philox(0)).random((64, 6))
    >>> phi = leading_features(SquaredExponential(1.0), numbers, points, 48)
    >>> phi.dimension, phi.inputs, round(phi.kept, 2)
    (48, 6, 0.99)
    """
    inputs = sum(len(each.columns) for each in coordinates)
    if not isinstance(kernel, Additive):
        return _simple(kernel, coordinates, points, most, inputs)
    parts: list[FeaturePart] = []
    for part in kernel.parts:
        own = [_moved(each, part.places) for each in coordinates if _within(each, part.places)]
        features = _simple(
            part.kernel, own, points[:, list(part.places)], most // len(kernel.parts) or 1,
            len(part.places),
        )  # fmt: skip
        parts.append(FeaturePart(features, part.places, part.weight))
    return AdditiveFeatures(tuple(parts), inputs)


def _simple(
    kernel: Kernel, coordinates: Sequence[Coordinate], points: Floats, most: int, inputs: int
) -> SimpleFeatures:
    factored = [_options(kernel, each, inputs) for each in coordinates]
    whole = sum(len(each.columns) for each in coordinates) == inputs
    if not whole or any(each is None for each in factored):
        return _nystrom(kernel, points, most)
    found = [
        _factor(options, each)
        for options, each in zip(factored, coordinates, strict=True)
        if options
    ]
    variances = [values for _, values in found]
    if isinstance(kernel, Structured):
        variances = [_with_share(values, kernel.constant_share) for values in variances]
    return _products([each for each, _ in found], variances, most, inputs)


def _with_share(values: Floats, share: float) -> Floats:
    """Variances of a coordinate's functions where a share of its kernel is constant."""
    level = np.arange(len(values)) == 0  # the first function is the nearest to a constant
    return (1.0 - share) * values + share * values.sum() * level


# -- one coordinate


def _options(kernel: Kernel, coordinate: Coordinate, inputs: int) -> tuple[Simple, ...] | None:
    """The factors of the kernel, or of its options, on one coordinate; none where it is constant.

    None if the kernel is no product over coordinates.
    """
    if isinstance(kernel, Learned):
        each = [_options(option, coordinate, inputs) for option in kernel.options]
        if kernel.additive or any(some is None for some in each):
            return None
        return tuple(one for some in each if some is not None for one in some)
    if isinstance(kernel, Structured):
        return kernel.factors(coordinate.columns)
    if isinstance(kernel, Product):
        for factor in kernel.factors:
            if set(coordinate.columns) <= set(factor.places):
                own = _moved(coordinate, factor.places)
                return _options(factor.kernel, own, len(factor.places))
        return None if _touched(kernel, coordinate) else ()
    if isinstance(kernel, Categories):
        return (kernel,) if len(coordinate.columns) == inputs else None
    alone = len(coordinate.columns) == inputs
    if isinstance(kernel, SquaredExponential) or (
        isinstance(kernel, Matern) and (alone or kernel.form == "product")
    ):
        scales = kernel.lengthscales(inputs)[list(coordinate.columns)]
        return (_with_scales(kernel, scales),)
    return None


def _with_scales(kernel: Stationary, scales: Floats) -> Stationary:
    own = tuple(scales.tolist())
    if isinstance(kernel, Matern):
        return Matern(kernel.smoothness, own, kernel.form)
    return SquaredExponential(own)


def _touched(kernel: Product, coordinate: Coordinate) -> bool:
    return any(set(coordinate.columns) & set(factor.places) for factor in kernel.factors)


def _within(coordinate: Coordinate, columns: tuple[int, ...]) -> bool:
    return set(coordinate.columns) <= set(columns)


def _moved(coordinate: Coordinate, columns: tuple[int, ...]) -> Coordinate:
    """The coordinate, by its places among some columns."""
    return Coordinate(tuple(map(columns.index, coordinate.columns)), coordinate.vertices)


def _factor(options: tuple[Simple, ...], coordinate: Coordinate) -> tuple[Factor, Floats]:
    """The functions of one coordinate and their variances, the largest first."""
    if coordinate.vertices is not None:
        return _category(options, coordinate.vertices, coordinate.columns)
    stationary = tuple(option for option in options if isinstance(option, Stationary))
    if len(stationary) < len(options):
        raise InvalidArgument("kernel", "Categories over coordinates that are Categorical only")
    features = _of_one_number(stationary)
    middles = (np.arange(MIDPOINTS) + 0.5)[:, None] / MIDPOINTS
    phi = features(middles)
    values, vectors = np.linalg.eigh(phi.T @ phi / MIDPOINTS)
    order = [
        i for i in np.argsort(-values)[:MOST_FUNCTIONS] if values[i] > LEAST_SHARE * values[-1]
    ]
    rotation = vectors[:, order] / max(1.0, float(np.linalg.norm(vectors[:, order], 2)))
    return NumberFactor(features, rotation, coordinate.columns[0]), values[order]


def _of_one_number(options: tuple[Stationary, ...]) -> FourierFeatures:
    differences, reason = DifferenceSet.of([1.0]), None
    for error in ONE_NUMBER:
        try:
            if len(options) == 1:
                rule = grid_rule(options[0], differences, error, 2048)
            else:
                rule = common_rule(options, differences, error, 2048)
            return FourierFeatures(
                rule.frequencies, rule.weights, rule.error_bound, rule.indices, rule.spacing
            )
        except OutOfReach as error_of_reach:
            reason = error_of_reach
    raise reason or OutOfReach("no features of one number", 0)


def _category(
    options: tuple[Simple, ...], vertices: Floats, columns: tuple[int, ...]
) -> tuple[CategoryFactor, Floats]:
    gram = np.mean([option(vertices, vertices) for option in options], axis=0)
    values, vectors = np.linalg.eigh(gram)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    kept = values > LEAST_SHARE * values[0]
    table = vectors[:, kept] * np.sqrt(values[kept])
    table /= max(1.0, float(np.linalg.norm(table, axis=1).max())) * (1.0 + 1e-15)
    return CategoryFactor(table, vertices, columns), values[kept] / len(vertices)


# -- products, and kernels that are none


def _products(
    factors: list[Factor], variances: list[Floats], most: int, inputs: int
) -> ProductFeatures:
    """The products of the largest variance, best first: each follows one that is no smaller."""
    logs = [np.log(np.maximum(each, 1e-300)) for each in variances]
    first = tuple(0 for _ in factors)
    heap = [(-math.fsum(float(each[0]) for each in logs), first)]
    seen, total = {first}, 0.0
    terms: list[tuple[int, ...]] = []
    while heap and len(terms) < most:
        cost, term = heapq.heappop(heap)
        terms.append(term)
        total += math.exp(-cost)
        for f, place in enumerate(term):
            after = (*term[:f], place + 1, *term[f + 1 :])
            if place + 1 < len(logs[f]) and after not in seen:
                seen.add(after)
                step = float(logs[f][place] - logs[f][place + 1])
                heapq.heappush(heap, (cost + step, after))
    whole = math.prod(float(each.sum()) for each in variances)
    return ProductFeatures(tuple(factors), np.array(terms), inputs, kept=min(1.0, total / whole))


def _nystrom(kernel: Kernel, points: Floats, most: int) -> NystromFeatures:
    chosen = points[:POINTS]
    values, vectors = np.linalg.eigh(kernel(chosen, chosen))
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values[:most] > 1e-9 * values[0]
    weights = vectors[:, : len(kept)][:, kept] / np.sqrt(values[: len(kept)][kept])
    share = float(values[: len(kept)][kept].sum() / np.maximum(values, 0.0).sum())
    return NystromFeatures(kernel, chosen, weights, kept=share)
