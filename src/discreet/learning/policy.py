"""Which action an ask gets: a function of the public epoch, the ask's index and its own choices.

Ask number i of an epoch uses tilt i mod J. Nothing here sees another user's point or answer,
and nothing is drawn: asked twice with the same index, a policy answers the same.

A policy also says where people go whose options nobody knows. Who takes the best of n options,
drawn from P public points, takes the point of rank r = 0 .. P - 1 by the policy's score with
probability

    ((r + 1) / P)^n - (r / P)^n.

How many options people have is not known; which n fits a release is told by the release itself
(`inference.likeliest`), and so is how far the law may be trusted. All of it is post-processing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from discreet.arrays import Floats, Indices, Integers, Mask, distinct_rows, frozen
from discreet.domain.box import Box
from discreet.errors import InvalidArgument
from discreet.features.maps import FeatureMap
from discreet.learning.design import turn
from discreet.learning.personal import best_under, in_turn
from discreet.learning.search import Score
from discreet.storage import canonical
from discreet.threads import one_thread

#: Numbers of options that are tried; with one, the score does not matter.
OPTIONS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, eq=False)
class Policy:
    """The frozen rule of an epoch: a menu, or J tilts and what turns features into variances.

    Over the whole box `menu` holds the scaled actions that maximise the J scores (or the design
    of a first epoch), and nothing else is needed. Where users bring a context or candidates the
    menu has no rows; `tilts` (J, m) and L^-1, packed, choose for each of them. A design for people
    with contexts has a menu and no tilts: its actions are given out whoever comes.

    With `counts` every row of the menu is given to so many of the epoch's asks (see `design.turn`);
    without, asks get its rows in turn. With `bold_scores` so many of the last scores add
    `optimism` deviations ||W phi|| under a context, W packed in the place of L^-1, the others none.
    """

    tilts: Floats
    packed_whitening: Floats
    optimism: float
    menu: Floats
    counts: Integers | None = field(default=None, metadata=canonical.OPTIONAL)
    bold_scores: int | None = field(default=None, metadata=canonical.OPTIONAL)

    def __post_init__(self) -> None:
        for name in ("tilts", "packed_whitening", "menu"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        if self.counts is not None:
            object.__setattr__(self, "counts", frozen(self.counts))
        if self.bold_scores is not None and self.bold_scores not in range(len(self.tilts) + 1):
            words = f"a whole number from 0 to the {len(self.tilts)} scores"
            raise InvalidArgument("bold_scores", words, self.bold_scores)

    def from_menu(self, indices: Indices) -> Floats:
        """The scaled actions of whole-box asks."""
        return self.menu[self.rows(indices)]

    def rows(self, indices: Indices) -> Indices:
        """Which row of the menu each ask of the epoch gets; 0 where there is no menu."""
        if self.counts is not None:
            return turn(self.counts, indices)
        return indices % max(1, len(self.menu))

    def asked(self, asks: int) -> Integers:
        """How many of an epoch's first asks get each row of the menu.

        >>> two = Policy(np.zeros((0, 1)), np.zeros(0), 0.0, np.array([[0.0], [1.0]]))
        >>> two.asked(5).tolist()
        [3, 2]
        """
        rows = len(self.menu)
        if self.counts is None:
            return np.bincount(np.arange(asks) % rows, minlength=rows)
        if asks == self.counts.sum():
            return self.counts
        return np.bincount(turn(self.counts, np.arange(asks)), minlength=rows)

    def merged(self, asks: int) -> "Policy":
        """The same actions for so many asks, each action once: who gets the same hides the other.

        >>> twice = Policy(np.zeros((0, 1)), np.zeros(0), 0.0, np.array([[0.2], [0.7], [0.2]]))
        >>> twice.merged(6).menu.tolist(), twice.merged(6).counts.tolist()
        ([[0.2], [0.7]], [4, 2])
        """
        distinct, which = distinct_rows(self.menu)
        if len(distinct) == len(self.menu):
            return self
        counts = np.bincount(which, weights=self.asked(asks)).astype(np.int64)
        return replace(self, menu=distinct, counts=counts)

    @one_thread
    def choose(self, features: FeatureMap, indices: Indices, sets: Sequence[Floats]) -> Indices:
        """The position of the best of each ask's scaled candidates; the first of equals."""
        counts = [len(each) for each in sets]
        tilts = np.repeat(self._tilts(indices), counts, axis=0)
        values = self._score(features).values(np.concatenate(sets), tilts)
        parts = np.split(values, np.cumsum(counts)[:-1])
        return np.array([np.argmax(part) for part in parts], dtype=np.intp)

    @one_thread
    def search(
        self, features: FeatureMap, indices: Indices, domain: Box, contexts: Floats
    ) -> tuple[Floats, Mask]:
        """The best scaled action under each ask's context; which asks have any at all.

        A design has no scores: its actions are given out in turn.
        """
        if not len(self.tilts):
            return in_turn(domain, self.menu, indices, contexts)
        points = np.empty((len(contexts), domain.dimension))
        admitted = np.empty(len(contexts), dtype=np.bool_)
        number = indices % len(self.tilts)
        for score, some in self._scores(features):
            rows = (some.start <= number) & (number < some.stop)
            tilts = self._tilts(indices[rows])
            points[rows], admitted[rows] = best_under(score, domain, tilts, contexts[rows])
        return points, admitted

    def scores(self, features: FeatureMap, points: Floats) -> Floats:
        """What each tilt thinks of each point, of shape (J, points)."""
        found = [
            score.table(points, self.tilts[some.start : some.stop])
            for score, some in self._scores(features)
        ]
        return np.concatenate(found)

    def laws(self, features: FeatureMap, points: Floats) -> Floats | None:
        """How likely each public point is an ask's action, one law a row; None without scores."""
        if not len(self.tilts):
            return None
        ranks = self.scores(features, points).argsort(axis=1).argsort(axis=1)
        chances = [best_of(options, len(points)) for options in OPTIONS]
        return np.stack([each[ranks].mean(axis=0) for each in chances])

    def _score(self, features: FeatureMap) -> Score:
        return Score(features, self._whitening, self.optimism)

    def _scores(self, features: FeatureMap) -> list[tuple[Score, range]]:
        """The score that some of the tilts have, without optimism, and that the others have."""
        plain = 0 if self.bold_scores is None else len(self.tilts) - self.bold_scores
        parts = (
            (Score(features, self._whitening, 0.0), range(plain)),
            (self._score(features), range(plain, len(self.tilts))),
        )
        return [(score, some) for score, some in parts if some]

    def _tilts(self, indices: Indices) -> Floats:
        return self.tilts[indices % len(self.tilts)]

    @cached_property
    def _whitening(self) -> Floats:
        return unpacked(self.packed_whitening, self.tilts.shape[1])


def best_of(options: int, points: int) -> Floats:
    """The chance of each rank, worst first, to be the best of so many options.

    >>> best_of(1, 4).tolist(), best_of(2, 4).tolist()
    ([0.25, 0.25, 0.25, 0.25], [0.0625, 0.1875, 0.3125, 0.4375])
    """
    return np.diff((np.arange(points + 1) / points) ** options)


def packed(lower: Floats) -> Floats:
    """The lower triangle of a matrix as a vector, row by row.

    >>> packed(np.array([[1.0, 0.0], [2.0, 3.0]])).tolist()
    [1.0, 2.0, 3.0]
    """
    return lower[np.tril_indices(len(lower))]


def unpacked(vector: Floats, m: int) -> Floats:
    """The lower triangular matrix that `packed` made a vector of.

    >>> unpacked(np.array([1.0, 2.0, 3.0]), 2).tolist()
    [[1.0, 0.0], [2.0, 3.0]]
    """
    lower = np.zeros((m, m))
    lower[np.tril_indices(m)] = vector
    return lower
