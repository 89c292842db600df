"""The best action for each of many people, whatever the others bring.

Each person fixes the context's columns; the rest is theirs to find. A public pool of actions is
scored under their context, then ever smaller neighbourhoods of the best so far. No row's
arithmetic touches another row, so a person gets the same action, bit for bit, alone or in a batch:
batches are for speed, and give nobody away.

Who gets no action at all must not be up to whoever wrote the scores or the menu: they could ask
about a private context by it. A context in which the pool has an admitted action gets one, whatever
they are (`first_admitted`).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.arrays import Floats, Indices, Mask
from discreet.domain.box import Box, Continuous
from discreet.errors import Refused
from discreet.features.given import Rest, rest_of
from discreet.features.maps import FeatureMap
from discreet.learning.search import SWEEP, Score, latin_hypercube

#: Actions in a pool: twice as many for each further coordinate, more where many are discrete.
POOL, LARGEST_POOL = 128, 1024
#: Actions in a neighbourhood.
NEAR = 32
#: So many rows of features at a time stay in a processor's cache.
ROWS = 16_384
#: So many numbers of a person's combinations take the room of one row.
COMBINED = 1024
#: What a score counts as that is no finite number: an admitted action still beats all others.
LOWEST = -float(np.finfo(np.float64).max)
#: Said to whom no action is admitted.
NOTHING = "no action satisfies the plan's feasibility predicate in this context"


@dataclass(frozen=True, eq=False)
class _Whole:
    """Everyone's scores, by all features."""

    score: Score
    tilts: Floats

    def values(self, options: Floats) -> Floats:
        """(people, options) of options (people, options, d)."""
        people, each, d = options.shape
        own = np.repeat(self.tilts, each, axis=0)
        return self.score.values(options.reshape(-1, d), own).reshape(people, each)


@dataclass(frozen=True, eq=False)
class _Reduced:
    """Everyone's scores by the few functions that their context leaves of the features.

    tilt phi = (T^T tilt) psi        ||L^-1 phi||^2 = psi^T (L^-1 T)^T (L^-1 T) psi
    """

    rest: Rest
    optimism: float
    tilts: Floats
    grams: Floats

    @classmethod
    def of(cls, score: Score, rest: Rest, tilts: Floats, points: Floats) -> "_Reduced":
        """By each person's context, in its columns of their point."""
        # Stacks of products, one a person: whoever else is in the batch changes no bit.
        combined = rest.combinations(points)
        own = np.matmul(tilts[:, None, :], combined)[:, 0, :]
        if score.optimism == 0.0:
            return cls(rest, 0.0, own, np.empty(0))
        whitened = np.matmul(score.whitening, combined)
        return cls(rest, score.optimism, own, np.matmul(whitened.transpose(0, 2, 1), whitened))

    def values(self, options: Floats) -> Floats:
        """(people, options) of options (people, options, d), or of the same for all (1, ...)."""
        people, each, d = options.shape
        psi = self.rest.psi(options.reshape(-1, d)).reshape(people, each, -1)
        values = np.matmul(psi, self.tilts[:, :, None])[:, :, 0]
        if self.optimism == 0.0:
            return values
        variances = np.sum(np.matmul(psi, self.grams) * psi, axis=2)
        return values + self.optimism * np.sqrt(np.maximum(variances, 0.0))


_Scores = _Whole | _Reduced


def best_under(score: Score, domain: Box, tilts: Floats, contexts: Floats) -> tuple[Floats, Mask]:
    """The best scaled action under each context (row) and its tilt; which rows have any at all.

    >>> from discreet.agreement.plan import Plan
    >>> from discreet.privacy.budget import NonPrivate
    >>> box = Box({"dose": (0, 10), "age": (0, 100)}, context=["age"])
    >>> plan = Plan(domain=box, privacy=NonPrivate())
    >>> tilt = plan.map(np.array([[0.7, 0.5]]))
    >>> score = Score(plan.map, np.zeros((tilt.size, tilt.size)), 0.0)
    >>> points, admitted = best_under(score, box, tilt, np.array([[0.5]]))
    >>> points.round(2).tolist(), admitted.tolist()
    ([[0.7, 0.5]], [True])
    """
    rest = _worthwhile(score.features, domain)
    width = 1 if rest is None else max(1, score.features.dimension * rest.dimension // COMBINED)
    together = max(1, ROWS // (len(_pool(domain)) * width))
    points, admitted = [np.empty((0, domain.dimension))], [np.empty(0, np.bool_)]
    for start in range(0, len(contexts), together):
        some = slice(start, start + together)
        found = _best(score, rest, domain, tilts[some], contexts[some])
        points.append(found[0])
        admitted.append(found[1])
    return np.concatenate(points), np.concatenate(admitted)


def in_turn(domain: Box, menu: Floats, indices: Indices, contexts: Floats) -> tuple[Floats, Mask]:
    """The menu's actions, one after the other, under each context; which rows have any at all.

    Who may not have the action that is due gets the next one that they may; who may have none of
    the menu, the pool's first that they may.

    >>> box = Box({"dose": (0, 10), "age": (0, 100)}, context=["age"])
    >>> menu = np.array([[0.1, 0.0], [0.9, 0.0]])
    >>> in_turn(box, menu, np.array([0, 1]), np.array([[0.5], [0.6]]))[0].tolist()
    [[0.1, 0.5], [0.9, 0.6]]
    """
    points = np.full((len(contexts), domain.dimension), np.nan)
    waiting = np.ones(len(contexts), dtype=np.bool_)
    columns = list(domain.context_columns)
    for turn in range(len(menu)):
        if not waiting.any():
            break
        offered = menu[(indices[waiting] + turn) % len(menu)].copy()
        offered[:, columns] = contexts[waiting]
        offered = domain.snap(offered)
        suits = domain.admits(offered)
        rows = np.flatnonzero(waiting)[suits]
        points[rows] = offered[suits]
        waiting[rows] = False
    rows = np.flatnonzero(waiting)
    points[rows], others = first_admitted(domain, contexts[rows])
    waiting[rows] = ~others
    return points, ~waiting


def first_admitted(domain: Box, contexts: Floats) -> tuple[Floats, Mask]:
    """The first action of the public pool that each context admits; which rows have any at all.

    A function of domain and context alone: this, and no policy, decides who is refused.

    >>> box = Box({"dose": (0, 10), "age": (0, 9)}, context=["age"], feasible="dose + 1 <= age")
    >>> points, admitted = first_admitted(box, np.array([[0.05], [0.5]]))
    >>> admitted.tolist(), box.admits(points[1:]).tolist()
    ([False, True], [True])
    """
    pool = _pool(domain)
    points = np.full((len(contexts), domain.dimension), np.nan)
    waiting, start, size = np.arange(len(contexts)), 0, 1
    while start < len(pool) and len(waiting):
        actions, together, left = pool[start : start + size], max(1, ROWS // size), [waiting[:0]]
        for some in (waiting[i : i + together] for i in range(0, len(waiting), together)):
            options = domain.under(actions, contexts[some])
            options = domain.snap(options.reshape(-1, domain.dimension)).reshape(options.shape)
            suits = domain.admits(options.reshape(-1, domain.dimension)).reshape(len(some), -1)
            found = np.flatnonzero(suits.any(axis=1))
            points[some[found]] = options[found, suits[found].argmax(axis=1)]
            left.append(np.delete(some, found))
        # Most people may have one of the first: the pool is gone through in ever larger parts.
        waiting, start, size = np.concatenate(left), start + size, 2 * size
    admitted = np.ones(len(contexts), dtype=np.bool_)
    admitted[waiting] = False
    return points, admitted


def check_admits(domain: Box, context: Floats) -> None:
    """Refuse a context in which the domain admits no action."""
    if not first_admitted(domain, context[None, :])[1].all():
        raise Refused(NOTHING)


def _worthwhile(features: FeatureMap, domain: Box) -> Rest | None:
    """The features that contexts leave, where to find them costs less than they save."""
    rest, m = rest_of(features, domain.free_columns), features.dimension
    pool = len(_pool(domain))
    if rest is None:
        return None
    return rest if rest.dimension * (m + rest.dimension) <= 2 * pool * m else None


def _best(
    score: Score, rest: Rest | None, domain: Box, tilts: Floats, contexts: Floats
) -> tuple[Floats, Mask]:
    pool = _pool(domain)
    options = domain.under(pool, contexts)
    scores: _Scores = _Whole(score, tilts)
    if rest is not None:
        scores = _Reduced.of(score, rest, tilts, options[:, 0, :])
    # In a box, the pool's free columns are the same for everyone.
    alike = rest is not None and domain.shape == "box"
    best, admitted = _pick(scores, domain, options, options[:1] if alike else options)
    columns, offsets = _neighbourhood(domain)
    for radius in _radii(len(pool), len(columns)):
        options = np.repeat(best[:, None, :], 1 + NEAR, axis=1)
        options[:, 1:, columns] += radius * offsets
        options = domain.snap(options.reshape(-1, domain.dimension)).reshape(options.shape)
        nearer, some = _pick(scores, domain, options, options)
        best = np.where(some[:, None], nearer, best)
    return best, admitted


def _pick(scores: _Scores, domain: Box, options: Floats, seen: Floats) -> tuple[Floats, Mask]:
    """For each person the best admitted of their options (people, options, d), as scores see it."""
    people, each, d = options.shape
    admitted = domain.admits(options.reshape(-1, d)).reshape(people, each)
    values = np.nan_to_num(scores.values(seen), nan=LOWEST, posinf=LOWEST, neginf=LOWEST)
    best = np.where(admitted, values, -np.inf).argmax(axis=1)
    some = np.logical_or.reduce(admitted, axis=1)
    return options[np.arange(people), best], np.asarray(some, np.bool_)


@lru_cache(maxsize=8)
def _pool(domain: Box) -> Floats:
    """Uniform numbers for the free coordinates: every combination where there are few."""
    free = [domain.coordinate(name) for name in domain.free]
    counts = [1 if isinstance(each, Continuous) else each.count for each in free]
    combinations = math.prod(counts)
    if not any(isinstance(each, Continuous) for each in free) and combinations <= LARGEST_POOL:
        values = [(np.arange(count) + 0.5) / count for count in counts]
        return np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(free))
    listed = math.prod(count for count in counts if count <= SWEEP)
    moving = sum(isinstance(each, Continuous) for each in free)
    size = min(max(POOL * 2 ** max(0, moving - 1), NEAR * listed), LARGEST_POOL)
    uniforms = latin_hypercube(size, len(free), np.random.Generator(np.random.Philox(POOL)))
    # Maxima like the border: a tenth of every coordinate lies on it.
    return np.clip(1.1 * uniforms - 0.05, 0.0, 1.0)


@lru_cache(maxsize=8)
def _neighbourhood(domain: Box) -> tuple[list[int], Floats]:
    """The columns that move by small steps, and steps in [-1, 1] that fill their cube."""
    columns = [column for column in domain.free_columns if domain.movable[column]]
    rng = np.random.Generator(np.random.Philox(NEAR))
    return columns, 2.0 * latin_hypercube(NEAR, max(1, len(columns)), rng)[:, : len(columns)] - 1.0


def _radii(pool: int, dimension: int) -> list[float]:
    """From the distance between points of the pool, shrinking as fast as they are filled."""
    if dimension == 0:
        return []
    first, factor = 2.0 * pool ** (-1.0 / dimension), min(0.7, 2.0 * NEAR ** (-1.0 / dimension))
    return [min(first, 0.5) * factor**level for level in range(2 + 2 * min(dimension, 6))]
