"""The benchmark problems, exactly.

What a problem has, and may have, is said by `people.Problem`.
"""

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from discreet.arrays import Floats
from discreet.domain.box import Box
from discreet.errors import InvalidArgument
from discreet.features.kernels import Kernel, Learned, SquaredExponential
from discreet.simulation.differing import Arms, Dosing, Pricing
from discreet.simulation.people import Problem
from discreet.simulation.worlds import MakeProblem

#: What every problem has.
PARTS = ("domain", "rewards", "decision_set", "mean", "reward")


@dataclass(frozen=True)
class Function:
    """A function on [-1/2, 1/2]^d, answered with N(0, 0.1^2) noise; all of the box is allowed."""

    dimension: int
    formula: Callable[[Floats], Floats]
    maximum: float
    rewards: tuple[float, float]
    kernel: Kernel
    noise_std: float = 0.1

    @property
    def domain(self) -> Box:
        """The cube [-1/2, 1/2]^d."""
        return Box({f"x{i + 1}": (-0.5, 0.5) for i in range(self.dimension)})

    def decision_set(self, rng: np.random.Generator) -> None:
        """None: the whole box."""

    def mean(self, x: Floats) -> Floats:
        """The true mean at each row."""
        return self.formula(x)

    def reward(self, x: Floats, rng: np.random.Generator) -> float:
        """The mean at one point, plus noise."""
        return float(self.answers(x[None, :], rng)[0])

    def answers(self, x: Floats, rng: np.random.Generator) -> Floats:
        """As `reward`, to every row."""
        return self.formula(x) + self.noise_std * rng.standard_normal(len(x))


def camelback(x: Floats) -> Floats:
    """Six-hump camelback, turned upside down and divided by 5; its maximum is 0.20633.

    >>> float(camelback(np.array([[-0.0898 / 4, 0.7126 / 2]])).round(5)[0])
    0.20633
    """
    a, b = 4 * x[:, 0], 2 * x[:, 1]
    return -((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2) / 5


def styblinski_tang(x: Floats) -> Floats:
    """Styblinski-Tang, turned upside down and divided by its minimum; its maximum is 1.

    >>> float(styblinski_tang(np.full((1, 20), -2.903534 / 8)).round(4)[0])
    1.0
    """
    z = 8 * x
    return -0.5 * np.sum(z**4 - 16 * z**2 + 5 * z, axis=1) / (39.166 * x.shape[1])


def michalewicz(x: Floats) -> Floats:
    """Michalewicz with exponent 20, divided by its maximum 8.00499 over ten coordinates.

    >>> best = [2.9325, 2.3466, 1.6411, 1.2441, 0.9996, 0.8349, 2.1089, 1.8484, 1.6445, 1.4809]
    >>> float(michalewicz(np.array([best]) / math.pi - 0.5).round(3)[0])
    1.0
    """
    z = (x + 0.5) * math.pi
    i = np.arange(1.0, x.shape[1] + 1.0)
    return np.sum(np.sin(z) * np.sin(i * z / math.pi) ** 20, axis=1) / 8.00499


def hartmann6(x: Floats) -> Floats:
    """The six-dimensional Hartmann function, divided by its maximum.

    >>> best = [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]
    >>> float(hartmann6(np.array([best]) - 0.5).round(4)[0])
    1.0
    """
    steep = np.array(
        [
            [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
            [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
            [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
            [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
        ]
    )
    peaks = 1e-4 * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    squares = np.square((x + 0.5)[:, None, :] - peaks)
    return np.exp(-(squares * steep).sum(axis=2)) @ np.array([1.0, 1.2, 3.0, 3.2]) / 3.32237


@dataclass(frozen=True, eq=False)
class Bumps:
    """Four Gaussian bumps in the ball of radius 2, answered by coin flips.

    Each round offers one point with f >= 0.8 among 24 with f <= 0.6.
    """

    centres: Floats
    weights: Floats
    rewards: tuple[float, float] = (0.0, 1.0)
    kernel: Kernel = field(default_factory=lambda: SquaredExponential(0.25))

    @classmethod
    def draw(cls, rng: np.random.Generator) -> "Bumps":
        """Centres uniform in the ball, weights uniform in the positive part of the L1 ball.

        Drawn again until at least 0.5% of 4,000 uniform points reach 0.8.
        """
        while True:
            weights = rng.dirichlet(np.ones(4)) * rng.random() ** 0.25
            problem = cls(_uniform_in_ball(4, rng), weights)
            if np.mean(problem.mean(_uniform_in_ball(4000, rng)) >= 0.8) >= 0.005:
                return problem

    @property
    def domain(self) -> Box:
        """The ball of radius 2."""
        return Box({"x1": (-2.0, 2.0), "x2": (-2.0, 2.0)}, shape="ball")

    def decision_set(self, rng: np.random.Generator) -> Floats:
        """25 points in random order."""
        good, poor = np.empty((0, 2)), np.empty((0, 2))
        while len(good) < 1 or len(poor) < 24:
            points = _uniform_in_ball(1000, rng)
            values = self.mean(points)
            good = np.concatenate([good, points[values >= 0.8]])
            poor = np.concatenate([poor, points[values <= 0.6]])
        return rng.permutation(np.concatenate([good[:1], poor[:24]]))

    def decision_sets(self, count: int, rng: np.random.Generator) -> Floats:
        """As many sets (people, 25, 2) of the same law at once, the good point always first."""
        good, poor = np.empty((0, 2)), np.empty((0, 2))
        while len(good) < count or len(poor) < 24 * count:
            points = _uniform_in_ball(100 * count, rng)
            values = self.mean(points)
            good = np.concatenate([good, points[values >= 0.8]])
            poor = np.concatenate([poor, points[values <= 0.6]])[: 24 * count]
        return np.concatenate([good[:count, None], poor.reshape(count, 24, 2)], axis=1)

    def mean(self, x: Floats) -> Floats:
        """f(x) = sum_i weight_i exp(-||x - centre_i||^2 / 2), in [0, 1]."""
        squares = np.square(x[:, None, :] - self.centres).sum(axis=2)
        return np.exp(-squares / 2) @ self.weights

    def reward(self, x: Floats, rng: np.random.Generator) -> float:
        """1 with probability f(x), else 0."""
        return float(self.answers(x[None, :], rng)[0])

    def answers(self, x: Floats, rng: np.random.Generator) -> Floats:
        """As `reward`, to every row."""
        return (rng.random(len(x)) < self.mean(x)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Ridges:
    """Six random waves on a square, answered with Laplace noise: kept aside, never tuned on.

    f(x) = 0.6 sum_i a_i cos(omega_i x + b_i), sum a_i = 1, |omega_i| from 2 to 12; rewards are
    clipped to [-1, 1].
    """

    amplitudes: Floats
    waves: Floats
    phases: Floats
    rewards: tuple[float, float] = (-1.0, 1.0)

    @classmethod
    def draw(cls, rng: np.random.Generator) -> "Ridges":
        """Amplitudes uniform on the simplex, directions and phases uniform."""
        angle, speed = 2 * math.pi * rng.random(6), rng.uniform(2.0, 12.0, 6)
        waves = speed[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return cls(rng.dirichlet(np.ones(6)), waves, 2 * math.pi * rng.random(6))

    @property
    def domain(self) -> Box:
        """The unit square."""
        return Box({"x1": (0.0, 1.0), "x2": (0.0, 1.0)})

    def decision_set(self, rng: np.random.Generator) -> None:
        """None: the whole box."""

    def mean(self, x: Floats) -> Floats:
        """The true mean at each row."""
        return 0.6 * np.cos(x @ self.waves.T + self.phases) @ self.amplitudes

    def reward(self, x: Floats, rng: np.random.Generator) -> float:
        """The mean at one point, plus Laplace noise of standard deviation 0.2."""
        return float(self.answers(x[None, :], rng)[0])

    def answers(self, x: Floats, rng: np.random.Generator) -> Floats:
        """As `reward`, to every row."""
        return self.mean(x) + rng.laplace(scale=0.2 / math.sqrt(2), size=len(x))


def _uniform_in_ball(count: int, rng: np.random.Generator) -> Floats:
    angle = 2 * math.pi * rng.random(count)
    radius = 2 * np.sqrt(rng.random(count))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


CAMELBACK = Function(2, camelback, 0.2063257, (-1.2, 0.3), SquaredExponential(0.25))
STYBLINSKI_TANG = Function(20, styblinski_tang, 1.0, (-0.5, 1.2), Learned(additive=True))
MICHALEWICZ = Function(10, michalewicz, 1.0, (-0.3, 1.2), Learned(additive=True))

HARTMANN6 = Function(6, hartmann6, 1.0, (-0.3, 1.3), Learned(additive=True))

PROBLEMS: dict[str, MakeProblem] = {
    "synthetic": Bumps.draw,
    "camelback": lambda rng: CAMELBACK,
    "styblinski-tang": lambda rng: STYBLINSKI_TANG,
    "michalewicz": lambda rng: MICHALEWICZ,
    "ridges": Ridges.draw,
    "hartmann6": lambda rng: HARTMANN6,
    "dosing-1": lambda rng: Dosing(1),
    "dosing-3": lambda rng: Dosing(3),
    "dosing-6": lambda rng: Dosing(6),
    "dosing-1-skewed": lambda rng: Dosing(1, "skewed"),
    "dosing-3-skewed": lambda rng: Dosing(3, "skewed"),
    "dosing-6-skewed": lambda rng: Dosing(6, "skewed"),
    "dosing-3-correlated": lambda rng: Dosing(3, "correlated"),
    "dosing-6-correlated": lambda rng: Dosing(6, "correlated"),
    "arms": lambda rng: Arms(),
    "pricing": lambda rng: Pricing(),
}


def find_problem(name: str) -> MakeProblem:
    """A problem by name, or a user's own as `module:name`: an object, or a function of a generator.

    >>> find_problem("camelback")(np.random.Generator(np.random.Philox(0))).rewards
    (-1.2, 0.3)
    """
    if name in PROBLEMS:
        return PROBLEMS[name]
    expectation = f"one of {', '.join(PROBLEMS)}, or module:name of your own"
    module, colon, attribute = name.partition(":")
    if not colon:
        raise InvalidArgument("problem", expectation, name)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InvalidArgument("problem", f"{expectation} ({error})", name) from None
    if callable(found) and not hasattr(found, "domain"):
        return lambda rng: _checked(found(rng), name)
    problem = _checked(found, name)
    return lambda rng: problem


def _checked(found: object, name: str) -> Problem:
    words = f"an object with {', '.join(PARTS)}, or a function of a generator that makes one"
    if isinstance(found, type) or not all(hasattr(found, part) for part in PARTS):
        raise InvalidArgument("problem", words, name)
    return cast(Problem, found)
