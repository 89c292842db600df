"""Benchmark problems where people differ: doses for private contexts, arms, and prices.

Contexts are private, in [0, 1]^d, one a round; regret is against the best action for each person.
What a problem has, and may have, is said by `worlds.Problem`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import ndtr

from discreet.arrays import Floats
from discreet.domain.box import Box, Categorical
from discreet.features.kernels import Categories, Kernel, Product, SquaredExponential
from discreet.learning.study import Value

#: Who comes: uniform in every context; Beta(2, 5); or uniform with a Gaussian copula of 0.7.
People = Literal["even", "skewed", "correlated"]


def people(count: int, contexts: int, kind: People, rng: np.random.Generator) -> Floats:
    """The contexts of so many people, one a row.

    >>> people(3, 2, "even", np.random.Generator(np.random.Philox(0))).shape
    (3, 2)
    """
    if kind == "skewed":
        return rng.beta(2.0, 5.0, (count, contexts))
    if kind == "even":
        return rng.random((count, contexts))
    common, own = rng.standard_normal((count, 1)), rng.standard_normal((count, contexts))
    return ndtr(math.sqrt(0.7) * common + math.sqrt(0.3) * own)


@dataclass(frozen=True)
class Dosing:
    """A dose in [0, 1] for people of some contexts, of which at most three matter.

        mean = 1 - min(1, ((dose - best(c)) / 0.45)^2),  answered with N(0, 0.2^2) noise

    >>> Dosing(1).mean(np.array([[0.2, 0.0]])).tolist()
    [1.0]
    """

    contexts: int
    who: People = "even"
    rewards: tuple[float, float] = (-0.5, 1.5)
    noise_std: float = 0.2

    @property
    def domain(self) -> Box:
        """The dose, and the contexts."""
        names = tuple(f"c{j + 1}" for j in range(self.contexts))
        return Box({"dose": (0.0, 1.0), **dict.fromkeys(names, (0.0, 1.0))}, context=names)

    @property
    def kernel(self) -> Kernel:
        """An ordinary one: half the range of doses, and shorter for a context alone."""
        return SquaredExponential((0.5, *[1.0 if self.contexts > 1 else 0.3] * self.contexts))

    def best(self, contexts: Floats) -> Floats:
        """The best dose for each row of contexts."""
        c = contexts.T
        if self.contexts == 1:
            return 0.2 + 0.5 * c[0] + 0.1 * np.sin(5 * c[0])
        return 0.15 + 0.4 * c[0] + 0.2 * c[1] - 0.15 * c[2] + 0.1 * np.sin(3 * c[0]) * c[1]

    def decision_sets(self, count: int, rng: np.random.Generator) -> dict[str, Floats]:
        """The contexts of so many people, by name."""
        brought = people(count, self.contexts, self.who, rng)
        return dict(zip(self.domain.context, brought.T, strict=True))

    def decision_set(self, rng: np.random.Generator) -> dict[str, Value]:
        """One person's context."""
        return {name: float(each[0]) for name, each in self.decision_sets(1, rng).items()}

    def mean(self, x: Floats) -> Floats:
        """The true mean at each row."""
        return 1.0 - np.minimum(1.0, np.square((x[:, 0] - self.best(x[:, 1:])) / 0.45))

    def maximum_under(self, context: Mapping[str, Value]) -> float:
        """1: the best dose lies within the range."""
        return 1.0

    def maxima_under(self, contexts: Mapping[str, Floats]) -> Floats:
        """The same for everyone."""
        return np.ones(len(contexts["c1"]))

    def reward(self, x: Floats, rng: np.random.Generator) -> float:
        """The mean at one point, plus noise."""
        return float(self.answers(x[None, :], rng)[0])

    def answers(self, x: Floats, rng: np.random.Generator) -> Floats:
        """The answers to many actions."""
        return self.mean(x) + self.noise_std * rng.standard_normal(len(x))


@dataclass(frozen=True)
class Arms:
    """One of four arms for people of two contexts from Beta(2, 5), answered by coin flips.

    mean = 0.45 + 0.06 [a = 1] + 0.4 cos(2a) (c1 - 0.3) + 0.4 sin(3a) (c2 - 0.3), within [0, 1]

    >>> Arms().mean(np.array([[1.0, 0.3, 0.3]])).round(2).tolist()
    [0.51]
    """

    rewards: tuple[float, float] = (0.0, 1.0)
    kernel: Kernel = field(
        default_factory=lambda: Product.over(
            {"arm": Categories(0.5), ("c1", "c2"): SquaredExponential(1.0)}
        )
    )

    @property
    def domain(self) -> Box:
        """The arm, and two contexts."""
        arm = Categorical(("a", "b", "c", "d"))
        return Box({"arm": arm, "c1": (0.0, 1.0), "c2": (0.0, 1.0)}, context=("c1", "c2"))

    def decision_sets(self, count: int, rng: np.random.Generator) -> dict[str, Floats]:
        """The contexts of so many people, by name."""
        return dict(zip(("c1", "c2"), people(count, 2, "skewed", rng).T, strict=True))

    def decision_set(self, rng: np.random.Generator) -> dict[str, Value]:
        """One person's context."""
        return {name: float(each[0]) for name, each in self.decision_sets(1, rng).items()}

    def mean(self, x: Floats) -> Floats:
        """The true mean at each row; an arm is its position."""
        a, c1, c2 = x.T
        tilts = 0.4 * np.cos(2 * a) * (c1 - 0.3) + 0.4 * np.sin(3 * a) * (c2 - 0.3)
        return np.clip(0.45 + 0.06 * (a == 1) + tilts, 0.0, 1.0)

    def maximum_under(self, context: Mapping[str, Value]) -> float:
        """The mean of the best arm."""
        one = {name: np.array([value], np.float64) for name, value in context.items()}
        return float(self.maxima_under(one)[0])

    def maxima_under(self, contexts: Mapping[str, Floats]) -> Floats:
        """The mean of the best arm for each person."""
        c1, c2 = contexts["c1"], contexts["c2"]
        arms = [np.column_stack([np.full(len(c1), arm), c1, c2]) for arm in range(4)]
        return np.max([self.mean(each) for each in arms], axis=0)

    def reward(self, x: Floats, rng: np.random.Generator) -> float:
        """1 with the probability of the mean, else 0."""
        return float(self.answers(x[None, :], rng)[0])

    def answers(self, x: Floats, rng: np.random.Generator) -> Floats:
        """The answers to many actions."""
        return (rng.random(len(x)) < self.mean(x)).astype(np.float64)


@dataclass(frozen=True)
class Pricing:
    """A price and a discount for people of three contexts; who buys pays.

        worth = 0.35 + 0.5 c1 - 0.25 c1 c2 + 0.2 discount (1 - c3)
        mean = price (1 - discount / 2) / (1 + exp((price - worth) / 0.08)),  Laplace noise of 0.1

    Kept aside: nothing that chooses actions was tuned on it.

    >>> Pricing().mean(np.array([[0.0, 0.5, 0.5, 0.5, 0.5]])).tolist()
    [0.0]
    """

    rewards: tuple[float, float] = (-0.5, 1.2)
    kernel: Kernel = field(default_factory=lambda: SquaredExponential((0.3, 0.5, 1.0, 1.0, 1.0)))

    @property
    def domain(self) -> Box:
        """Price, discount, and three contexts."""
        ours: dict[str, tuple[float, float]] = {"price": (0.0, 1.0), "discount": (0.0, 1.0)}
        names = ("c1", "c2", "c3")
        return Box({**ours, **dict.fromkeys(names, (0.0, 1.0))}, context=names)

    def decision_sets(self, count: int, rng: np.random.Generator) -> dict[str, Floats]:
        """The contexts of so many people, by name."""
        return dict(zip(("c1", "c2", "c3"), people(count, 3, "correlated", rng).T, strict=True))

    def decision_set(self, rng: np.random.Generator) -> dict[str, Value]:
        """One person's context."""
        return {name: float(each[0]) for name, each in self.decision_sets(1, rng).items()}

    def mean(self, x: Floats) -> Floats:
        """The true mean at each row."""
        price, discount, c1, c2, c3 = x.T
        worth = 0.35 + 0.5 * c1 - 0.25 * c1 * c2 + 0.2 * discount * (1.0 - c3)
        return price * (1.0 - discount / 2.0) / (1.0 + np.exp((price - worth) / 0.08))

    def maximum_under(self, context: Mapping[str, Value]) -> float:
        """The highest mean for one person."""
        one = {name: np.array([value], np.float64) for name, value in context.items()}
        return float(self.maxima_under(one)[0])

    def maxima_under(self, contexts: Mapping[str, Floats]) -> Floats:
        """The highest mean for each person, over a grid of offers."""
        brought = np.column_stack([contexts[name] for name in ("c1", "c2", "c3")])
        best = np.zeros(len(brought))
        for discount in np.linspace(0.0, 1.0, 11):
            for price in np.linspace(0.0, 1.0, 101):
                offer = np.tile([price, discount], (len(brought), 1))
                best = np.maximum(best, self.mean(np.column_stack([offer, brought])))
        return best

    def reward(self, x: Floats, rng: np.random.Generator) -> float:
        """The mean at one point, plus noise."""
        return float(self.answers(x[None, :], rng)[0])

    def answers(self, x: Floats, rng: np.random.Generator) -> Floats:
        """The answers to many actions."""
        return self.mean(x) + rng.laplace(scale=0.1 / math.sqrt(2), size=len(x))
