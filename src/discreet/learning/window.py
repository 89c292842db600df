"""Blocks of public asks that several releases look at, and the reward noise these share.

The rounds of an epoch make a block: n_p asks at each of its public points p. A release looks at
the newest block and, with less weight, at the blocks before it. What it tells of block b is linear
in theta and in the summed reward noise E_b, which is the same in every look:

    sum of residuals at p = slope (n_p phi_p (theta - theta_0) + E_bp) + error,
    E_bp ~ N(0, n_p rho^2).

So theta and the noise of the blocks that may be looked at again are learnt together, in
information form; a block that will not be looked at any more is integrated out.

How far releases were from what was predicted is kept, too: with q the sum of v^T R^-1 v, and P, b
as above, q - b^T P^-1 b is the sum of the squared innovations, each in units of its own deviation,
and about `count` if the model is right.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from discreet.arrays import Floats
from discreet.privacy.looks import ONE_LOOK, Looks, in_sight


class Shared(Protocol):
    """Rounds of an epoch whose reward noise every look at them shares."""

    @property
    def looks(self) -> Looks:
        """How much they count at each age."""
        ...

    @property
    def size(self) -> int:
        """How many numbers the noise has."""
        ...

    def noise_precision(self, noise: float) -> Floats:
        """Of these numbers, where a reward has this variance."""
        ...


B = TypeVar("B", bound=Shared)


@dataclass(frozen=True, eq=False)
class Block:
    """So many asks at each point, and how much these count in each release that looks at them."""

    points: Floats
    counts: Floats
    looks: Looks = ONE_LOOK

    @classmethod
    def of(cls, menu: Floats, asks: int, looks: Looks = ONE_LOOK, *, each: float = 1.0) -> "Block":
        """So many asks, given the points of a menu in turn; each of them stands for `each` rounds.

        It takes no longer for more asks.
        """
        points, place = np.unique(menu, axis=0, return_inverse=True)
        turns = asks // len(menu) + (np.arange(len(menu)) < asks % len(menu))
        counts: Floats = np.bincount(place.ravel(), weights=turns).astype(np.float64)
        given = counts > 0
        return cls(points[given], each * counts[given], looks)

    @classmethod
    def even(cls, points: Floats, asks: int) -> "Block":
        """So many asks, spread evenly over the points."""
        return cls(points, np.full(len(points), asks / len(points)))

    @property
    def asks(self) -> float:
        """All of them."""
        return float(self.counts.sum())

    @property
    def size(self) -> int:
        """How many numbers its shared noise has: one a point."""
        return len(self.counts)

    def noise_precision(self, noise: float) -> Floats:
        """Of the summed noise of rewards at each point, each of this variance."""
        return np.diag(1.0 / (noise * self.counts))

    def mean(self, values: Callable[[Floats], Floats]) -> float:
        """The mean over the asks of something at their points."""
        return float(self.counts @ values(self.points)) / self.asks


def gathered(blocks: Sequence[Block]) -> tuple[Floats, Floats, Floats]:
    """The points of all blocks, newest first: how many asks each had, how much an ask counts."""
    weights = [np.full(len(each.counts), each.looks[age]) for age, each in enumerate(blocks)]
    return (
        np.concatenate([block.points for block in blocks]),
        np.concatenate([block.counts for block in blocks]),
        np.concatenate(weights),
    )


@dataclass(frozen=True, eq=False)
class Window(Generic[B]):
    """What is known of theta (the first m columns) and of the blocks' noise, newest first."""

    blocks: tuple[B, ...]
    precision: Floats
    information: Floats
    square: float = 0.0
    count: int = 0

    @classmethod
    def empty(cls, information: Floats) -> "Window[B]":
        """No block, and no release."""
        m = len(information)
        return cls((), np.zeros((m, m)), information)

    @property
    def features(self) -> int:
        """m."""
        return len(self.information) - sum(block.size for block in self.blocks)

    def entered(self, block: B, noise: float) -> "Window[B]":
        """With one more block, whose rewards have this variance; those never seen again go."""
        kept, sight = self, len(in_sight(block, self.blocks))
        while len(kept.blocks) >= sight:
            kept = kept._without_oldest()
        m, p = kept.features, block.size
        size = len(kept.information) + p
        rest = np.r_[0:m, m + p : size]
        precision, information = np.zeros((size, size)), np.zeros(size)
        precision[np.ix_(rest, rest)] = kept.precision
        information[rest] = kept.information
        precision[m : m + p, m : m + p] = block.noise_precision(noise)
        return replace(
            kept, blocks=(block, *kept.blocks), precision=precision, information=information
        )

    def _without_oldest(self) -> "Window[B]":
        size = len(self.information) - self.blocks[-1].size
        return replace(self._marginal(size), blocks=self.blocks[:-1])

    def _marginal(self, size: int) -> "Window[B]":
        if size == len(self.information):
            return self
        joint, shared = self.precision[size:, size:], self.precision[size:, :size]
        solved = cho_solve(cho_factor(joint), np.column_stack([shared, self.information[size:]]))
        precision = self.precision[:size, :size] - shared.T @ solved[:, :-1]
        return replace(
            self,
            blocks=(),
            precision=(precision + precision.T) / 2,
            information=self.information[:size] - shared.T @ solved[:, -1],
            square=self.square - float(self.information[size:] @ solved[:, -1]),
        )

    @cached_property
    def theta(self) -> "Window[B]":
        """What is known of theta alone."""
        return self._marginal(self.features)

    def plus(self, precision: Floats, information: Floats) -> "Window[B]":
        """With more known of theta."""
        more = np.zeros_like(self.precision)
        more[: len(information), : len(information)] = precision
        told = self.information.copy()
        told[: len(information)] += information
        return replace(self, precision=self.precision + more, information=told)

    def observe(self, design: Floats, values: Floats, covariance: Floats) -> "Window[B]":
        """Learn from v = A (theta, E) + noise."""
        factor = cho_factor(covariance, lower=True)
        weighted = cho_solve(factor, design)
        precision = self.precision + design.T @ weighted
        return replace(
            self,
            precision=(precision + precision.T) / 2,
            information=self.information + weighted.T @ values,
            square=self.square + float(values @ cho_solve(factor, values)),
            count=self.count + len(values),
        )
