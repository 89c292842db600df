"""How noise is correlated over releases of a growing sum.

Releasing every prefix of a stream takes all sums A x at once, A the lower-triangular matrix of
ones. Factorise A = B C: adding noise std z to the encoded stream, with z independent standard
normals, is one Gaussian mechanism, and everything else is post-processing of it:

    A x + std B z = B (C x + std z).

A round that changes its own term by at most `change` moves C x by `change` times a column of C.
So the largest column norm of C is the *sensitivity*, the row norms of B are the *stds* that the
prefixes get, and std = change * sensitivity / mu costs mu: also when later rounds depend on
earlier releases, because C is lower-triangular (errata, section 1).

Every strategy here is square: a release takes exactly one new vector of normals. The largest
std times the sensitivity, for T releases, is sqrt(T) for `Independent`, about log2(T) for `Tree`,
1.07 + ln(T) / pi for `SquareRoot`, and hardly more for `BLT`, which keeps a few vectors where the
square root keeps all.

One user in several rounds moves C x by a sum of columns, each times a change of its own. No entry
of C is negative, so the worst changes all point the same way: the cost is the norm of the plain
sum of columns. It is at most k sensitivities for k rounds, and exactly that when all
enter with the first release; among k different releases, where columns are Toeplitz and fall,
the first k are the worst.

Nothing here draws. `advance` takes normals that the caller drew, and a frozen `State`, and gives
the noise of the next prefix and the next state. A state *is* the noise of the past: as sensitive
as the sums. Advanced twice with different normals, it would draw noise again, which averages out.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

from discreet import checks
from discreet.arrays import Floats, frozen
from discreet.errors import InvalidArgument, Refused


@dataclass(frozen=True, eq=False)
class State:
    """The noise so far: how many releases were made, of how many, and what later ones reuse.

    >>> State.start(Independent(), size=2, horizon=10).released
    0
    """

    released: int
    horizon: int | None
    memory: Floats

    def __post_init__(self) -> None:
        released = checks.whole("released", self.released)
        if self.horizon is not None and released > checks.count("horizon", self.horizon):
            raise InvalidArgument("released", f"at most the horizon {self.horizon}", released)
        if self.memory.ndim != 2 or not np.isfinite(self.memory).all():
            raise InvalidArgument("memory", "a matrix of finite numbers")
        object.__setattr__(self, "memory", frozen(self.memory))

    @classmethod
    def start(cls, strategy: "Strategy", *, size: int, horizon: int | None) -> "State":
        """Before the first of `horizon` releases of vectors of this size; None: without end."""
        strategy.sensitivity(horizon)  # refuses an endless stream where it has no finite cost
        return cls(0, horizon, np.zeros((strategy.rows(0), checks.count("size", size))))


@dataclass(frozen=True)
class Independent:
    """Fresh noise for every item: C = I, B = A. What a sum of local reports has.

    >>> Independent().sensitivity(None), Independent().stds(4).round(3).tolist()
    (1.0, [1.0, 1.414, 1.732, 2.0])
    """

    def sensitivity(self, horizon: int | None) -> float:
        """1, for any number of releases."""
        _terms(horizon)
        return 1.0

    def stds(self, horizon: int) -> Floats:
        """sqrt(t)."""
        return np.sqrt(np.arange(1.0, checks.count("horizon", horizon) + 1.0))

    def rows(self, released: int) -> int:
        """One vector is kept: the running sum."""
        return 1

    def advance(self, state: State, normals: Floats) -> tuple[Floats, State]:
        """The noise of the next prefix, and what comes after it."""
        _check_step(self, state, normals)
        total = state.memory[0] + normals
        return total, _next(state, total[None, :].copy())


@dataclass(frozen=True)
class Tree:
    """The binary tree: fresh noise for each block, and a prefix sums its dyadic blocks.

    The blocks of [1, t] follow the binary digits of t, and the last of them is the only new one:
    (t - b, t] with b the lowest set bit of t. Blocks that never end a prefix (right children) are
    never needed, so C has one row for each t: the indicator of that block. Item 1 is in the
    blocks that end at 1, 2, 4, ...: no item is in more.

        sensitivity^2 = floor(log2 T) + 1        std_t^2 = number of ones in the binary t

    >>> round(Tree().sensitivity(1024) ** 2, 9), np.square(Tree().stds(4)).round(9).tolist()
    (11.0, [1.0, 1.0, 2.0, 1.0])
    """

    def sensitivity(self, horizon: int | None) -> float:
        """sqrt(floor(log2 T) + 1)."""
        return math.sqrt(_finite(horizon).bit_length())

    def stds(self, horizon: int) -> Floats:
        """The square root of the number of blocks of [1, t]."""
        t = np.arange(1, checks.count("horizon", horizon) + 1)
        return np.sqrt(np.bitwise_count(t).astype(np.float64))

    def rows(self, released: int) -> int:
        """One vector a binary digit: the newest block of each size."""
        return released.bit_length()

    def advance(self, state: State, normals: Floats) -> tuple[Floats, State]:
        """The noise of the next prefix, and what comes after it."""
        _check_step(self, state, normals)
        t = state.released + 1
        levels = np.zeros((self.rows(t), len(normals)))
        levels[: len(state.memory)] = state.memory
        lowest = (t & -t).bit_length() - 1
        levels[:lowest] = 0.0  # these blocks lie inside the new one
        levels[lowest] = normals
        return levels.sum(axis=0), _next(state, levels)


@dataclass(frozen=True)
class SquareRoot:
    """The Toeplitz square root of A for both factors: the least error known in closed form.

        r_k = (2k choose k) / 4^k        sensitivity^2 = std_T^2 = sum of r_k^2 over k < T

    >>> root = SquareRoot()
    >>> round(root.sensitivity(1024) * float(root.stds(1024).max()), 3)
    3.273
    """

    def coefficients(self, horizon: int) -> Floats:
        """r_k = r_(k-1) (2k - 1) / 2k, the first column of both factors."""
        k = np.arange(1.0, checks.count("horizon", horizon))
        return np.concatenate([[1.0], np.cumprod((k - 0.5) / k)])

    def sensitivity(self, horizon: int | None) -> float:
        """The norm of the first column: about sqrt(1.07 + ln(T) / pi)."""
        return float(np.linalg.norm(self.coefficients(_finite(horizon))))

    def stds(self, horizon: int) -> Floats:
        """The norms of the rows."""
        return np.sqrt(np.cumsum(np.square(self.coefficients(horizon))))

    def rows(self, released: int) -> int:
        """Every vector is kept: for long streams take BLT."""
        return released

    def advance(self, state: State, normals: Floats) -> tuple[Floats, State]:
        """The noise of the next prefix, and what comes after it."""
        _check_step(self, state, normals)
        past = np.concatenate([state.memory, normals[None, :]])
        return self.coefficients(len(past))[::-1] @ past, _next(state, past)


@dataclass(frozen=True)
class BLT:
    """Buffered linear Toeplitz: a few decaying buffers stand in for the square root.

        C: c_0 = 1, c_k = sum_j w_j d_j^(k-1)                 (scales w, decays d)
        y = z - sum_j w_j s_j;    s_j <- d_j s_j + y;    noise += y        (noise = A C^-1 z)

    With 0 < d < 1, w > 0 and sum w <= 1 the c_k fall, so the first column is the longest; its
    norm has a limit, sqrt(1 + sum_ij w_i w_j / (1 - d_i d_j)): privacy for a stream without end.
    Beyond the length it was fitted to, the noise of a prefix grows like sqrt(t).

    >>> blt = BLT.fit(1024)
    >>> round(blt.sensitivity(1024) * float(blt.stds(1024).max()), 3)
    3.273
    """

    decays: tuple[float, ...]
    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        decays = tuple(checks.number("decays", d, above=0.0) for d in self.decays)
        scales = tuple(checks.number("scales", w, above=0.0) for w in self.scales)
        if not decays or len(decays) != len(scales):
            raise InvalidArgument("scales", "one for each decay, and at least one")
        if max(decays) >= 1.0:
            raise InvalidArgument("decays", "numbers below 1", max(decays))
        if math.fsum(scales) > 1.0:
            raise InvalidArgument("scales", "a sum of at most 1", math.fsum(scales))
        object.__setattr__(self, "decays", decays)
        object.__setattr__(self, "scales", scales)

    @classmethod
    def fit(cls, horizon: int, *, buffers: int = 5, endless: bool = False) -> "BLT":
        """The least largest error, sensitivity * std_T, over `horizon` releases.

        The largest, because stds only grow with t: one row, in closed form, is all it takes. The
        best mean square is only 2% lower. `endless` pays for a stream that may go on beyond.
        """
        horizon = checks.count("horizon", horizon)

        def cost(logs: Floats) -> float:
            gaps, w = np.exp(logs).reshape(2, -1)
            d = 1.0 / (1.0 + gaps)
            column = _column_square(d, w, math.inf if endless else horizon)
            return math.log(column) + math.log(_row_square(*_inverse(d, w), horizon))

        # Decays near 1 leave ten digits of the cost: central differences with a wide step.
        start, step = _quadrature(horizon, checks.count("buffers", buffers)), 1e-4
        found = minimize(cost, start, jac="3-point", options={"finite_diff_rel_step": step})
        gaps, w = np.exp(found.x).reshape(2, -1)
        order = np.argsort(gaps)
        return cls(tuple((1.0 / (1.0 + gaps))[order].tolist()), tuple(w[order].tolist()))

    def coefficients(self, horizon: int) -> Floats:
        """c_k, the first column of C."""
        k = np.arange(checks.count("horizon", horizon) - 1.0)
        tail = np.zeros(len(k))
        for d, w in zip(self.decays, self.scales, strict=True):
            tail += w * np.power(d, k)
        return np.concatenate([[1.0], tail])

    def sensitivity(self, horizon: int | None) -> float:
        """The norm of the first column; None for a stream without end."""
        d, w = np.array(self.decays), np.array(self.scales)
        return math.sqrt(_column_square(d, w, _terms(horizon)))

    def stds(self, horizon: int) -> Floats:
        """The norms of the rows of B, whose entries are b_k = rest + sum_j a_j e_j^k."""
        k = np.arange(float(checks.count("horizon", horizon)))
        e, a = self._inverse
        entries = np.full(len(k), 1.0 - math.fsum(a))
        for decay, amplitude in zip(e, a, strict=True):
            entries += amplitude * np.power(decay, k)
        return np.sqrt(np.cumsum(np.square(entries)))

    def rows(self, released: int) -> int:
        """The buffers, and the noise of the prefix."""
        return len(self.decays) + 1

    def advance(self, state: State, normals: Floats) -> tuple[Floats, State]:
        """The noise of the next prefix, and what comes after it."""
        _check_step(self, state, normals)
        buffers, total = state.memory[:-1], state.memory[-1]
        fresh = normals - np.array(self.scales) @ buffers
        kept = np.array(self.decays)[:, None] * buffers + fresh
        return total + fresh, _next(state, np.concatenate([kept, (total + fresh)[None, :]]))

    @cached_property
    def _inverse(self) -> tuple[Floats, Floats]:
        return _inverse(np.array(self.decays), np.array(self.scales))


Strategy = Independent | Tree | SquareRoot | BLT


def multiplier(strategy: Strategy, *, horizon: int | None, mu: float, change: float = 1.0) -> float:
    """The std of each normal: std = change * sensitivity / mu.

    `change` is the largest norm that one round adds to or takes from the stream, in coordinates
    where noise is round; `several(...)` in place of the sensitivity is for several rounds.

    >>> round(multiplier(Tree(), horizon=1024, mu=0.9209, change=2.0), 2)
    7.2
    """
    change = checks.number("change", change, above=0.0)
    return change * strategy.sensitivity(horizon) / checks.number("mu", mu, above=0.0)


def _geometric(ratio: Floats, terms: float) -> Floats:
    """1 + ratio + ... + ratio^(terms - 1), for ratios below 1."""
    return (1.0 - np.power(ratio, terms)) / (1.0 - ratio)


def _column_square(d: Floats, w: Floats, terms: float) -> float:
    """The sum of the first c_k^2."""
    return 1.0 + float(w @ _geometric(np.outer(d, d), terms - 1) @ w)


def _inverse(d: Floats, w: Floats) -> tuple[Floats, Floats]:
    """B = A C^-1 has entries b_k = 1 - sum_j a_j (1 - e_j^k): the decays e and amplitudes a.

    The recursion multiplies the buffers by diag(d) - 1 w^T, which has the eigenvalues of the
    symmetric diag(d) - sqrt(w) sqrt(w)^T: real, below the d and above -1.
    """
    root = np.sqrt(w)
    e, vectors = eigh(np.diag(d) - np.outer(root, root))
    return e, np.square(vectors.T @ root) / (1.0 - e)


def _row_square(e: Floats, a: Floats, terms: int) -> float:
    """The sum of the first b_k^2."""
    rest = 1.0 - math.fsum(a)
    mixed = 2.0 * rest * float(a @ _geometric(e, terms))
    return rest**2 * terms + mixed + float(a @ _geometric(np.outer(e, e), terms) @ a)


def _quadrature(horizon: int, buffers: int) -> Floats:
    """Where the search begins: r_k as an integral of decays, by a rule in the log of 1 - d.

    r_k = int_0^1 x^(k-1) sqrt(x / (1 - x)) dx / pi; returned are logs of (1 - d) / d and of w.
    """
    step = math.log(8.0 * horizon) / buffers
    gap = np.exp(-step * (np.arange(buffers) + 0.5)) * 2.0
    return np.log(np.concatenate([gap, np.sqrt(gap) / (1.0 + gap) ** 1.5 * step / math.pi]))


def _terms(horizon: int | None) -> float:
    return math.inf if horizon is None else checks.count("horizon", horizon)


def _finite(horizon: int | None) -> int:
    if horizon is None:
        raise InvalidArgument(
            "horizon",
            "a number of releases: without end this strategy's sensitivity is infinite (take a "
            "BLT, or new noise for each of several finite periods)",
        )
    return checks.count("horizon", horizon)


def _check_step(strategy: Strategy, state: State, normals: Floats) -> None:
    if state.released == state.horizon:
        raise Refused(f"all {state.horizon} releases were made: another is not paid for")
    if len(state.memory) != strategy.rows(state.released):
        raise InvalidArgument("state", f"a state of {type(strategy).__name__}")
    if normals.shape != state.memory.shape[1:] or not np.isfinite(normals).all():
        raise InvalidArgument("normals", f"{state.memory.shape[1]} finite numbers")


def _next(state: State, memory: Floats) -> State:
    return State(state.released + 1, state.horizon, memory)
