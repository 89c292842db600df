"""What is promised about privacy, what a round may then cost, and the sentence that says it."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

from discreet import checks
from discreet.errors import InvalidArgument
from discreet.privacy.cost import GaussianPrivacy, PurePrivacy, share_of
from discreet.privacy.shuffled import ShuffledDP
from discreet.storage import canonical

Protect = Literal["decisions", "rewards"]


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
    rounds_per_user: int

    @property
    @abstractmethod
    def _stated(self) -> float | None:
        """The delta that was stated, if any."""

    def __post_init__(self) -> None:
        epsilon = checks.number("epsilon", self.epsilon, above=0.0)
        checked: dict[str, float | int] = {"epsilon": epsilon}
        if self._stated is not None:
            checked["delta"] = _checked_delta(self._stated, epsilon)
        checked["rounds_per_user"] = checks.count("rounds_per_user", self.rounds_per_user)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @cached_property
    def gaussian(self) -> GaussianPrivacy:
        """What all rounds of a person may cost with ideal noise (`Plan.cost`: with real noise)."""
        return GaussianPrivacy.of(self.epsilon, self._needed_delta)

    def certified(self, slack: float) -> GaussianPrivacy:
        """What all rounds of a person may cost with noise of this slack: a hair less.

        Where finite precision would take more than half of delta, the promise is refused.
        """
        taken, delta = share_of(slack, self.epsilon), self._needed_delta
        if taken > delta / 2:
            least = f"delta of at least {2 * taken:.1g}, or " if 2 * taken < 1.0 else ""
            raise InvalidArgument(
                "privacy",
                f"{least}a smaller epsilon (with correlated noise, or fewer releases): "
                "the finite precision of noise could not be certified",
                delta if least else self.epsilon,
            )
        return GaussianPrivacy.of(self.epsilon, delta, slack)

    @property
    def mu_per_round(self) -> float:
        """The mu that one round may cost."""
        return self.per_round(self.gaussian.mu)

    @property
    def _needed_delta(self) -> float:
        if self._stated is None:
            raise InvalidArgument("delta", "a probability: Gaussian noise needs one")
        return self._stated

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
        checks.number("delta", self.delta, above=0.0)
        super().__post_init__()
        if self.protect not in ("decisions", "rewards"):
            raise InvalidArgument("protect", "'decisions' or 'rewards'", self.protect)

    @property
    def _stated(self) -> float:
        return self.delta

    @property
    def cost(self) -> GaussianPrivacy:
        """What all rounds of a person may cost with ideal noise (`Plan.cost`: with real noise)."""
        return self.gaussian

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
            f"(Gaussian privacy with mu = {self.cost.mu:.4g}; finite precision is part of delta). "
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

    Decision set, context and reward are covered alike. A person's device sends at most
    `rounds_per_user` reports.

    Without `delta` a report is an index (`cap`), and costs epsilon exactly: no set of reports
    becomes likelier than by e^epsilon. Factors multiply, so each of k reports gets epsilon / k.

    With `delta` a plan takes such reports, or one round as integers plus noise of its own, whatever
    tells more. Noise is independent, and k mechanisms of Gaussian privacy mu, each chosen after
    seeing the ones before, are sqrt(k) mu together: each gets mu / sqrt(k).

    >>> LocalDP(epsilon=8.0, rounds_per_user=4).epsilon_per_round
    Fraction(2, 1)
    >>> round(LocalDP(epsilon=8.0, delta=0.1).mu_per_round, 3)
    3.111
    >>> round(LocalDP(epsilon=8.0, delta=0.1, rounds_per_user=4).mu_per_round, 3)
    1.555
    """

    epsilon: float
    delta: float | None = field(default=None, metadata=canonical.OPTIONAL)
    rounds_per_user: int = 1
    protect: ClassVar[Protect] = "decisions"

    def __post_init__(self) -> None:
        if self.delta == 0.0 and not isinstance(self.delta, bool):
            object.__setattr__(self, "delta", None)  # one way to say it
        super().__post_init__()

    @property
    def _stated(self) -> float | None:
        return self.delta

    @property
    def cost(self) -> GaussianPrivacy | PurePrivacy:
        """What all rounds of a person may cost (`Plan.cost`: with real noise)."""
        return PurePrivacy(self.epsilon) if self.delta is None else self.gaussian

    @property
    def pure(self) -> "LocalDP":
        """The same without delta: what reports that are indices keep."""
        return replace(self, delta=None)

    @property
    def epsilon_per_round(self) -> Fraction:
        """What each of all reports may cost, if they are indices: exactly epsilon / k."""
        return Fraction(self.epsilon) / self.rounds_per_user

    def per_round(self, mu: float) -> float:
        """What each of all reports may cost for mu together: their noise is independent."""
        return mu / math.sqrt(self.rounds_per_user)

    @property
    def guarantee(self) -> str:
        """The sentence for the review board."""
        reports, plus = _times(self.rounds_per_user, "report"), ""
        level = (
            f"epsilon = {self.epsilon:g} with delta = 0 (a report is one of a public list of "
            "indices, drawn exactly with integers; no precision is lost)"
        )
        if self.delta is not None:
            plus = f", plus {self.delta:g}"
            level = (
                f"epsilon = {self.epsilon:g} at delta = {self.delta:g} (Gaussian privacy with "
                f"mu = {self.gaussian.mu:.4g}; finite precision is part of delta)"
            )
        return (
            f"Local differential privacy, {level}. "
            f"Unit: one person, in at most {reports}; covered: the decision set, context and "
            "reward of those rounds. "
            "Replace them by anything: the probability of every set of reports that leave the "
            "person's device, and so of everything computed from them, changes by at most a "
            f"factor e^{self.epsilon:g}{plus}, whoever looks. "
            "Public: the plan, the indices and number of asks and of reports, every epoch, report "
            "and release; kernels and settings fitted to reports are post-processing. "
            "Assumed: a reward does not depend on other people's actions, and the person's own "
            "device is trusted, keeps to its number of reports and has good random numbers. "
            "Not covered: that and when a person took part or answered, a person's own view of "
            "their action, and settings chosen by looking at the raw data."
        )


Privacy = NonPrivate | JointDP | LocalDP | ShuffledDP


@dataclass(frozen=True)
class Simulation:
    """A seed instead of the operating system's bits: reproducible, and marked as not private.

    >>> Simulation(seed=7)
    Simulation(seed=7)
    """

    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.whole("seed", self.seed))


def _times(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def _checked_delta(delta: float, epsilon: float) -> float:
    delta = checks.number("delta", delta, above=0.0)
    if delta >= 1.0:
        raise InvalidArgument("delta", "a probability below 1", delta)
    if delta > epsilon:
        raise InvalidArgument("delta", "at most epsilon (are the two swapped?)", delta)
    return delta
