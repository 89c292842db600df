"""Grid rules: equispaced frequencies weighted by the spectral density, the default.

The trapezoid rule in d dimensions. It needs no product form, so isotropic Matern kernels work, and
for smooth kernels it converges as fast as Gauss-Hermite with fewer points. The bounds are proved
in `error_bounds`.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.features.error_bounds import (
    ROUNDING,
    DifferenceSet,
    Images,
    Smoothness,
    images,
    images_to_sum,
    lattice_bound,
    radius_of,
    smoothness,
)
from discreet.features.kernels import Matern, Stationary
from discreet.features.quadrature import Rule, check_wanted, features_needed, out_of_reach

_MOST_IMAGES = 20_000


@dataclass(frozen=True, eq=False)
class _Lattice:
    """The heaviest frequencies of one lattice, as orbits under reflections of the coordinates.

    Orbit i stands for all sign changes of ranks_i; `count` and `mass` are those of the first
    i + 1 orbits, heaviest density first.
    """

    kernel: Stationary
    spacing: Floats
    ranks: Integers
    raw: Floats
    count: Integers
    mass: Floats
    alias: Images

    def proven(self) -> Floats:
        """(2 tau + sup a) / W for every number of orbits (see `error_bounds`, Poisson)."""
        dropped = np.maximum(1.0 + self.alias.at_zero - self.mass, 0.0)
        return (2.0 * dropped + self.alias.largest) / self.mass + ROUNDING

    def smoothness(self, orbits: int) -> Smoothness:
        """Bounds on the derivatives of k~ - k, the smaller of two.

        From W e = (1 - W) k + a - t: W |d^2 e| <= |1 - W| M + sup |d^2 a| + sum of the dropped
        w omega^2, which is M - d^2 a(0) less the kept ones. It shrinks as the rule gets better.
        """
        frequencies = self.ranks[:orbits] * self.spacing
        weights = self.raw[:orbits] / self.mass[orbits - 1]
        plain = smoothness(self.kernel, frequencies, weights)
        moments = self.kernel.second_moment(len(self.spacing))
        if plain.slope.any():
            return plain
        mass = self.mass[orbits - 1]
        kept = mass * (weights @ frequencies**2)
        dropped = np.maximum(moments + self.alias.curvature_at_zero - kept, 0.0)
        bent = abs(1.0 - mass) * moments + self.alias.largest_curvature + dropped
        return Smoothness(plain.slope, np.minimum(plain.curvature, bent / mass))

    def measured(self, differences: DifferenceSet) -> Floats:
        """The largest |k~ - k| over a coarse lattice, for every number of orbits at once."""
        per_axis = {1: 400, 2: 36, 3: 12}[len(self.spacing)]
        axes = [np.arange(per_axis) * (extent / (per_axis - 1)) for extent in differences.extents]
        mesh = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        mesh = mesh[np.sum(mesh**2, axis=1) <= differences.diameter**2 * (1.0 + 1e-9)]
        terms = np.tile(self.raw, (len(mesh), 1))
        for j, step in enumerate(self.spacing.tolist()):
            table = np.cos(np.outer(mesh[:, j], np.arange(int(self.ranks[:, j].max()) + 1) * step))
            terms *= table[:, self.ranks[:, j]]
        near = np.cumsum(terms, axis=1) / self.mass
        return np.max(np.abs(near - self.kernel.correlation(mesh)[:, None]), axis=0)

    def certified(self, differences: DifferenceSet, orbits: int, slack: float) -> float:
        """The lattice bound for the first orbits; infinite where it is out of reach."""
        ranks = self.ranks[:orbits]
        tensor = np.zeros(tuple(ranks.max(axis=0) + 1))
        tensor[tuple(ranks.T)] = self.raw[:orbits] / self.mass[orbits - 1]

        def approximate(axes: tuple[Floats, ...]) -> Floats:
            values = tensor
            for j, axis in enumerate(axes):
                table = np.cos(np.outer(axis, np.arange(tensor.shape[j]) * self.spacing[j]))
                values = np.moveaxis(np.tensordot(values, table, axes=(j, 1)), -1, j)
            return values.reshape(len(axes[0]), -1)

        smooth = self.smoothness(orbits)
        return lattice_bound(
            self.kernel, differences, approximate, smooth, slack=slack, signed=False
        )

    def rule(self, orbits: int, bound: float) -> Rule:
        """One of each pair of the first orbits, zero first, then by growing level."""
        return _half_rule(self.ranks[:orbits], self.raw[:orbits], self.spacing, bound)


def grid_rule(kernel: Stationary, differences: DifferenceSet, error: float, limit: int) -> Rule:
    """The smallest lattice rule found whose error bound is at most `error`.

    Frequencies n h with periods 2 pi / h_j = extent_j + c l_j, the largest weights kept; c is
    searched. The bound is the smaller of the Poisson and (d <= 3) the lattice bound.

    >>> from discreet.features.kernels import SquaredExponential
    >>> rule = grid_rule(SquaredExponential(0.5), DifferenceSet.of([1.0]), 1e-3, 2048)
    >>> 2 * len(rule.weights) - 1, rule.error_bound <= 1e-3
    (7, True)
    """
    check_wanted(error, limit)
    kernel.check(differences.dimension)
    about = features_needed(kernel, differences, error)
    wide = max(2 * limit, 4096)
    if about < 4 * wide and _images_ahead(kernel, differences.extents, error) <= _MOST_IMAGES:
        found = _search(kernel, differences, error, wide)
        if found is not None:
            lattice, orbits, bound = found
            if lattice.count[orbits - 1] <= limit:
                return lattice.rule(orbits, bound)
            raise out_of_reach(error, limit, int(lattice.count[orbits - 1]), "")
        if about <= wide:
            raise out_of_reach(error, limit, wide + 1, "at least ")
    raise out_of_reach(error, limit, max(about, limit + 1), "about ")


def common_rule(
    kernels: tuple[Stationary, ...], differences: DifferenceSet, error: float, limit: int
) -> Rule:
    """One lattice for several kernels, its weights the average of theirs.

    The period leaves room for lengthscales up to half the domain; a longer kernel is taken for
    its periodic sum, which the lattice gives without error. Frequencies are kept until every
    kernel has dropped at most error / 4 of its weight. The stated bound is that of the worst
    kernel, by Poisson's formula (see `error_bounds`).

    >>> from discreet.features.kernels import SquaredExponential
    >>> bank = (SquaredExponential(0.1), SquaredExponential(0.2))
    >>> rule = common_rule(bank, DifferenceSet.of([1.0]), 1e-3, 2048)
    >>> rule.error_bound <= 1e-3, float(rule.weights.sum().round(12))
    (True, 1.0)
    """
    check_wanted(error, limit)
    extents = differences.extents
    scales = np.array([kernel.lengthscales(len(extents)) for kernel in kernels])
    longest = np.minimum(scales.max(axis=0), extents / 2.0)
    reach = max(radius_of(kernel, error / 8.0) for kernel in kernels)
    periods = extents + reach * longest
    spacing = 2.0 * math.pi / periods
    shortest = kernels[int(np.argmin(scales.min(axis=1)))]
    ranks = _heaviest(shortest, spacing * scales.min(axis=0), 4 * limit)
    copies = 2.0 ** np.count_nonzero(ranks, axis=1)
    raw = np.array([copies * k.spectral_density(ranks * spacing) for k in kernels])
    raw *= float(np.prod(spacing))
    kept = _until_dropped(raw, copies, error / 4.0, limit)
    shares = raw[:, :kept] / raw[:, :kept].sum(axis=1, keepdims=True)
    bounds: list[float] = []
    for kernel, scale, whole in zip(kernels, scales, raw, strict=True):
        mass = float(whole[:kept].sum())
        if bool(np.all(scale <= longest)):
            alias = images(kernel, extents, periods)
            bounds.append((2.0 * max(1.0 + alias.at_zero - mass, 0.0) + alias.largest) / mass)
        else:
            bounds.append(2.0 * (float(whole.sum()) - mass) / mass)
    return _half_rule(ranks[:kept], shares.mean(axis=0), spacing, max(bounds) + ROUNDING)


def _until_dropped(raw: Floats, copies: Floats, most: float, limit: int) -> int:
    """How many orbits, heaviest first, leave at most a share `most` of each kernel's weight."""
    held = np.cumsum(raw, axis=1) / raw.sum(axis=1, keepdims=True)
    kept = int(np.argmax((held >= 1.0 - most).all(axis=0))) + 1
    needed = int(copies[:kept].sum())
    if needed > limit or held[:, -1].min() < 1.0 - most:
        raise out_of_reach(4.0 * most, limit, needed, "at least ")
    return kept


def _images_ahead(kernel: Stationary, extents: Floats, error: float) -> float:
    periods = extents + radius_of(kernel, error) * kernel.lengthscales(len(extents))
    return images_to_sum(kernel, extents, periods)


def _search(
    kernel: Stationary, differences: DifferenceSet, error: float, limit: int
) -> tuple[_Lattice, int, float] | None:
    cap = min(64, limit)
    while True:
        reach = radius_of(kernel, error)
        lattices = [
            _lay(kernel, differences.extents, reach * factor, cap)
            for factor in np.linspace(0.85, 1.75, 19)
        ]
        found = _smallest(lattices, differences, error)
        if found is not None or cap == limit:
            return found
        cap = min(4 * cap, limit)


def _smallest(
    lattices: list[_Lattice], differences: DifferenceSet, error: float
) -> tuple[_Lattice, int, float] | None:
    """Try the candidates from few features to many; the proven bound needs no lattice."""
    tries: list[tuple[int, float, int, int]] = []
    for which, lattice in enumerate(lattices):
        proven = lattice.proven()
        for curve, levels in _curves(lattice, proven, differences):
            for level in levels:
                orbits = int(np.argmax(curve <= level * error)) + 1
                if curve[orbits - 1] <= level * error:
                    rank = (int(lattice.count[orbits - 1]), float(curve[orbits - 1]))
                    tries.append((*rank, which, orbits))
    for _, measured, which, orbits in sorted(tries):
        lattice = lattices[which]
        bound = float(lattice.proven()[orbits - 1])
        if differences.dimension <= 3:
            slack = min(max((error - measured) / 2.0, 0.01 * error), 0.1 * error)
            bound = min(bound, lattice.certified(differences, orbits, slack))
        if bound <= error:
            return lattice, orbits, bound
    return None


def _curves(
    lattice: _Lattice, proven: Floats, differences: DifferenceSet
) -> list[tuple[Floats, tuple[float, ...]]]:
    curves: list[tuple[Floats, tuple[float, ...]]] = [(proven, (1.0,))]
    if differences.dimension <= 3:
        curves.append((lattice.measured(differences), (0.99, 0.96, 0.92, 0.85, 0.7)))
    return curves


def _lay(kernel: Stationary, extents: Floats, margin: float, cap: int) -> _Lattice:
    """The heaviest orbits, `cap` points or a few less, of the lattice with this margin."""
    scales = kernel.lengthscales(len(extents))
    periods = extents + margin * scales
    spacing = 2.0 * math.pi / periods
    ranks = _heaviest(kernel, spacing * scales, cap)
    copies = 2 ** np.count_nonzero(ranks, axis=1)
    count = np.cumsum(copies)
    keep = count <= cap
    raw = copies * kernel.spectral_density(ranks * spacing) * float(np.prod(spacing))
    return _Lattice(
        kernel,
        spacing,
        ranks[keep],
        raw[keep],
        count[keep],
        np.cumsum(raw)[keep],
        images(kernel, extents, periods),
    )


def _heaviest(kernel: Stationary, scaled_spacing: Floats, cap: int) -> Integers:
    """Orthant ranks by falling density, standing for at least `cap` lattice points.

    Up to a monotone map the density is a sum over coordinates: of squares, or of
    log(1 + x^2 / (2 nu)) for the product Matern.
    """
    product = isinstance(kernel, Matern) and kernel.form == "product"
    freedom = 2.0 * kernel.smoothness if isinstance(kernel, Matern) else 1.0
    radius = 1.0
    while True:
        top = math.log1p(radius**2 / freedom) if product else radius**2
        ranks, levels = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
        for step in scaled_spacing.tolist():
            axis = np.arange(math.floor(radius / step) + 1, dtype=np.int64)
            level = np.log1p((axis * step) ** 2 / freedom) if product else (axis * step) ** 2
            total = np.add.outer(levels, level)
            old, new = np.nonzero(total <= top * (1.0 + 1e-12))
            ranks, levels = np.column_stack([ranks[old], axis[new]]), total[old, new]
        if np.sum(2.0 ** np.count_nonzero(ranks, axis=1)) >= cap:
            return ranks[np.argsort(levels, kind="stable")]
        radius *= 1.25


def _half_rule(ranks: Integers, raw: Floats, spacing: Floats, bound: float) -> Rule:
    """One of each +- pair of the orbits, zero first, with normalised weights."""
    indices: list[Integers] = []
    weights: list[float] = []
    for rank, weight in zip(ranks, raw, strict=True):
        halves = _half_orbit(rank)
        indices.extend(halves)
        weights.extend([weight / len(halves)] * len(halves))
    table = np.array(indices, dtype=np.int64)
    normalised = np.array(weights) / math.fsum(weights)
    steps = tuple(spacing.tolist())
    return Rule(np.multiply(table, spacing, dtype=np.float64), normalised, bound, table, steps)


def _half_orbit(rank: Integers) -> list[Integers]:
    """One of each +- pair among the sign changes of a rank: the first nonzero entry positive."""
    nonzero = np.flatnonzero(rank)
    halves: list[Integers] = []
    for signs in itertools.product((1, -1), repeat=max(len(nonzero) - 1, 0)):
        half = rank.copy()
        half[nonzero[1:]] *= np.array(signs, dtype=np.int64)
        halves.append(half)
    return halves
