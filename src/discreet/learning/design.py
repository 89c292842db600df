"""Which arms to ask, and how often, so that every estimate is good: a G-optimal design.

A design is a law w over rows psi of features, in r dimensions. With S = sum of w psi psi^T the
estimate at a row has variance proportional to its *lever* psi^T S^-1 psi. Levers average r under w,
and a law exists whose largest lever is r (Kiefer and Wolfowitz): it makes log det S largest. Steps
away from a row as well as toward one (Wolfe; Todd and Yildirim) come close from both sides,

    largest lever <= (1 + TOLERANCE) r        levers of asked rows >= (1 - TOLERANCE) r,

and Caratheodory leaves at most r (r + 1) / 2 + 1 rows. Everything here is public.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import inv, qr

from discreet import checks
from discreet.arrays import Floats, Indices, Integers
from discreet.errors import InvalidArgument

#: How far levers may be from r, as a share of it.
TOLERANCE = 0.02
#: Steps after which a design is given up, and after which rounding errors are swept away.
MOST_STEPS, SWEEP = 200_000, 200


@dataclass(frozen=True, eq=False)
class Design:
    """Rows to ask and their shares; `inverse` is S^-1, `lever` the largest of all rows' levers."""

    rows: Indices
    weights: Floats
    inverse: Floats
    lever: float


def most_rows(rank: int) -> int:
    """How many rows a design has at most: r (r + 1) / 2 + 1.

    >>> most_rows(2)
    4
    """
    return rank * (rank + 1) // 2 + 1


def g_optimal(psi: Floats) -> Design:
    """A design over the rows of a matrix whose columns are independent.

    >>> ends = g_optimal(np.array([[1.0, 0.0], [1.0, 0.5], [1.0, 1.0]]))
    >>> ends.rows.tolist(), ends.weights.round(6).tolist(), round(ends.lever, 6)
    ([0, 2], [0.5, 0.5], 2.0)
    """
    n, r = psi.shape
    weights = np.zeros(n)
    weights[qr(psi.T, mode="r", pivoting=True)[1][:r]] = 1.0 / r
    inverse, levers = _measured(psi, weights)
    for step in range(1, MOST_STEPS):
        if step % SWEEP == 0:
            inverse, levers = _measured(psi, weights)
        asked = np.flatnonzero(weights)
        high, low = int(np.argmax(levers)), int(asked[np.argmin(levers[asked])])
        above, below = levers[high] / r - 1.0, 1.0 - levers[low] / r
        if max(above, below) <= 0.9 * TOLERANCE:
            break
        row = high if above >= below else low
        _move(psi, weights, inverse, levers, row)
    rows = np.flatnonzero(weights)
    rows, kept = thinned(psi, rows, weights[rows])
    everyone = np.zeros(n)
    everyone[rows] = kept
    inverse, levers = _measured(psi, everyone)
    if levers.max() > (1.0 + TOLERANCE) * r or levers[rows].min() < (1.0 - TOLERANCE) * r:
        raise InvalidArgument("psi", "rows of which a design can be made: they nearly depend")
    return Design(rows, kept, inverse, float(levers.max()))


def _measured(psi: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """S^-1, and every row's lever."""
    asked = np.flatnonzero(weights)
    inverse: Floats = inv((psi[asked] * weights[asked, None]).T @ psi[asked])
    return inverse, np.sum((psi @ inverse) * psi, axis=1)


def _move(psi: Floats, weights: Floats, inverse: Floats, levers: Floats, row: int) -> None:
    """The best step toward a row, or away from it: w <- (1 - a) w + a e, in place.

    log det S grows most at a = (l - r) / (r (l - 1)); away (a < 0) no further than to nothing.
    """
    r, own, share = psi.shape[1], float(levers[row]), float(weights[row])
    a = (own - r) / (r * (own - 1.0)) if own > 1.0 else -math.inf
    if own < r:
        a = max(a, -share / (1.0 - share))
    along = inverse @ psi[row]
    scale = a / (1.0 - a + a * own)
    levers -= scale * np.square(psi @ along)
    inverse -= scale * np.outer(along, along)
    levers /= 1.0 - a
    inverse /= 1.0 - a
    weights *= 1.0 - a
    weights[row] += a
    if weights[row] <= 1e-15:
        weights[row] = 0.0


def thinned(psi: Floats, rows: Indices, weights: Floats) -> tuple[Indices, Floats]:
    """The same S from at most `most_rows` of the rows (Caratheodory).

    As long as there are more, some combination of weights changes neither S nor their sum: it is
    followed until a weight is gone.

    >>> rows, weights = thinned(np.ones((3, 1)), np.arange(3), np.full(3, 1 / 3))
    >>> len(rows), round(float(weights.sum()), 9)
    (2, 1.0)
    """
    most = most_rows(psi.shape[1])
    upper = np.triu_indices(psi.shape[1])
    while len(rows) > most:
        x = psi[rows]
        moments = np.vstack([np.ones(len(rows)), (x[:, upper[0]] * x[:, upper[1]]).T])
        direction = np.linalg.svd(moments)[2][-1]
        if direction.max() <= 0.0:
            direction = -direction
        falling = direction > 1e-12
        length = float(np.min(weights[falling] / direction[falling]))
        weights = weights - length * direction
        kept = weights > 1e-12
        kept[np.argmin(weights)] = False
        rows, weights = rows[kept], weights[kept] / weights[kept].sum()
    return rows, weights


def rounded(weights: Floats, asks: int) -> Integers:
    """Whole numbers of asks that add up to exactly `asks`, each at least (asks - p) w, p rows.

    >>> rounded(np.array([0.5, 0.3, 0.2]), 9).tolist()
    [4, 3, 2]
    """
    n, p = checks.count("asks", asks), len(weights)
    counts = np.ceil(max(n - p, 0) * weights * (1.0 - 1e-12)).astype(np.int64)
    for _ in range(n - int(counts.sum())):
        counts[np.argmax(n * weights - counts)] += 1
    return counts


def turn(counts: Integers, indices: Integers) -> Indices:
    """Which row each ask gets, so that asks 0 .. n - 1 give every row its count exactly.

    Ask i is at place i s mod n of all asks in order of rows, s about the golden share of n and
    without a common divisor: also the first few asks are spread over all rows by their shares.

    >>> np.bincount(turn(np.array([2, 5, 1]), np.arange(8))).tolist()
    [2, 5, 1]
    """
    n = int(counts.sum())
    step = max(1, round(n * (math.sqrt(5.0) - 1.0) / 2.0))
    while math.gcd(step, n) > 1:
        step += 1
    places = (indices % n).astype(np.uint64) * np.uint64(step) % np.uint64(n)  # n <= 2^32
    return np.searchsorted(np.cumsum(counts), places.astype(np.int64), side="right")
