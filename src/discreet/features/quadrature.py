"""Frequencies and weights: k(delta) ~ sum_i w_i cos(omega_i . delta), with a bound on the error.

A rule keeps one of each pair +-omega, with doubled weight; the weights sum to 1. Here are the
paper's Gauss-Hermite product rule and random draws from the spectral density; `grids` has the
default, which needs fewer features than either.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy import special

from discreet.arrays import Floats, Integers
from discreet.errors import InvalidArgument, OutOfReach
from discreet.features.error_bounds import (
    ROUNDING,
    DifferenceSet,
    Smoothness,
    lattice_bound,
    radius_of,
    smoothness,
)
from discreet.features.kernels import SquaredExponential, Stationary

FAILURE = 1e-9
"""The chance, over the draw of random frequencies, that their union bound does not hold."""

SMALLEST_ERROR = 1e-12


class Rule(NamedTuple):
    """A rule, its error bound over a difference set, and its lattice if it has one."""

    frequencies: Floats
    weights: Floats
    error_bound: float
    indices: Integers | None = None
    spacing: tuple[float, ...] | None = None


def check_wanted(error: float, limit: int) -> None:
    """Refuse errors that floating point cannot certify, and limits without room.

    >>> check_wanted(0.0, 10)
    Traceback (most recent call last):
        ...
    discreet.errors.InvalidArgument: error: expected a number from 1e-12 to 1, got 0.0
    """
    if not SMALLEST_ERROR <= error <= 1.0:
        raise InvalidArgument("error", f"a number from {SMALLEST_ERROR} to 1", error)
    if limit < 1:
        raise InvalidArgument("limit", "at least 1 feature", limit)


def out_of_reach(error: float, limit: int, needed: int, about: str = "about ") -> OutOfReach:
    """The error that says how many features it would take, and what to do instead.

    >>> str(out_of_reach(1e-3, 100, 5000)).partition(";")[0]
    'kernel error 0.001 takes about 5000 features, over the limit of 100'
    """
    return OutOfReach(
        f"kernel error {error:g} takes {about}{needed} features, over the limit of {limit}; "
        "use a longer lengthscale, a larger error, a larger limit, or Additive",
        needed,
    )


# -- Gauss-Hermite


def hermite_nodes(nodes: int) -> tuple[Floats, Floats]:
    """Standard-normal quadrature: E[f(z)] ~ sum_i w_i f(z_i), exact to degree 2 nodes - 1.

    z = sqrt(2) x with x the zeros of H_nodes, w = 2^(nodes-1) nodes! / (nodes^2 H_(nodes-1)(x)^2);
    the paper's definition misses the square, the zeros and 1 / sqrt(pi) (docs/errata).

    >>> hermite_nodes(2)
    (array([-1.,  1.]), array([0.5, 0.5]))
    """
    x, w = np.polynomial.hermite.hermgauss(nodes)
    return math.sqrt(2.0) * x, w / math.fsum(w)


def hermite_remainder(nodes: int, extent: float) -> float:
    """sup |k~ - k| <= nodes!/(2 nodes)! extent^(2 nodes): one coordinate, extent D/l.

    >>> round(hermite_remainder(1, 0.5), 12)
    0.125
    """
    logarithm = math.lgamma(nodes + 1) - math.lgamma(2 * nodes + 1)
    return _exp(logarithm + 2 * nodes * math.log(extent))


def hermite_certificate(nodes: int, extent: float, slack: float) -> float:
    """sup |k~ - k| in one coordinate of lengthscale 1, on a fine lattice of [0, extent].

    >>> hermite_certificate(20, 4.0, 1e-9) < 1e-7
    True
    """
    z, w = hermite_nodes(nodes)

    def approximate(axes: tuple[Floats, ...]) -> Floats:
        return (np.cos(np.outer(axes[0], z)) @ w)[:, None]

    bends = Smoothness(np.zeros(1), np.array([2.0]))  # E[omega^2] + sum w omega^2 = 2 / l^2
    segment = DifferenceSet((extent,), extent)
    unit = SquaredExponential(1.0)
    return lattice_bound(unit, segment, approximate, bends, slack=slack, signed=False)


def hermite_rule(kernel: Stationary, differences: DifferenceSet, error: float, limit: int) -> Rule:
    """The paper's quadrature Fourier features, nodes^d of them, from a wanted error.

    One of each +- pair of the full tensor grid, omega = z / l. Products of numbers in [-1, 1]
    differ by at most the sum of the differences: sup |e| <= sum_j sup |e_j|.

    >>> rule = hermite_rule(SquaredExponential(0.5), DifferenceSet.of([1.0]), 1e-3, 2048)
    >>> 2 * len(rule.weights)
    8
    """
    check_wanted(error, limit)
    if not isinstance(kernel, SquaredExponential):
        raise InvalidArgument("kernel", "a SquaredExponential, for method='hermite'", kernel)
    dimension = differences.dimension
    for nodes in range(1, 150):
        bound = hermite_bound(nodes, kernel, differences, error)
        if bound <= error:
            if nodes**dimension > limit:
                raise out_of_reach(error, limit, nodes**dimension, "")
            return hermite_product(nodes, kernel, dimension, bound)
    raise out_of_reach(error, limit, 150**dimension, "more than ")


def hermite_bound(
    nodes: int, kernel: SquaredExponential, differences: DifferenceSet, wanted: float
) -> float:
    """The bound for a product rule: per coordinate the smaller of remainder and certificate.

    With delta_j the largest coordinate, all others are at most diameter / sqrt(2): the sum is
    taken for each j, the others on that shorter segment.

    >>> hermite_bound(20, SquaredExponential(1.0), DifferenceSet.of((4, 4), 4.0), 1e-7) < 1e-7
    True
    """
    scales = kernel.lengthscales(differences.dimension)
    full = differences.extents / scales
    short = np.minimum(full, differences.diameter / math.sqrt(2.0) / scales)
    far = [_segment_bound(nodes, extent, wanted) for extent in full.tolist()]
    near = [_segment_bound(nodes, extent, wanted) for extent in short.tolist()]
    rest = math.fsum(near)
    return ROUNDING + max(f + rest - n for f, n in zip(far, near, strict=True))


def _segment_bound(nodes: int, extent: float, wanted: float) -> float:
    bound = hermite_remainder(nodes, extent)
    if bound > 0.01 * wanted and _coarse_error(nodes, extent) <= wanted:
        bound = min(bound, hermite_certificate(nodes, extent, max(0.01 * wanted, 1e-12)))
    return bound


def _coarse_error(nodes: int, extent: float) -> float:
    z, w = hermite_nodes(nodes)
    delta = np.linspace(0.0, extent, 200)
    return float(np.max(np.abs(np.cos(np.outer(delta, z)) @ w - np.exp(-0.5 * delta**2))))


def hermite_product(
    nodes: int, kernel: SquaredExponential, dimension: int, error_bound: float
) -> Rule:
    """The tensor grid of `nodes` Gauss-Hermite nodes per coordinate, one of each +- pair.

    >>> hermite_product(3, SquaredExponential(1.0), 2, 1.0).frequencies.shape
    (5, 2)
    """
    z, w = hermite_nodes(nodes)
    grid = np.array(list(itertools.product(z, repeat=dimension)))
    weights = np.prod(np.array(list(itertools.product(w, repeat=dimension))), axis=1)
    first = nodes**dimension // 2  # the tensor grid is its own mirror image about the middle
    grid, weights = grid[first:], weights[first:].copy()
    weights[nodes % 2 :] *= 2.0
    frequencies = grid / kernel.lengthscales(dimension)
    return Rule(frequencies, weights / math.fsum(weights), error_bound)


# -- random


def random_rule(
    kernel: Stationary, differences: DifferenceSet, error: float, limit: int, seed: int
) -> Rule:
    """Random Fourier features from a public seed: as few as certify the wanted error.

    In one to three dimensions the bound is certified on a lattice for the frequencies drawn.
    Otherwise it is `random_bound`, which fails with probability 1e-9 over the draw.

    >>> rule = random_rule(SquaredExponential(1.0), DifferenceSet.of([1.0]), 0.1, 2048, seed=0)
    >>> rule.error_bound <= 0.1
    True
    """
    check_wanted(error, limit)
    rng = np.random.Generator(np.random.Philox(seed))
    drawn = kernel.frequencies(rng, max(limit // 2, 1), differences.dimension)
    low, high, bound = 0, 1, _random_bound(kernel, differences, drawn[:1], error)
    while bound > error:
        if high == len(drawn):
            needed = 2 * math.ceil(high * (bound / error) ** 2)
            raise out_of_reach(error, limit, max(needed, limit + 1))
        low, high = high, min(2 * high, len(drawn))
        bound = _random_bound(kernel, differences, drawn[:high], error)
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        trial = _random_bound(kernel, differences, drawn[:middle], error)
        low, high, bound = (low, middle, trial) if trial <= error else (middle, high, bound)
    return Rule(drawn[:high].copy(), np.full(high, 1.0 / high), bound)


def _random_bound(
    kernel: Stationary, differences: DifferenceSet, frequencies: Floats, error: float
) -> float:
    weights = np.full(len(frequencies), 1.0 / len(frequencies))
    smooth = smoothness(kernel, frequencies, weights)
    union = random_bound(kernel, differences.extents, frequencies)
    if differences.dimension > 3:
        return union

    def approximate(axes: tuple[Floats, ...]) -> Floats:
        *firsts, last = axes if len(axes) > 1 else (*axes, np.zeros(1))
        phases = np.zeros((1, len(frequencies)))
        for j, axis in enumerate(firsts):
            step = np.outer(axis, frequencies[:, j])
            phases = (phases[:, None, :] + step[None, :, :]).reshape(-1, len(frequencies))
        across = np.outer(last, frequencies[:, -1])
        values = (np.cos(phases) * weights) @ np.cos(across).T
        values -= (np.sin(phases) * weights) @ np.sin(across).T
        return values.reshape(len(firsts[0]), -1)

    largest = 1e9 / len(frequencies)
    certified = lattice_bound(
        kernel, differences, approximate, smooth, slack=0.1 * error, signed=True, largest=largest
    )
    return min(union, certified)


def random_bound(kernel: Stationary, extents: Floats, frequencies: Floats) -> float:
    """A uniform bound for random frequencies, failing with probability 1e-9 at most.

    The argument of Rahimi and Recht (2007): on the N corners of a lattice over half of the set,
    laid before the draw, Hoeffding gives |e| <= sqrt(2 log(2N / p) / count); between them e is
    larger by at most the slack, known for the frequencies drawn. The best of 25 lattices, for
    each of at most 64 counts tried on the way: p = 1e-9 / 1600.

    >>> omega = SquaredExponential(1.0).frequencies(np.random.default_rng(0), 100_000, 2)
    >>> random_bound(SquaredExponential(1.0), np.ones(2), omega) < 0.05
    True
    """
    count, dimension = len(frequencies), len(extents)
    smooth = smoothness(kernel, frequencies, np.full(count, 1.0 / count))
    before = Smoothness(smooth.slope, np.asarray(4.0 / kernel.lengthscales(dimension) ** 2))
    bounds: list[float] = []
    for slack in (10.0 ** (-k / 4.0) for k in range(25)):
        cells = before.cells(extents, slack)
        corners = float(np.sum(np.log(2.0 * cells + 1.0)))
        hoeffding = math.sqrt(2.0 * (math.log(2.0 * 1600.0 / FAILURE) + corners) / count)
        bounds.append(hoeffding + smooth.slack(extents / cells))
    return min(bounds) + ROUNDING


# -- how many features a lattice would take


def features_needed(kernel: Stationary, differences: DifferenceSet, error: float) -> int:
    """About how many lattice frequencies carry all but error / 3 of the spectral mass.

    >>> features_needed(SquaredExponential(0.25), DifferenceSet.of([1.0]), 1e-3) < 40
    True
    """
    extents = differences.extents
    scales = kernel.lengthscales(len(extents))
    spacing = 2.0 * math.pi / (extents / scales + 1.2 * radius_of(kernel, error))
    dimension, tail = len(extents), error / 3.0
    if isinstance(kernel, SquaredExponential):
        radius = math.sqrt(float(special.chdtri(dimension, tail)))
    elif kernel.form == "product":
        radius = -float(special.stdtrit(2.0 * kernel.smoothness, tail / (2 * dimension)))
        return _whole(float(np.sum(np.log(2.0 * radius / spacing + 1.0))))
    else:  # |omega l|^2 / d has the F distribution with d and 2 nu degrees of freedom
        small = float(special.fdtri(2.0 * kernel.smoothness, dimension, tail))
        radius = math.sqrt(dimension / small)
    ball = dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2 + 1)
    return _whole(ball + float(np.sum(np.log(radius / spacing))))


def _whole(logarithm: float) -> int:
    return math.ceil(math.exp(min(max(logarithm, 0.0), 690.0)))


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700.0 else math.inf
