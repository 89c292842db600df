"""Reports by a public codebook: one direction of a few, with the residual in it, as one index."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from discreet import checks
from discreet.arrays import Floats, Integers, Mask, distinct_rows
from discreet.errors import InvalidArgument
from discreet.features.maps import FeatureMap
from discreet.privacy.book import (
    BOOK_BITS,
    CODEWORDS,
    MOST_DIMENSIONS,
    best_cap,
    contraction,
    half_book,
    index_at,
    ranked,
)
from discreet.privacy.cap import THRESHOLD_BITS
from discreet.privacy.clipping import Residual
from discreet.privacy.index_encoding import IndexEncoding
from discreet.privacy.moments import upper_triangle
from discreet.privacy.unit_directions import checked_directions, unit_along

#: A round is told along at most so many directions.
MOST_BOOK_DIRECTIONS = MOST_DIMENSIONS - 1


class BookSums(NamedTuple):
    """Sums over reports: of u u^T and of u, u the codeword that was sent (of length 1)."""

    second: Floats
    first: Floats


@dataclass(frozen=True, eq=False)
class CodebookEncoding(IndexEncoding):
    """One of N public unit vectors near v, where v says h and g = B phi(x) / ||B phi(x)||.

    Without `lift`, v = g with probability (1 + h / w) / 2, else -g. With it,
    v = (h g / w, +-sqrt(1 - h^2 / w^2)) with a fair sign, in one more dimension: nothing is lost to
    the sign, which pays where epsilon is large. Where the directions see nothing (B phi = 0), v is
    a fixed direction with a fair sign.

    **Privacy** is that of `cap`: exactly epsilon, whatever v is. B, prediction, width and book are
    public, any finite numbers will do, and a wrong one costs accuracy alone.

    **Reading.** The book is antipodal, and so is the ranking: E[u | -v] = -E[u | v]. So without
    lift E[u | g, h] = (h / w) E[u | g], exactly, with the mean of `expected`; the second moment
    E[u u^T | g] does not depend on h. With lift both are those of `expected` and `second`. A
    release carries the sums of u u^T and of u: the first say how g (without lift), or h g, is
    spread; with lift its last entry falls with h^2, which is how widths are learnt.
    """

    directions: Floats
    seed: str
    lift: bool

    def __post_init__(self) -> None:
        m = len(self.residual.prediction)
        most = min(m, MOST_BOOK_DIRECTIONS)
        object.__setattr__(self, "directions", checked_directions(self.directions, m, most))
        checks.hexadecimal("seed", self.seed, 64)
        if not isinstance(self.lift, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("lift", "True or False")
        if self.cap.size % 2 or self.cap.nearest > self.cap.size // 2:
            raise InvalidArgument("cap", "an even number of codewords, at most half of them near")

    @classmethod
    def fit(
        cls,
        residual: Residual,
        directions: Floats,
        epsilon: Fraction,
        seed: str,
        *,
        lift: bool,
        size: int = CODEWORDS,
    ) -> "CodebookEncoding":
        """The encoding of the best cap for these directions, at epsilon a report.

        >>> from discreet.privacy.book import book_seed
        >>> nothing = Residual(np.zeros(4), 1.0)
        >>> epoch = CodebookEncoding.fit(nothing, np.eye(4), Fraction(4), book_seed(), lift=True)
        >>> epoch.dimension, epoch.cap.nearest, round(epoch.contraction, 2)
        (5, 1493, 0.63)
        """
        cap = best_cap(epsilon, len(directions) + lift, size)
        return cls(residual, cap, directions, seed, lift)

    @property
    def dimension(self) -> int:
        """How long codewords are: one entry a direction, and one for the lift."""
        return len(self.directions) + self.lift

    @property
    def contraction(self) -> float:
        """c of E[u | v] = c v, for a book that fills the sphere evenly."""
        return contraction(self.cap, self.dimension)

    @property
    def deviation(self) -> float:
        """w / (c sqrt(r)): of a coordinate of w u / c, averaged over directions."""
        return self.residual.width / (self.contraction * math.sqrt(self.dimension))

    @property
    def book(self) -> tuple[Integers, Floats]:
        """The first half of the codewords, as integers and as floats; made once an epoch."""
        return half_book(self.seed, self.dimension, self.cap.size)

    def size(self, features: FeatureMap) -> int:
        return self.dimension * (self.dimension + 1) // 2 + self.dimension

    def along(self, phi: Floats) -> Floats:
        """g for each row of features: of length 1, or 0 where the directions see nothing."""
        return unit_along(self.directions, phi)

    # -- what a client sends

    def vectors(self, g: Floats, h: Floats, coins: Integers) -> Floats:
        """v of each round, for its direction, its clipped residual and its coin."""
        level, coin = h / self.residual.width, np.ldexp(coins.astype(np.float64), -THRESHOLD_BITS)
        seen: Mask = np.any(g, axis=1, keepdims=True)[:, 0]
        if self.lift:
            told = level[:, None] * g
            rest = np.sqrt(np.clip(1.0 - np.where(seen, level, 0.0) ** 2, 0.0, 1.0))
            return np.column_stack([told, np.where(coin < 0.5, rest, -rest)])
        fixed = np.eye(1, g.shape[1])
        up = coin < (1.0 + np.where(seen, level, 0.0)) / 2.0
        return np.where(up, 1.0, -1.0)[:, None] * np.where(seen[:, None], g, fixed)

    def indices(
        self,
        features: FeatureMap,
        points: Floats,
        rewards: Floats,
        *,
        coins: Integers,
        places: Integers,
    ) -> Integers:
        """The index of each round; rounds that say the same are ranked once."""
        phi = features(points)
        vectors = self.vectors(self.along(phi), self.residual.of(phi, rewards), coins)
        return self.nearest_to(vectors, places)

    def nearest_to(self, vectors: Floats, places: Integers) -> Integers:
        """The index at each vector's place: the first K places are its cap."""
        found = np.empty(len(vectors), dtype=np.int64)
        floats, nearest = self.book[1], self.cap.nearest
        if len(vectors) == 1:  # one person's device
            order, scores = ranked(floats, vectors[0], nearest)
            found[0] = index_at(order, scores, nearest, int(places[0]))
            return found
        distinct, which = distinct_rows(vectors)
        members = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
        for vector, rounds in zip(distinct, members, strict=True):
            order, scores = ranked(floats, vector, nearest)
            for each in rounds.tolist():
                found[each] = index_at(order, scores, nearest, int(places[each]))
        return found

    # -- what sums of reports say

    def codewords(self, indices: Integers) -> Integers:
        """u of each index, in multiples of 2^-14."""
        half = self.cap.size // 2
        return np.where(indices < half, 1, -1)[:, None] * self.book[0][indices % half]

    def statistics(self, indices: Integers, rows: Integers) -> Integers:
        """The sums of u u^T (upper triangle) and of u, in multiples of 2^-28 and 2^-14."""
        words = self.codewords(indices)
        second = (words.T @ words)[upper_triangle(self.dimension)]
        return np.concatenate([second, words.sum(axis=0)])

    def decode(self, integers: Integers) -> BookSums:
        """The sums that a release's integers stand for."""
        rows, columns = upper_triangle(self.dimension)
        second = np.zeros((self.dimension, self.dimension))
        packed = np.ldexp(integers[: rows.size].astype(np.float64), -2 * BOOK_BITS)
        second[rows, columns] = second[columns, rows] = packed
        first = np.ldexp(integers[rows.size :].astype(np.float64), -BOOK_BITS)
        return BookSums(second, first)

    def expected(self, g: Floats, h: Floats) -> Floats:
        """E[u | g, h], a row for each: exact for this book, over coin and index.

        A row of g is a unit vector, or 0 where the directions see nothing.
        """
        level = np.where(g.any(axis=1), h / self.residual.width, 0.0)
        return np.stack([self._moments(*each).first for each in zip(g, level, strict=True)])

    def second(self, g: Floats, h: Floats) -> Floats:
        """E[u u^T | g, h] for each row: exact for this book, over coin and index."""
        level = np.where(g.any(axis=1), h / self.residual.width, 0.0)
        return np.stack([self._moments(*each).second for each in zip(g, level, strict=True)])

    def moments_of(self, vector: Floats) -> BookSums:
        """E[u u^T | v] and E[u | v], exactly: sums over the cap, and over the whole book.

        E[u | v] = (p / K - (1 - p) / (N - K)) sum of u over the cap        (all sum to 0)
        """
        floats, nearest = self.book[1], self.cap.nearest
        order, scores = ranked(floats, vector, nearest)
        pairs = order[:nearest]
        near = floats[pairs]
        first = (np.where(scores[pairs] < 0.0, -1.0, 1.0)[:, None] * near).sum(axis=0)
        second = self.cap.excess * (near.T @ near) + float(self.cap.outside) * self._whole
        return BookSums(second, self.cap.excess * first)

    def typical_variance(self, square: float = 1.0 / 9.0) -> float:
        """The variance of u in a direction of B, averaged over evenly spread g: no lower bound.

        It is typical under two assumptions: g is spread evenly, and residuals have the given size.
        People who are all alike, or small residuals with lift (q = 0 at the least), leave less.

        Let residuals average to 0, with h^2 = q w^2 on average (`square`), and m = E[<u, v>^2]; the
        rest of u is spread evenly over what is orthogonal to v. As ||u|| = 1, r times the average
        is 1 without lift, and with it, where the last entry takes m (1 - q) + (1 - m) q / r,

            1 - m (1 - q) - (1 - m) q / r.
        """
        r = len(self.directions)
        if not self.lift:
            return 1.0 / r
        second = float(self.moments_of(np.eye(self.dimension)[-1]).second[-1, -1])
        return (1.0 - second * (1.0 - square) - (1.0 - second) * square / r) / r

    def _moments(self, g: Floats, level: float) -> BookSums:
        """The moments at a direction and at h / w, over the coin."""
        if not self.lift:
            towards = g if g.any() else np.eye(1, len(g))[0]
            second, first = self.moments_of(towards)
            return BookSums(second, level * first)
        rest = math.sqrt(max(0.0, 1.0 - level * level))
        up, down = (self.moments_of(np.append(level * g, sign * rest)) for sign in (1.0, -1.0))
        return BookSums((up.second + down.second) / 2.0, (up.first + down.first) / 2.0)

    @cached_property
    def _whole(self) -> Floats:
        floats = self.book[1]
        return 2.0 * (floats.T @ floats)
