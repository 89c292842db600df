"""The best point of a domain for many scores at once.

    score_j(x) = tilt_j phi(x) + optimism ||L^-1 phi(x)||        L L^T the posterior precision

The best of a pool of spread points and, for additive models, the groups' own maxima put
together are refined by gradients and snapped to the domain; discrete coordinates are then
tried value by value, and the border of a predicate is followed. The best admitted point wins.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize

from discreet.arrays import Floats, frozen
from discreet.domain.box import Box, Continuous
from discreet.domain.unit_cube import radius_left
from discreet.errors import Refused
from discreet.features.maps import AdditiveFeatures, FeatureMap

#: How many points of the domain are compared before the best are refined; of one coordinate under
#: each of many contexts.
POOL, SMALLEST_POOL = 1024, 256
#: How many of them are refined by gradients, and how far apart they are.
STARTS = 6
APART = 0.15
#: Under a predicate: how many steps, tries in each, and bisections in each try.
STEPS = 24
TRIES = 8
BISECTIONS = 12
#: So many features of a pool under each of many contexts are held at once.
LARGEST = 1 << 23
#: How many public points stand for where people will be.
PUBLIC = 256
#: Up to how many values of a discrete coordinate are tried one by one.
SWEEP = 64


@dataclass(frozen=True, eq=False)
class Score:
    """mean-like tilts plus `optimism` posterior standard deviations."""

    features: FeatureMap
    whitening: Floats
    optimism: float

    def values(self, points: Floats, tilts: Floats) -> Floats:
        """The score of each point under its own row of tilts, or under a common tilt."""
        phi = self.features(points)
        return np.sum(phi * tilts, axis=1) + self._bonus(phi)

    def table(self, points: Floats, tilts: Floats) -> Floats:
        """The score of every point (column) under every tilt (row)."""
        phi = self.features(points)
        return tilts @ phi.T + self._bonus(phi)

    def values_and_gradient(self, points: Floats, tilts: Floats) -> tuple[Floats, Floats]:
        """The scores and their derivatives in x, each point under its own row of tilts."""
        phi = self.features(points)
        linear = np.sum(phi * tilts, axis=1)
        if self.optimism == 0.0:
            return linear, self.features.gradient(points, tilts)
        whitened = self.whitening @ phi.T
        std = np.sqrt(np.square(whitened).sum(axis=0))
        sigma_phi = whitened.T @ self.whitening
        slope = tilts + self.optimism * sigma_phi / np.maximum(std, 1e-300)[:, None]
        return linear + self.optimism * std, self.features.gradient(points, slope)

    def _bonus(self, phi: Floats) -> Floats | float:
        if self.optimism == 0.0:
            return 0.0
        # One product a row: in a product of matrices a row's last bits depend on the others.
        whitened = np.matmul(phi[:, None, :], self.whitening.T)[:, 0, :]
        return self.optimism * np.sqrt(np.square(whitened).sum(axis=1))


def maximise(score: Score, domain: Box, tilts: Floats, *, context: Floats | None = None) -> Floats:
    """The best scaled point for each tilt, over the columns that `context` does not fix."""
    pool = _pool(domain, context)
    starts = np.empty((len(tilts), 0, pool.shape[1]))
    if isinstance(score.features, AdditiveFeatures):
        starts = domain.snap(_groups_together(score.features, pool, tilts))[:, None, :]
    if not _separates(score, domain):
        starts = np.concatenate([_starts(score, pool, tilts), starts], axis=1)
    rows = starts.reshape(-1, starts.shape[-1])
    own = np.repeat(tilts, starts.shape[1], axis=0)
    found = _climb(score, domain, rows, own, given=context is not None)
    found = _along_border(score, domain, found, own, given=context is not None)
    best = _best_option(score, domain, found.reshape(starts.shape), tilts)
    return _climb(score, domain, best, tilts, given=context is not None)


def maximise_under(score: Score, domain: Box, tilts: Floats, contexts: Floats) -> Floats:
    """As `maximise`, each tilt under a context (row) of its own: many people's in one search."""
    if isinstance(score.features, AdditiveFeatures):
        pairs = zip(tilts[:, None, :], contexts, strict=True)
        return np.concatenate([maximise(score, domain, t, context=c) for t, c in pairs])
    together = max(1, LARGEST // (POOL * score.features.dimension))
    starts = np.concatenate(
        [
            _starts_under(score, domain, tilts[i : i + together], contexts[i : i + together])
            for i in range(0, len(contexts), together)
        ]
    )
    rows, own = starts.reshape(-1, starts.shape[-1]), np.repeat(tilts, starts.shape[1], axis=0)
    found = _climb(score, domain, rows, own, given=True)
    best = _best_option(score, domain, found.reshape(starts.shape), tilts)
    best = _along_border(score, domain, best, tilts, given=True)
    return _climb(score, domain, best, tilts, given=True)


def latin_hypercube(count: int, dimension: int, rng: np.random.Generator) -> Floats:
    """`count` uniform points, exactly one in each of `count` slices of every coordinate.

    >>> rng = np.random.Generator(np.random.Philox(1))
    >>> sorted(np.floor(4 * latin_hypercube(4, 1, rng)[:, 0]).tolist())
    [0.0, 1.0, 2.0, 3.0]
    """
    slices = rng.permuted(np.tile(np.arange(count), (dimension, 1)), axis=1).T
    return (slices + rng.random((count, dimension))) / count


def spread(domain: Box, count: int, rng: np.random.Generator) -> Floats:
    """`count` scaled points that fill the admitted part of the domain evenly."""
    found = domain.spread(latin_hypercube(count, len(domain.names), rng))
    while len(found) < count:
        more = domain.spread(latin_hypercube(4 * count, len(domain.names), rng))
        found = np.concatenate([found, more])
    return found[:count]


@lru_cache(maxsize=8)
def public_points(domain: Box) -> Floats:
    """Points that fill the domain, the same for everyone: where people may be."""
    return frozen(spread(domain, PUBLIC, np.random.Generator(np.random.Philox(PUBLIC))))


def _pool(domain: Box, context: Floats | None) -> Floats:
    rng = np.random.Generator(np.random.Philox(POOL))
    uniforms = latin_hypercube(POOL, len(domain.names), rng)
    # Maxima like the border: a tenth of every coordinate lies on it.
    pool = domain.spread(np.clip(1.1 * uniforms - 0.05, 0.0, 1.0), context=context)
    if len(pool) == 0 and context is not None:
        raise Refused("no action satisfies the plan's feasibility predicate in this context")
    missing = POOL - len(pool) if context is None else 0
    return np.concatenate([pool, spread(domain, missing, rng)]) if missing else pool


def first_of_best(points: Floats, values: Floats) -> int:
    """The position of the point with the highest value; of equal points, the first.

    >>> first_of_best(np.array([[0.5], [0.5]]), np.array([0.1, 0.1 + 1e-17]))
    0
    """
    # Equal rows can differ in the last bit of their value, by where they stand in a batch.
    return int(np.argmax((points == points[np.argmax(values)]).all(axis=1)))


def _starts(score: Score, pool: Floats, tilts: Floats) -> Floats:
    """For each tilt the best points of the pool (J, n, d), none near a better one."""
    values = score.table(pool, tilts)
    chosen: list[Floats] = []
    for _ in range(min(STARTS, len(pool))):
        best = pool[values.argmax(axis=1)]
        chosen.append(best)
        distances = np.linalg.norm(pool - best[:, None, :], axis=2)
        values = np.where(distances < APART, -np.inf, values)
    return np.stack(chosen, axis=1)


def _starts_under(score: Score, domain: Box, tilts: Floats, contexts: Floats) -> Floats:
    """As `_starts`, from a pool under each context."""
    rng = np.random.Generator(np.random.Philox(POOL))
    size = min(POOL, SMALLEST_POOL << (len(domain.free) - 1))
    uniforms = latin_hypercube(size, len(domain.free), rng)
    pools = domain.under(np.clip(1.1 * uniforms - 0.05, 0.0, 1.0), contexts)
    flat = pools.reshape(-1, pools.shape[2])
    values = np.where(
        domain.admits(flat), score.values(flat, np.repeat(tilts, size, axis=0)), -np.inf
    ).reshape(pools.shape[:2])
    if values.max(axis=1).min() == -np.inf:
        raise Refused("no action satisfies the plan's feasibility predicate in this context")
    people, chosen = np.arange(len(pools)), list[Floats]()
    for _ in range(STARTS):
        best = pools[people, values.argmax(axis=1)]
        chosen.append(best)
        distances = np.linalg.norm(pools - best[:, None, :], axis=2)
        far = np.where(distances < APART, -np.inf, values)
        values = np.where(far.max(axis=1, keepdims=True) > -np.inf, far, values)
    return np.stack(chosen, axis=1)


def _separates(score: Score, domain: Box) -> bool:
    """Whether every coordinate has its own maximum, which the pool's slices do not miss."""
    groups = [group.columns for group in score.features.groups]
    alone = len(groups) > 1 and len({column for group in groups for column in group}) == len(groups)
    free = domain.feasible is None and domain.shape == "box" and all(domain.continuous)
    return score.optimism == 0.0 and alone and max(map(len, groups)) == 1 and free


def _groups_together(features: AdditiveFeatures, pool: Floats, tilts: Floats) -> Floats:
    """The maximum of each tilt phi, which is a sum over groups: every group's best columns."""
    phi = features(pool)
    together = np.repeat(pool[:1], len(tilts), axis=0)
    for group in features.groups:
        best = np.argmax(tilts[:, group.features] @ phi[:, group.features].T, axis=1)
        columns = list(group.columns)
        together[:, columns] = pool[best][:, columns]
    return together


def _climb(score: Score, domain: Box, rows: Floats, tilts: Floats, *, given: bool) -> Floats:
    """Improve every row under its own tilt: by gradients, then value by value."""

    def improved(points: Floats, columns: list[int]) -> Floats:
        refined = _refine(score, domain, points, tilts, columns)
        options = [points, refined, _reached(domain, points, refined)]
        return _best_option(score, domain, np.stack(options, axis=1), tilts)

    numbers, smooth = _movable_columns(domain, given=given)
    points = improved(rows, numbers)
    if _discrete_names(domain, given=given):
        points = improved(_sweep(score, domain, points, tilts, given=given), smooth)
    return points


def _refine(score: Score, domain: Box, rows: Floats, tilts: Floats, columns: list[int]) -> Floats:
    """One quasi-Newton search over all rows at once: their scores do not interact."""
    if not columns:
        return rows
    points = rows.copy()
    fixed = [column for column in range(rows.shape[1]) if column not in columns]
    radius = radius_left(rows, fixed)

    def cost(flat: Floats) -> tuple[float, Floats]:
        moved = flat.reshape(len(points), -1)
        points[:, columns] = moved
        if domain.shape == "ball":
            points[:, columns] = _drawn_in(moved, radius)
        values, gradient = score.values_and_gradient(points, tilts)
        slopes = gradient[:, columns]
        if domain.shape == "ball":
            slopes = _through_drawing_in(slopes, moved, radius)
        return -float(values.sum()), -slopes.ravel()

    begin = points[:, columns].ravel()
    bounds = [(0.0, 1.0)] * begin.size
    found = minimize(
        cost, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60}
    )
    points[:, columns] = found.x.reshape(len(points), -1)
    return domain.snap(points)


def _drawn_in(moved: Floats, radius: Floats) -> Floats:
    """Rows outside the ball, pulled towards its centre onto the sphere."""
    offsets = moved - 0.5
    lengths = np.linalg.norm(offsets, axis=1, keepdims=True)
    return 0.5 + offsets * np.minimum(1.0, radius / np.maximum(lengths, 1e-300))


def _through_drawing_in(slopes: Floats, moved: Floats, radius: Floats) -> Floats:
    """The chain rule: outside the ball only the part along the sphere counts, scaled."""
    offsets = moved - 0.5
    lengths = np.maximum(np.linalg.norm(offsets, axis=1, keepdims=True), 1e-300)
    outward = offsets / lengths
    along = slopes - outward * np.sum(slopes * outward, axis=1, keepdims=True)
    return np.where(lengths > radius, along * radius / lengths, slopes)


def _along_border(score: Score, domain: Box, rows: Floats, tilts: Floats, *, given: bool) -> Floats:
    """Move rows that only the predicate keeps from climbing, along its border.

    The predicate has no gradient: random steps are pushed up the slope until bisection finds
    the border, so that they only have to search along it. A row that finds nothing better
    halves its step.
    """
    columns = _movable_columns(domain, given=given)[1]
    if domain.feasible is None or not columns:
        return rows
    stuck = ~domain.admits(_refine(score, domain, rows, tilts, columns))
    points, own, found = rows[stuck], tilts[stuck], rows.copy()
    rng = np.random.Generator(np.random.Philox(POOL))
    step = np.full((len(points), 1, 1), 0.1)
    for _ in range(STEPS if len(points) else 0):
        push = 2.0 * step * _uphill(score, points, own, columns)[:, None, :]
        moves = np.zeros((len(points), TRIES, rows.shape[1]))
        moves[:, :, columns] = rng.standard_normal((len(points), TRIES, len(columns)))
        tried = points[:, None, :] + step * moves
        reached = _reached(domain, tried - push, tried + push)
        options = np.concatenate([points[:, None, :], reached], axis=1)
        best = _best_option(score, domain, options, own)
        step = np.where((best == points).all(axis=1)[:, None, None], step / 2, step)
        points = best
    found[stuck] = points
    return found


def _uphill(score: Score, points: Floats, tilts: Floats, columns: list[int]) -> Floats:
    """The direction of steepest ascent within some columns, of length 1."""
    slopes = np.zeros_like(points)
    slopes[:, columns] = score.values_and_gradient(points, tilts)[1][:, columns]
    return slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300)


def _reached(domain: Box, inner: Floats, outer: Floats) -> Floats:
    """How far the predicate admits going from `inner` points to `outer` ones, by bisection."""
    if domain.feasible is None:
        return outer
    shape = inner.shape
    near, far = domain.snap(inner.reshape(-1, shape[-1])), domain.snap(outer.reshape(-1, shape[-1]))
    near = np.where(domain.admits(far)[:, None], far, near)
    for _ in range(BISECTIONS):
        middle = domain.snap((near + far) / 2)
        admitted = domain.admits(middle)[:, None]
        near, far = np.where(admitted, middle, near), np.where(admitted, far, middle)
    return near.reshape(shape)


def _best_option(score: Score, domain: Box, options: Floats, tilts: Floats) -> Floats:
    """For each tilt the best of its own options (J, n, d) that the domain admits."""
    count, each, d = options.shape
    flat = options.reshape(-1, d)
    values = score.values(flat, np.repeat(tilts, each, axis=0))
    values = np.where(domain.admits(flat), values, -np.inf).reshape(count, each)
    return options[np.arange(count), values.argmax(axis=1)]


def _sweep(score: Score, domain: Box, points: Floats, tilts: Floats, *, given: bool) -> Floats:
    """Try every value of each free discrete coordinate, one coordinate after the other."""
    for name in _discrete_names(domain, given=given):
        settings = domain.settings(name)
        options = np.repeat(points[:, None, :], len(settings) + 1, axis=1)
        options[:, 1:, list(domain.columns(name))] = settings
        points = _best_option(score, domain, options, tilts)
    return points


def _movable_columns(domain: Box, *, given: bool) -> tuple[list[int], list[int]]:
    """The columns of ours that gradients may move: all numbers, and those that need no snap."""
    ours = [column for name in _ours(domain, given=given) for column in domain.columns(name)]
    numbers = [column for column in ours if domain.movable[column]]
    return numbers, [column for column in ours if domain.continuous[column]]


def _discrete_names(domain: Box, *, given: bool) -> list[str]:
    """The coordinates of ours that have few enough values to try one by one."""
    return [
        name
        for name in _ours(domain, given=given)
        if not isinstance(coordinate := domain.coordinate(name), Continuous)
        and coordinate.count <= SWEEP
    ]


def _ours(domain: Box, *, given: bool) -> tuple[str, ...]:
    return tuple(name for name in domain.names if not (given and name in domain.context))
