"""What is promised about privacy: exact Gaussian accounting, and the sentence that says it.

A mechanism is mu-Gaussian private if telling neighbouring inputs apart is never easier than
telling N(0, 1) from N(mu, 1). In terms of epsilon and delta that is, exactly,

    delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from discreet import checks
from discreet.errors import InvalidArgument

Protect = Literal["decisions", "rewards"]


@dataclass(frozen=True)
class GaussianPrivacy:
    """A privacy cost, as the mu of Gaussian differential privacy.

    >>> cost = GaussianPrivacy.of(epsilon=1.0, delta=1e-6)
    >>> round(cost.mu, 4), round(cost.epsilon(1e-6), 6), round(cost.epsilon(1e-9), 2)
    (0.2367, 1.0, 1.32)
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checks.number("mu", self.mu, above=0.0))

    @classmethod
    def of(cls, epsilon: float, delta: float) -> "GaussianPrivacy":
        """The largest mu that keeps the promise (epsilon, delta)."""
        high = 1.0
        while _delta(high, epsilon) < delta:
            high *= 2.0
        while _delta(high / 2.0, epsilon) > delta:
            high /= 2.0

        def excess(mu: float) -> float:
            return _delta(mu, epsilon) - delta

        return cls(_root(excess, high / 2.0, high))

    def delta(self, epsilon: float) -> float:
        """The smallest delta for this epsilon."""
        return _delta(self.mu, checks.number("epsilon", epsilon, at_least=0.0))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon for this delta; 0 where none is needed."""
        delta = checks.number("delta", delta, above=0.0)
        if _delta(self.mu, 0.0) <= delta:
            return 0.0
        high = 1.0
        while _delta(self.mu, high) > delta:
            high *= 2.0

        def excess(epsilon: float) -> float:
            return _delta(self.mu, epsilon) - delta

        return _root(excess, 0.0, high)


@dataclass(frozen=True)
class NonPrivate:
    """No privacy: statistics are released exactly. Nothing falls back to this by itself.

    >>> NonPrivate().guarantee
    'No privacy guarantee: every release holds exact statistics of what people answered.'
    """

    protect: ClassVar[None] = None

    @property
    def guarantee(self) -> str:
        """The sentence for the review board."""
        return "No privacy guarantee: every release holds exact statistics of what people answered."


class _Promise(ABC):
    """(epsilon, delta) for all rounds of a person together."""

    epsilon: float
    delta: float
    rounds_per_user: int

    def __post_init__(self) -> None:
        epsilon, delta = _checked(self.epsilon, self.delta)
        rounds = checks.count("rounds_per_user", self.rounds_per_user)
        checked = {"epsilon": epsilon, "delta": delta, "rounds_per_user": rounds}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @cached_property
    def cost(self) -> GaussianPrivacy:
        """What a person who takes part in all their rounds gives away, at most."""
        return GaussianPrivacy.of(self.epsilon, self.delta)

    @property
    def mu_per_round(self) -> float:
        """The mu that one round may cost."""
        return self.per_round(self.cost.mu)

    @abstractmethod
    def per_round(self, mu: float) -> float:
        """What each of all rounds may cost for mu together."""


@dataclass(frozen=True)
class JointDP(_Promise):
    """Everyone's round is hidden from everyone else: joint (epsilon, delta)-privacy.

    `protect="decisions"` covers a round's decision set, context and reward; `"rewards"` covers
    the reward alone and takes decision sets and contexts for public. A person may take part in
    `rounds_per_user` rounds, which the custodian enforces; k rounds cost at most k times the
    mu of one, so each gets mu / k.

    >>> round(JointDP(epsilon=1.0, delta=1e-6).mu_per_round, 4)
    0.2367
    >>> JointDP(epsilon=1e-6, delta=0.5)
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: delta: expected at most epsilon (are the two swapped?), got 0.5
    """

    epsilon: float
    delta: float
    protect: Protect = "decisions"
    rounds_per_user: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.protect not in ("decisions", "rewards"):
            raise InvalidArgument("protect", "'decisions' or 'rewards'", self.protect)

    def per_round(self, mu: float) -> float:
        """What each of all rounds may cost for mu together: rounds may fall into one sum."""
        return mu / self.rounds_per_user

    @property
    def guarantee(self) -> str:
        """The sentence for the review board."""
        rounds = _times(self.rounds_per_user, "round")
        covered = {
            "decisions": "decision set, context and reward",
            "rewards": "reward (decision sets and contexts are declared public)",
        }[self.protect]
        return (
            f"Joint differential privacy, epsilon = {self.epsilon:g} at delta = {self.delta:g} "
            f"(exactly: Gaussian privacy with mu = {self.cost.mu:.4g}). "
            f"Unit: one person, in at most {rounds}; covered: the {covered} of those rounds. "
            "Replace them by anything: the probability of every set of releases, exports and "
            f"other people's actions changes by at most a factor e^{self.epsilon:g}, plus "
            f"{self.delta:g}. "
            "Public: the plan, the indices and number of asks, every epoch and release; kernels "
            "and settings fitted to releases are post-processing. "
            "Assumed: a reward does not depend on other people's actions, user ids tell people "
            "apart, and the custodian and its journal are trusted. "
            "Not covered: that and when a person took part, a person's own view of their action, "
            "and settings chosen by looking at the raw data."
        )


@dataclass(frozen=True)
class LocalDP(_Promise):
    """Nobody is trusted: each person's report is private before it leaves their device.

    A report is one round as integers plus noise of its own, so decision set, context and reward
    are covered alike. A person's device sends at most `rounds_per_user` reports. Their noise is
    independent, and k mechanisms of Gaussian privacy mu, each chosen after seeing the ones before,
    are sqrt(k) mu together: each gets mu / sqrt(k).

    >>> round(LocalDP(epsilon=8.0, delta=0.1).mu_per_round, 3)
    3.111
    >>> round(LocalDP(epsilon=8.0, delta=0.1, rounds_per_user=4).mu_per_round, 3)
    1.555
    """

    epsilon: float
    delta: float
    rounds_per_user: int = 1
    protect: ClassVar[Protect] = "decisions"

    def per_round(self, mu: float) -> float:
        """What each of all reports may cost for mu together: their noise is independent."""
        return mu / math.sqrt(self.rounds_per_user)

    @property
    def guarantee(self) -> str:
        """The sentence for the review board."""
        reports = _times(self.rounds_per_user, "report")
        return (
            f"Local differential privacy, epsilon = {self.epsilon:g} at delta = {self.delta:g} "
            f"(exactly: Gaussian privacy with mu = {self.cost.mu:.4g}). "
            f"Unit: one person, in at most {reports}; covered: the decision set, context and "
            "reward of those rounds. "
            "Replace them by anything: the probability of every set of reports that leave the "
            "person's device, and so of everything computed from them, changes by at most a "
            f"factor e^{self.epsilon:g}, plus {self.delta:g}, whoever looks. "
            "Public: the plan, the indices and number of asks and of reports, every epoch, report "
            "and release; kernels and settings fitted to reports are post-processing. "
            "Assumed: a reward does not depend on other people's actions, and the person's own "
            "device is trusted, keeps to its number of reports and has good random numbers. "
            "Not covered: that and when a person took part or answered, a person's own view of "
            "their action, and settings chosen by looking at the raw data."
        )


Privacy = NonPrivate | JointDP | LocalDP


@dataclass(frozen=True)
class Simulation:
    """A seed instead of the operating system's bits: reproducible, and marked as not private.

    >>> Simulation(seed=7)
    Simulation(seed=7)
    """

    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.whole("seed", self.seed))


def certified_mu(
    privacy: JointDP | LocalDP, *, integers: int, releases: float, slack_per_integer: float
) -> float:
    """What one round may cost: a hair less than promised.

    Norms are at most 1 up to rounding (a relative 1e-12), and finite precision of the noise takes
    its share of delta (see `randomness`): for `integers` in each of the `releases` that a person's
    rounds touch,

        slack = releases (1 + e^epsilon) integers slack_per_integer.
    """
    growth = math.exp(min(privacy.epsilon, 700.0))  # beyond, no float holds it
    slack = releases * (1.0 + growth) * integers * slack_per_integer
    if slack > privacy.delta / 2:
        least = f"delta of at least {2 * slack:.1g}, or " if 2 * slack < 1.0 else ""
        raise InvalidArgument(
            "privacy",
            f"{least}a smaller epsilon (with correlated noise, or fewer releases): "
            "the finite precision of noise could not be certified",
            privacy.delta if least else privacy.epsilon,
        )
    cost = GaussianPrivacy.of(privacy.epsilon, privacy.delta - slack)
    return privacy.per_round(cost.mu) * (1.0 - 1e-9)


def _times(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def _checked(epsilon: float, delta: float) -> tuple[float, float]:
    epsilon = checks.number("epsilon", epsilon, above=0.0)
    delta = checks.number("delta", delta, above=0.0)
    if delta >= 1.0:
        raise InvalidArgument("delta", "a probability below 1", delta)
    if delta > epsilon:
        raise InvalidArgument("delta", "at most epsilon (are the two swapped?)", delta)
    return epsilon, delta


def _delta(mu: float, epsilon: float) -> float:
    """delta(epsilon), without cancellation or overflow.

    With a = mu/2 - eps/mu and b = -mu/2 - eps/mu, e^eps phi(b) = phi(a): delta is phi(a) times
    the difference of two Mills ratios.
    """
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if near < 0:
        return float(ndtr(-near)) - _tail_times(far, near)
    return math.exp(-near * near / 2) / 2 * float(erfcx(near / SQRT2) - erfcx(far / SQRT2))


def _tail_times(far: float, near: float) -> float:
    """e^eps Phi(-far) = exp(-near^2 / 2) erfcx(far / sqrt 2) / 2."""
    return math.exp(-near * near / 2) / 2 * float(erfcx(far / SQRT2))


SQRT2 = math.sqrt(2.0)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(function, low, high, xtol=1e-300, rtol=1e-14, maxiter=500))
