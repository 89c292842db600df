"""The best action for each of many people, whatever the others bring.

Each person fixes the context's columns; the rest is theirs to find. A public pool of actions is
scored under their context, then ever smaller neighbourhoods of the best so far. No row's
arithmetic touches another row, so a person gets the same action, bit for bit, alone or in a batch:
batches are for speed, and give nobody away.
"""

import math
from functools import lru_cache

import numpy as np

from discreet.arrays import Floats, Mask
from discreet.domain.box import Box, Continuous
from discreet.errors import Refused
from discreet.learning.search import SWEEP, Score, latin_hypercube

#: Actions in a pool: twice as many for each further coordinate, more where many are discrete.
POOL, LARGEST_POOL = 128, 1024
#: Actions in a neighbourhood.
NEAR = 32
#: So many rows of features at a time stay in a processor's cache.
ROWS = 16_384
#: Said to whom no action is admitted.
NOTHING = "no action satisfies the plan's feasibility predicate in this context"


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
    pool = _pool(domain)
    together = max(1, ROWS // len(pool))
    found = [
        _best(
            score, domain, pool, tilts[start : start + together], contexts[start : start + together]
        )
        for start in range(0, len(contexts), together)
    ]
    points = [each[0] for each in found] or [np.empty((0, domain.dimension))]
    return np.concatenate(points), np.concatenate([np.empty(0, bool), *(e[1] for e in found)])


def check_admits(domain: Box, context: Floats) -> None:
    """Refuse a context in which the domain admits no action."""
    options = domain.under(_pool(domain), context[None, :])[0]
    if not domain.admits(options).any():
        raise Refused(NOTHING)


def _best(
    score: Score, domain: Box, pool: Floats, tilts: Floats, contexts: Floats
) -> tuple[Floats, Mask]:
    best, admitted = _pick(score, domain, domain.under(pool, contexts), tilts)
    columns, offsets = _neighbourhood(domain)
    for radius in _radii(len(pool), len(columns)):
        options = np.repeat(best[:, None, :], 1 + NEAR, axis=1)
        options[:, 1:, columns] += radius * offsets
        flat = domain.snap(options.reshape(-1, domain.dimension))
        best, _ = _pick(score, domain, flat.reshape(options.shape), tilts)
    return best, admitted


def _pick(score: Score, domain: Box, options: Floats, tilts: Floats) -> tuple[Floats, Mask]:
    """For each person the best admitted of their options (people, options, d)."""
    people, each, d = options.shape
    flat = options.reshape(-1, d)
    admitted = domain.admits(flat)
    values = np.where(admitted, score.values(flat, np.repeat(tilts, each, axis=0)), -np.inf)
    best = values.reshape(people, each).argmax(axis=1)
    some = np.logical_or.reduce(admitted.reshape(people, each), axis=1)
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
