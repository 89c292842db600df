"""What shuffling adds to reports by a codebook: accounting by the privacy blanket.

A report is an index out of N. Those of a person's cap (K of them, which K is private) have the
probability a = p / K each, the others b = (1 - p) / (N - K), with b <= a: `a / b` is e^epsilon_0,
the level of a report alone. A shuffler shows n honest reports in random order.

**Theorem.** Let one of the n people be replaced, with a cap that shares all but j of its indices
with the old one. For every epsilon, whatever caps the others have, the probability of every set of
shuffled batches is at most e^epsilon times the other plus

    delta(epsilon) = 1/n E[((a/b - e^eps) A - (e^eps a/b - 1) B - (e^eps - 1) (C + a/b D))^+],

where (A, B, C, D, rest) are counts of n people, each of whom falls into A or B with probability
j b, into C with (N - K - j) b and into D with (K - j) b. It is largest for j = min(K, N - K).

*Proof* (Balle, Bell, Gascon and Nissim, "The privacy blanket of the shuffle model", 2019, for these
reports). Every index has probability at least b, whatever the cap. So a report is, with
probability gamma = N b, uniform over all N indices (the *blanket*), else uniform over its cap. Tell
the observer which of the n - 1 others drew from the blanket, and what those who did not drew: what
is shuffled is a function of that, and of the multiset of the person's own report and the m
reports of the blanket. Let R and R' be the laws of the person's report in the two worlds. A
multiset of m + 1 indices w_i has in the first world the probability 1/(m + 1) sum_i N R(w_i) times
that under m + 1 uniform draws, so the least delta for this m is, exactly,

    E[(1/(m + 1) sum_i N (R(W_i) - e^eps R'(W_i)))^+],        W_i uniform over the N indices.

m is binomial, of n - 1 people with gamma; 1/(m + 1) times its law is 1/(n gamma) times the law of
M = m + 1 of n people. Each of the n then falls into an index with probability b, or into none. The
j indices of the old cap alone (A) have R - e^eps R' = a - e^eps b, those of the new cap alone (B)
b - e^eps a, those in neither (C) and in both (D) 1 - e^eps times b and a. N / (n gamma) = 1/(n b).

With one more index apart, j + 1 in place of j, two atoms of N (R - e^eps R') of mass 1/N each,
a (1 - e^eps) and b (1 - e^eps), become a - e^eps b and b - e^eps a. These have the same sum and lie
outside of the former two, as a >= b: a spread of the same mean. So the sum of M of them grows in
convex order, and the mean of its positive part does not fall.

A person whose cap is itself random is a mixture of the above: the hockey-stick divergence is
jointly convex. More honest people do no harm: their reports can be mixed in afterwards. Reports
that the observer knows or made (dishonest people's) are mixed in afterwards, too: n counts honest
ones alone. Nothing is assumed of which index stands for what: a hostile codebook changes nothing.

The bound is not far from the truth: it *is* the least delta against an observer who knows who drew
from the blanket, and indices outside of the others' caps tell nearly that.

**Rounding.** `delta` is an upper bound in floating point, too. Binomial laws are products of
ratios from their centre, normalised over a window: cutting makes what is inside larger. What is
outside has a probability of at most `TAIL` for each of three laws (Bernstein) and adds at most
a/b times that. Sums have no negative terms, so rounding is relative, at most `ULPS` ulps for each
step; the cancellation within the positive part costs at most 2^-48 (1 + e^eps) a/b. All of it
is added.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet import checks
from discreet.arrays import Floats
from discreet.errors import InvalidArgument

#: No law is followed beyond windows that miss it with at most this probability.
TAIL = 1e-17
#: One step of a product, and of each sum it goes through, in units of 2^-53.
ULPS = 64
#: More people are counted as so many: that loses a little and keeps the time small.
MOST_PEOPLE = 1 << 18
#: How many numbers are worked on at once.
BLOCK = 1 << 18


@dataclass(frozen=True)
class Blanket:
    """Reports by subset selection, shuffled: `cap` of `size` indices have `inside` together.

    >>> blanket = Blanket(16384, 900, Fraction(1, 3))
    >>> round(blanket.level, 2), round(blanket.epsilon(1e-6, people=1000), 2)
    (2.15, 0.26)
    >>> blanket.epsilon(1e-6, people=1) <= blanket.level + 1e-9
    True
    """

    size: int
    cap: int
    inside: Fraction

    def __post_init__(self) -> None:
        if not 0 < checks.count("cap", self.cap) < checks.count("size", self.size):
            raise InvalidArgument("cap", "fewer than all indices", self.cap)
        share = Fraction(self.cap, self.size)
        if not (isinstance(self.inside, Fraction) and share <= self.inside < 1):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("inside", "a fraction of at least cap / size, below 1")

    @property
    def odds(self) -> Fraction:
        """a / b, how much likelier an index of the cap is than another."""
        outside = (1 - self.inside) / (self.size - self.cap)
        return self.inside / self.cap / outside

    @property
    def level(self) -> float:
        """The epsilon_0 of a report by itself: what whoever sees it before shuffling learns."""
        return math.log(self.odds)

    def delta(self, epsilon: float, people: int) -> float:
        """At most this much is added to e^epsilon, among so many honest people.

        >>> Blanket(4, 1, Fraction(1, 2)).delta(2.0, 5)  # beyond the level of a report
        0.0
        """
        epsilon = checks.number("epsilon", epsilon, at_least=0.0)
        people = min(checks.count("people", people), MOST_PEOPLE)
        return _delta(self, epsilon, people)

    def epsilon(self, delta: float, people: int) -> float:
        """An epsilon for this delta among so many honest people: at most 2^-20 above the least."""
        delta = checks.number("delta", delta, above=0.0)
        low, high = 0.0, self.level * (1 + 1e-9)
        if self.delta(low, people) <= delta:
            return low
        while high - low > 2.0**-20:
            middle = (low + high) / 2
            if self.delta(middle, people) <= delta:
                high = middle
            else:
                low = middle
        return high


@lru_cache(maxsize=4096)
def _delta(blanket: Blanket, epsilon: float, people: int) -> float:
    odds, power = float(blanket.odds), math.exp(min(epsilon, 700.0))
    gain, loss = odds - power, power * odds - 1.0
    if blanket.odds <= Fraction(power) * (1 - Fraction(1, 1 << 50)):
        return 0.0  # both worlds' ratios stay below e^epsilon
    apart = min(blanket.cap, blanket.size - blanket.cap)
    each = (1 - blanket.inside) / (blanket.size - blanket.cap)
    either = 2 * apart * each
    same = (blanket.size - 2 * apart) * each  # in neither cap, or in both
    step = (power - 1.0) * (1.0 if 2 * blanket.cap <= blanket.size else odds)
    moved = _Law.of(people, either)
    total, work = 0.0, moved.width
    for counts, chances in moved.blocks():
        halves = _rows(counts, Fraction(1, 2), people)
        wins = np.maximum(gain * halves.places - loss * (counts[:, None] - halves.places), 0.0)
        others = _rows(people - counts, same / (1 - either), people)
        values = _mean_excess(wins, step, others)
        total += float(chances @ (halves.chances * values).sum(axis=1))
        work = max(work, halves.width + 2 * others.width + moved.width)
    rounding = ULPS * work * 2.0**-53
    missed = 3.0 * odds * TAIL + 2.0**-48 * odds * (1.0 + power)
    return min(1.0, total / people * (1.0 + rounding) + missed)


def _mean_excess(wins: Floats, step: float, others: "_Rows") -> Floats:
    """E[(t - u X)^+] for each t of a row and that row's law of X.

    It is (t - u k) F(k) + u (F(0) + ... + F(k - 1)) with k = floor(t / u): nothing negative.
    """
    if step <= 0.0:
        return wins
    below = np.cumsum(others.chances, axis=1)
    summed = np.cumsum(below, axis=1) - below
    first = others.places[:, :1]
    last = np.minimum(np.floor(wins / step), first + others.width - 1)
    place = np.maximum(last - first, 0.0).astype(np.intp)
    found = (wins - step * last) * np.take_along_axis(below, place, axis=1)
    found += step * np.take_along_axis(summed, place, axis=1)
    return np.where((last >= first) & (wins > 0.0), found, 0.0)


# -- binomial laws


@dataclass(frozen=True, eq=False)
class _Rows:
    """A binomial law in each row: places, and chances that add up to 1."""

    places: Floats
    chances: Floats

    @property
    def width(self) -> int:
        return self.places.shape[1]


@dataclass(frozen=True, eq=False)
class _Law:
    """One binomial law, to be gone through in blocks."""

    places: Floats
    chances: Floats
    rows: int

    @classmethod
    def of(cls, trials: int, chance: Fraction) -> "_Law":
        law = _rows(np.array([float(trials)]), chance, trials)
        seen = law.chances[0] > 0.0
        rows = max(1, BLOCK // (law.width + 2 * _radius(trials, Fraction(1, 2))))
        return cls(law.places[0][seen], law.chances[0][seen], rows)

    @property
    def width(self) -> int:
        return len(self.places)

    def blocks(self) -> "list[tuple[Floats, Floats]]":
        starts = range(0, self.width, self.rows)
        return [(self.places[i : i + self.rows], self.chances[i : i + self.rows]) for i in starts]


def _rows(trials: Floats, chance: Fraction, most: int) -> _Rows:
    """Binomial laws of so many trials each, around their centres."""
    if chance == 0:
        return _Rows(np.zeros((len(trials), 1)), np.ones((len(trials), 1)))
    most = min(most, int(trials.max()))
    radius = min(_radius(most, chance), most + 1)
    odds, steps = float(chance / (1 - chance)), np.arange(radius)
    centre = np.rint(trials * float(chance))[:, None]
    count = trials[:, None]
    up = np.maximum(count - centre - steps, 0.0) / (centre + steps + 1.0) * odds
    down = np.maximum(centre - steps, 0.0) / (np.maximum(count - centre + steps, 0.0) + 1.0) / odds
    above, below = np.cumprod(up, axis=1), np.cumprod(down, axis=1)
    weights = np.concatenate([below[:, ::-1], np.ones_like(count), above], axis=1)
    places = centre + np.arange(-radius, radius + 1, dtype=np.float64)
    return _Rows(places, weights / weights.sum(axis=1, keepdims=True))


def _radius(trials: int, chance: Fraction) -> int:
    """Bernstein: 2 exp(-R^2 / (2 v + 2 R / 3)) <= TAIL for a variance v."""
    variance = float(trials * chance * (1 - chance))
    log = math.log(2.0 / TAIL)
    return math.ceil(log / 3 + math.sqrt(log * log / 9 + 2 * log * variance)) + 1
