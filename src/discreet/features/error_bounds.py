"""How far an approximate kernel is from the kernel, at most: two arguments that are proofs.

The approximations are k~(delta) = sum_i w_i cos(omega_i . delta) with weights that sum to 1.

*Poisson.* For lattice frequencies nh and raw weights w_n = p(nh) prod h, the sum over the whole
lattice is the periodised kernel (Poisson summation), with periods P = 2 pi / h:

    sum_n w_n cos(nh . delta) = sum_i k(delta + iP) = k(delta) + a(delta),    a >= 0.

Keep the terms of mass W, drop tau = 1 + a(0) - W, call the dropped terms t(delta), |t| <= tau, and
normalise: W (k~ - k) = (1 - W) k + a - t = tau k - t + a - a(0) k. As 0 <= k <= 1, this lies
between -(tau + a(0)) and 2 tau + sup a; and a(0) <= sup a. So |k~ - k| <= (2 tau + sup a) / W.

*Lattice.* Let e = k~ - k be evaluated on the corners of a lattice of cells with sides r_j that
covers the difference set. Interpolating linearly in one coordinate after the other averages corner
values, and each step errs by at most r_j^2 / 8 sup |d^2 e / d delta_j^2|. So
sup |e| <= max over corners |e| + sum_j r_j^2 / 8 H_j, with H_j a bound on that derivative.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats, Integers, Mask
from discreet.errors import InvalidArgument
from discreet.features.kernels import SquaredExponential, Stationary

ROUNDING = 1e-13
"""Allowance, in every bound, for floating point and for images below 1e-20 that are not summed."""

LARGEST_LATTICE = 20_000_000
_CHUNK = 100_000


@dataclass(frozen=True)
class DifferenceSet:
    """All delta with |delta_j| <= widths_j and ||delta|| <= diameter.

    >>> DifferenceSet.of((3, 4)).diameter
    5.0
    >>> DifferenceSet.of((3, 4), 3.5).extents
    array([3. , 3.5])
    """

    widths: tuple[float, ...]
    diameter: float

    def __post_init__(self) -> None:
        widths = tuple(float(width) for width in self.widths)
        if not widths or not all(0.0 < width < math.inf for width in widths):
            raise InvalidArgument("widths", "one positive number per coordinate", self.widths)
        if not 0.0 < self.diameter < math.inf:
            raise InvalidArgument("diameter", "a positive number", self.diameter)
        object.__setattr__(self, "widths", widths)
        object.__setattr__(self, "diameter", min(float(self.diameter), math.hypot(*widths)))

    @classmethod
    def of(cls, widths: ArrayLike, diameter: float | None = None) -> "DifferenceSet":
        """From any list of widths; the diameter is at most, and by default, that of the box."""
        sides = np.atleast_1d(np.asarray(widths, dtype=np.float64))
        if sides.ndim != 1:
            raise InvalidArgument("widths", "one positive number per coordinate", widths)
        box = math.hypot(*sides.tolist())
        return cls(tuple(sides.tolist()), box if diameter is None else diameter)

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return len(self.widths)

    @property
    def extents(self) -> Floats:
        """sup |delta_j| over the set, for each coordinate."""
        return np.minimum(np.array(self.widths), self.diameter)

    def on(self, columns: tuple[int, ...]) -> "DifferenceSet":
        """Its projection onto some of the coordinates."""
        return DifferenceSet.of([self.widths[column] for column in columns], self.diameter)

    def slabs(self, cells: Integers, *, signed: bool) -> Iterator[tuple[tuple[Floats, ...], Mask]]:
        """The corners of all lattice cells that meet the set: axes, and which corners count.

        Axis j has cells_j cells on [0, extent_j]; all axes but the first continue to the
        negative side when `signed`. A corner counts unless the corner one cell nearer to the
        origin in every coordinate is already outside the ball: then no cell at it meets it.
        """
        steps = self.extents / cells
        ranks = [np.arange(float(n + 1)) for n in cells.tolist()]
        if signed:
            ranks[1:] = [np.concatenate([-rank[:0:-1], rank]) for rank in ranks[1:]]
        axes = [rank * step for rank, step in zip(ranks, steps, strict=True)]
        near = [np.maximum(np.abs(r) - 1, 0) * s for r, s in zip(ranks, steps, strict=True)]
        others = np.zeros(1)
        for axis in near[1:]:
            others = np.add.outer(others, axis**2).ravel()
        rows = max(1, _CHUNK // len(others))
        for start in range(0, len(axes[0]), rows):
            part = slice(start, start + rows)
            mask = np.add.outer(near[0][part] ** 2, others) <= self.diameter**2 * (1.0 + 1e-12)
            if mask.any():
                yield (axes[0][part], *axes[1:]), mask


class Images(NamedTuple):
    """Bounds on the aliases a(delta) = sum over i != 0 of k(delta + iP) and their curvature."""

    at_zero: float
    largest: float
    curvature_at_zero: Floats
    largest_curvature: Floats


def images(kernel: Stationary, extents: Floats, periods: Floats) -> Images:
    """Sum the images of the kernel, at zero and at worst over |delta_j| <= extent_j.

    k and its curvature bound decrease in every |delta_j|, and |delta_j + i P_j| is at least
    |i| P_j - extent_j for i != 0: each image is bounded at its nearest corner. Images beyond
    k < 1e-20 decay geometrically and fit into `ROUNDING`.

    >>> from discreet.features.kernels import SquaredExponential
    >>> near = images(SquaredExponential(1.0), np.array([1.0]), np.array([5.0]))
    >>> math.isclose(near.largest, 2 * math.exp(-8) + 2 * math.exp(-81 / 2))
    True
    """
    if _separable(kernel):
        zero = _product_sums(kernel, 0.0 * extents, extents, periods)
        worst = _product_sums(kernel, extents, extents, periods)
        return Images(zero[0], worst[0], zero[1], worst[1])
    counts = _image_ranks(kernel, extents, periods)
    ranks = np.indices(tuple(counts + 1)).reshape(len(extents), -1).T[1:]
    copies = 2.0 ** np.count_nonzero(ranks, axis=1)
    centres = ranks * periods
    corners = np.maximum(centres - np.where(ranks > 0, extents, 0.0), 0.0)
    return Images(
        float(copies @ kernel.correlation(centres)),
        float(copies @ kernel.correlation(corners)),
        np.asarray(copies @ kernel.curvature(centres)),
        np.asarray(copies @ kernel.curvature(corners)),
    )


def images_to_sum(kernel: Stationary, extents: Floats, periods: Floats) -> float:
    """How many terms `images` adds up: many for isotropic Matern kernels in high dimension.

    >>> from discreet.features.kernels import Matern
    >>> images_to_sum(Matern(2.5, 1.0), np.ones(8), np.full(8, 5.0)) > 1e6
    True
    """
    counts = _image_ranks(kernel, extents, periods) + 1.0
    return float(np.sum(counts) if _separable(kernel) else np.prod(counts))


def _image_ranks(kernel: Stationary, extents: Floats, periods: Floats) -> Integers:
    reach = radius_of(kernel, 1e-20) * kernel.lengthscales(len(extents))
    return np.ceil((reach + extents) / periods).astype(np.int64)


def _product_sums(
    kernel: Stationary, offsets: Floats, extents: Floats, periods: Floats
) -> tuple[float, Floats]:
    """For a product kernel the sum over all images, less the one at zero, factorises."""
    scales = kernel.lengthscales(len(extents))
    unit = replace(kernel, lengthscale=1.0)
    bend = float(unit.curvature([[0.0]])[0, 0])
    sums, bends = np.empty_like(extents), np.empty_like(extents)
    for j, count in enumerate(_image_ranks(kernel, extents, periods).tolist()):
        centres = np.arange(1.0, count + 1.0) * periods[j]
        corners = np.maximum(centres - offsets[j], 0.0)[:, None] / scales[j]
        sums[j] = 2.0 * np.sum(unit.correlation(corners))
        bends[j] = 2.0 * np.sum(unit.curvature(corners))
    others = np.array([np.prod(np.delete(1.0 + sums, j)) for j in range(len(extents))])
    total = math.expm1(float(np.sum(np.log1p(sums))))
    # (bend + bends) others - bend, without infinity less infinity for smoothness 1/2
    return total, (bend * (others - 1.0) + bends * others) / scales**2


def _separable(kernel: Stationary) -> bool:
    return isinstance(kernel, SquaredExponential) or kernel.form == "product"


def radius_of(kernel: Stationary, level: float) -> float:
    """The distance along one axis, in lengthscales, at which the kernel falls to `level`.

    >>> from discreet.features.kernels import SquaredExponential
    >>> round(radius_of(SquaredExponential(0.2), math.exp(-8)), 3)
    4.0
    """
    unit = replace(kernel, lengthscale=1.0)
    low, high = 0.0, 100.0
    if unit.correlation([[high]])[0] > level:  # images beyond it would not be counted
        raise InvalidArgument("kernel", f"one that falls to {level:g} within {high:g} lengthscales")
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = unit.correlation([[middle]])[0] > level
        low, high = (middle, high) if above else (low, middle)
    return high


class Smoothness(NamedTuple):
    """Bounds on e = k~ - k: a part with |slope_j| bounded, and one with |d^2/d delta_j^2|."""

    slope: Floats
    curvature: Floats

    def slack(self, steps: Floats) -> float:
        """The most |e| can exceed its corner values: sum_j slope_j r_j / 2 + H_j r_j^2 / 8.

        The multilinear weights of the corners put them at r_j / 2 or less on average.
        """
        return float(np.sum(self.slope * steps / 2.0 + self.curvature * steps**2 / 8.0))

    def cells(self, extents: Floats, slack: float) -> Floats:
        """How many cells along each axis make the slack at most `slack`, shared equally."""
        share = slack / (len(extents) * (2.0 if self.slope.any() else 1.0))
        bent = extents * np.sqrt(self.curvature / (8.0 * share))
        return np.ceil(np.maximum(np.maximum(bent, extents * self.slope / (2.0 * share)), 8.0))


def smoothness(kernel: Stationary, frequencies: Floats, weights: Floats) -> Smoothness:
    """For any rule: |d^2 k| <= E_p[omega_j^2] and |d^2 k~| <= sum_i w_i omega_ij^2.

    Both are minus positive definite functions, largest at zero. The kernel of smoothness 1/2
    has no second derivative, but |k(delta) - k(delta')| <= sum_j |delta_j - delta'_j| / l_j.
    """
    moments = kernel.second_moment(frequencies.shape[1])
    rough = not bool(np.all(np.isfinite(moments)))
    slope = 1.0 / kernel.lengthscales(frequencies.shape[1]) if rough else np.zeros_like(moments)
    curvature = weights @ frequencies**2 + (0.0 if rough else moments)
    return Smoothness(slope, np.asarray(curvature))


def lattice_bound(
    kernel: Stationary,
    differences: DifferenceSet,
    approximate: Callable[[tuple[Floats, ...]], Floats],
    smooth: Smoothness,
    *,
    slack: float,
    signed: bool,
    largest: float = LARGEST_LATTICE,
) -> float:
    """sup |k~ - k| by the lattice argument, or infinity where that takes too many points.

    `approximate` gives k~ on the product of its axes, the first axis as rows. `signed` says
    that k~ is not even in each coordinate, so that only half of the set may be left out.
    """
    cells = smooth.cells(differences.extents, slack)
    if float(np.prod((1.0 + signed) * cells + 1.0)) > largest:
        return math.inf
    worst = 0.0
    for axes, mask in differences.slabs(cells.astype(np.int64), signed=signed):
        near = approximate(axes)[mask]
        corners = np.stack([axis.ravel()[mask.ravel()] for axis in _mesh(axes)], axis=1)
        worst = max(worst, float(np.max(np.abs(near - kernel.correlation(corners)))))
    return worst + smooth.slack(differences.extents / cells) + ROUNDING


def _mesh(axes: tuple[Floats, ...]) -> tuple[Floats, ...]:
    return tuple(np.meshgrid(*axes, indexing="ij"))
