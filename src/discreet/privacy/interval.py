"""Reports of a residual alone, where the action is public: one of N points of an interval."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from discreet import checks
from discreet.arrays import Floats, Integers
from discreet.features.maps import FeatureMap
from discreet.privacy.book import CODEWORDS
from discreet.privacy.cap import THRESHOLD_BITS, Cap, check_level, exp_below
from discreet.privacy.clipping import Residual
from discreet.privacy.index_encoding import IndexEncoding

#: The h^2 / w^2 at which the variance of a report is made smallest: a third of the width.
TYPICAL = 1.0 / 9.0


class MenuSums(NamedTuple):
    """For each row of a menu: how many answered, and sums of estimates of their h and h^2."""

    counts: Floats
    cross: Floats
    spread: Floats


@dataclass(frozen=True, eq=False)
class IntervalEncoding(IndexEncoding):
    """A clipped residual h as one of N points of an interval: for actions of a public menu.

    Where the actions of an epoch are public beforehand, only h has to be told: whoever reads the
    report knows which row of the menu its ask got, and with it phi(x). Codeword i is the number
    2 i - (N - 1). The cap is K neighbours m .. m + K - 1, and h / w in [-1, 1] is rounded at random
    to their middle 2 m - (N - K), between -(N - K) and N - K, so that its mean is exact.

    **Privacy** is that of `cap`: exactly epsilon. Which K neighbours is all that h decides.

    **Reading.** With a = p - (1 - p) K / (N - K), the codewords' sum 0 and the sum of their squares
    S = N (N^2 - 1) / 3, a report v satisfies, s being the middle of its cap,

        E[v | s]   = a s                                     (the others' mean is -K s / (N - K))
        E[v^2 | s] = a s^2 + b,    b = p (K^2 - 1) / 3 + (1 - p) (S - K (K^2 - 1) / 3) / (N - K).

    So w v / (a (N - K)) estimates h, and w^2 (v^2 - b) / (a (N - K)^2) estimates h^2, neither with
    bias: the spread of residuals is told by the same report (rounding at random adds at most
    (w / (N - K))^2 to it). Large books and K = N / (e^(epsilon/2) + 1) are the piecewise mechanism
    of Wang et al. (2019).
    """

    rows: int

    def __post_init__(self) -> None:
        checks.count("rows", self.rows)

    @classmethod
    def fit(
        cls, residual: Residual, rows: int, epsilon: Fraction, *, size: int = CODEWORDS
    ) -> "IntervalEncoding":
        """The encoding of least variance at typical residuals, at epsilon a report.

        >>> epoch = IntervalEncoding.fit(Residual(np.zeros(1), 1.0), 64, Fraction(1))
        >>> epoch.cap.nearest, round(epoch.variance(0.0), 2), round(epoch.variance(1.0), 2)
        (6566, 3.67, 5.12)
        """
        return cls(residual, best_window(epsilon, size), rows)

    @property
    def dimension(self) -> int:
        """A codeword is a number."""
        return 1

    def size(self, features: FeatureMap) -> int:
        """Three integers a row of the menu: answers, and the sums of v and of v^2."""
        return 3 * self.rows

    def indices(
        self,
        features: FeatureMap,
        points: Floats,
        rewards: Floats,
        *,
        coins: Integers,
        places: Integers,
    ) -> Integers:
        level = self.residual.of(features(points), rewards) / self.residual.width
        begins, nearest = self.begins(level, coins), self.cap.nearest
        others = places - nearest
        outside = np.where(others < begins, others, places)
        return np.where(places < nearest, begins + places, outside)

    def begins(self, level: Floats, coins: Integers) -> Integers:
        """m of each h / w: the first codeword of its cap, whatever number comes."""
        room = self.cap.size - self.cap.nearest
        exact = np.nan_to_num((np.clip(level, -1.0, 1.0) + 1.0) / 2.0 * room)
        down = np.floor(exact)
        up = np.ldexp(coins.astype(np.float64), -THRESHOLD_BITS) < exact - down
        return np.clip((down + up).astype(np.int64), 0, room)

    def statistics(self, indices: Integers, rows: Integers) -> Integers:
        """Answers, sums of v and sums of v^2, in turn for each row."""
        values = 2 * indices - (self.cap.size - 1)
        sums = np.zeros((self.rows, 3), dtype=np.int64)
        np.add.at(sums, rows, np.column_stack([np.ones_like(values), values, values * values]))
        return sums.ravel()

    def decode(self, integers: Integers) -> MenuSums:
        """Answers and unbiased estimates of the sums of h and of h^2, for each row of the menu."""
        counts, first, second = integers.astype(np.float64).reshape(self.rows, 3).T
        slope, offset = _line(self.cap.share, self.cap.nearest, self.cap.size)
        scale = self.residual.width / (self.cap.size - self.cap.nearest)
        return MenuSums(
            counts, scale / slope * first, scale * scale / slope * (second - counts * offset)
        )

    @property
    def furthest(self) -> float:
        """The largest residual that one codeword stands for: C w, C = (N - 1) / (a (N - K)).

        >>> round(IntervalEncoding.fit(Residual(np.zeros(1), 1.0), 1, Fraction(8)).furthest, 2)
        1.07
        """
        slope = _line(self.cap.share, self.cap.nearest, self.cap.size)[0]
        return (
            self.residual.width * (self.cap.size - 1) / (slope * (self.cap.size - self.cap.nearest))
        )

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance(self.residual.width * math.sqrt(TYPICAL)))

    def variance(self, residual: float) -> float:
        """The variance of one report's estimate of h, at this h."""
        return (
            window_variance(self.cap, (residual / self.residual.width) ** 2)
            * self.residual.width**2
        )


def best_window(epsilon: Fraction, size: int) -> Cap:
    """The cap of the K that tells a typical residual with the least variance: a public rule."""
    check_level(epsilon)
    nearest = np.arange(1, size // 2 + 1).astype(np.float64)
    odds = float(exp_below(epsilon)) * nearest
    share = odds / (odds + size - nearest)
    variances = _variance_at(share, nearest, size, TYPICAL)
    return Cap.of(epsilon, size, 1 + int(np.argmin(variances)))


def window_variance(cap: Cap, square: float) -> float:
    """The variance of one report at h^2 / w^2 = `square`, in units of w^2."""
    share, nearest = np.array([float(cap.share)]), np.array([float(cap.nearest)])
    return float(_variance_at(share, nearest, cap.size, square)[0])


def _variance_at(share: Floats, nearest: Floats, size: int, square: float) -> Floats:
    """(b / (N - K)^2 + a (1 - a) h^2 / w^2) / a^2, in units of w^2."""
    slope, offset = _lines(share, nearest, size)
    return (offset / (size - nearest) ** 2 + slope * (1.0 - slope) * square) / slope**2


def _line(share: Fraction, nearest: int, size: int) -> tuple[float, float]:
    """a and b of E[v^2 | s] = a s^2 + b."""
    slope, offset = _lines(np.array([float(share)]), np.array([float(nearest)]), size)
    return float(slope[0]), float(offset[0])


def _lines(share: Floats, nearest: Floats, size: int) -> tuple[Floats, Floats]:
    within = (nearest**2 - 1.0) / 3.0
    squares = size * (float(size) ** 2 - 1.0) / 3.0
    rest = (1.0 - share) / (size - nearest)
    slope = share - rest * nearest
    return slope, share * within + rest * (squares - nearest * within)
