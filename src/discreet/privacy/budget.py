"""What is promised about privacy: Gaussian accounting, and the sentence that says it.

A mechanism is mu-Gaussian private if telling neighbouring inputs apart is never easier than
telling N(0, 1) from N(mu, 1). In terms of epsilon and delta that is, exactly,

    delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu).

So it is with ideal noise. Noise of finite precision takes a little more of delta: its *slack*.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

from scipy.optimize import brentq
from scipy.special import erfcx, ndtr, ndtri

from discreet import checks
from discreet.errors import InvalidArgument

Protect = Literal["decisions", "rewards"]


@dataclass(frozen=True)
class GaussianPrivacy:
    """A privacy cost: the mu of Gaussian differential privacy, and the slack of real noise.

    Let Q and Q' be the laws of all that two neighbours would show with ideal noise, P and P' those
    with real noise, each within `slack` of its ideal in total variation. For every event

        P <= Q + slack <= e^epsilon Q' + delta_mu(epsilon) + slack
                       <= e^epsilon P' + delta_mu(epsilon) + (1 + e^epsilon) slack,

    and what is added to e^epsilon P' is the delta at this epsilon. A larger epsilon needs no larger
    delta, so the smallest sum up to it will do. The sum is convex in e^epsilon (the slope of
    delta_mu is -Phi(-mu / 2 - epsilon / mu)). It is least where that tail is the slack; no delta
    below this one is certified, at any epsilon.

    >>> cost = GaussianPrivacy.of(epsilon=1.0, delta=1e-6)
    >>> round(cost.mu, 4), round(cost.epsilon(1e-6), 6), round(cost.epsilon(1e-9), 2)
    (0.2367, 1.0, 1.32)
    >>> real = GaussianPrivacy.of(epsilon=1.0, delta=1e-6, slack=1e-10)
    >>> round(real.epsilon(1e-6), 6), round(real.epsilon(1e-9), 2), real.epsilon(1e-10)
    (1.0, 1.34, inf)
    """

    mu: float
    slack: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checks.number("mu", self.mu, above=0.0))
        object.__setattr__(self, "slack", checks.number("slack", self.slack, at_least=0.0))

    @classmethod
    def of(cls, epsilon: float, delta: float, slack: float = 0.0) -> "GaussianPrivacy":
        """The largest mu that keeps the promise (epsilon, delta), with noise of this slack."""
        left = delta - _share(slack, epsilon)
        if left <= 0.0:
            raise InvalidArgument("slack", "less than delta leaves room for", slack)
        high = 1.0
        while _delta(high, epsilon) < left:
            high *= 2.0
        while _delta(high / 2.0, epsilon) > left:
            high /= 2.0

        def excess(mu: float) -> float:
            return _delta(mu, epsilon) - left

        return cls(_root(excess, high / 2.0, high), slack)

    def delta(self, epsilon: float) -> float:
        """The smallest delta for this epsilon."""
        epsilon = min(checks.number("epsilon", epsilon, at_least=0.0), self._furthest)
        return min(1.0, _delta(self.mu, epsilon) + _share(self.slack, epsilon))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon for this delta: 0 where none is needed, inf where none will do."""
        delta = checks.number("delta", delta, above=0.0)
        if self.delta(0.0) <= delta:
            return 0.0
        if delta < self.least_delta:
            return math.inf
        high = 1.0
        while self.delta(high) > delta:
            high *= 2.0

        def excess(epsilon: float) -> float:
            return self.delta(epsilon) - delta

        return _root(excess, 0.0, high)

    @property
    def least_delta(self) -> float:
        """The smallest delta that is certified, at the epsilon that needs least; 0 for ideal noise.

        >>> f"{GaussianPrivacy(1.0, slack=1e-12).least_delta:.1e}"
        '8.0e-10'
        """
        return self.delta(self._furthest) if self.slack else 0.0

    @property
    def _furthest(self) -> float:
        """The epsilon beyond which slack grows faster than delta_mu falls."""
        return max(0.0, -self.mu * (float(ndtri(min(self.slack, 1.0))) + self.mu / 2.0))


def compose(costs: Iterable[GaussianPrivacy | None]) -> GaussianPrivacy | None:
    """What a person gives away who takes part in several studies, each as often as it allows.

        mu^2 = sum of mu_i^2,        slack = sum of slack_i

    Studies may run at the same time, and what happens in one may depend on what another has
    released. With ideal noise the squared whitened differences of all releases of study i sum to
    at most mu_i^2, whatever was released anywhere: those of all studies to at most mu^2, and the
    argument of `streams` holds for all of them as one stream. Real noise is exchanged for ideal in
    one study after another: total variation obeys the triangle inequality, so slacks add up, and
    e^epsilon meets their sum once. This is exact for Gaussian noise: (epsilon, delta) of each study
    added up would be more.

    None stands for a study without a guarantee. With one of these there is none for all together.

    >>> spring, autumn = GaussianPrivacy.of(1.0, 1e-6), GaussianPrivacy.of(1.0, 1e-6)
    >>> round(compose([spring, autumn]).epsilon(1e-6), 2)
    1.45
    >>> compose([spring, None]) is None
    True
    """
    known = list(costs)
    if not known:
        raise InvalidArgument("costs", "at least one")
    private = [cost for cost in known if cost is not None]
    if len(private) < len(known):
        return None
    mu = math.hypot(*(cost.mu for cost in private))
    return GaussianPrivacy(mu, math.fsum(cost.slack for cost in private))


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
        """What all rounds of a person may cost with ideal noise (`Plan.cost`: with real noise)."""
        return GaussianPrivacy.of(self.epsilon, self.delta)

    def certified(self, slack: float) -> GaussianPrivacy:
        """What all rounds of a person may cost with noise of this slack: a hair less than `cost`.

        Where finite precision would take more than half of delta, the promise is refused.
        """
        taken = _share(slack, self.epsilon)
        if taken > self.delta / 2:
            least = f"delta of at least {2 * taken:.1g}, or " if 2 * taken < 1.0 else ""
            raise InvalidArgument(
                "privacy",
                f"{least}a smaller epsilon (with correlated noise, or fewer releases): "
                "the finite precision of noise could not be certified",
                self.delta if least else self.epsilon,
            )
        return GaussianPrivacy.of(self.epsilon, self.delta, slack)

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
            f"(Gaussian privacy with mu = {self.cost.mu:.4g}; finite precision is part of delta). "
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


def _share(slack: float, epsilon: float) -> float:
    """(1 + e^epsilon) slack: what finite precision takes of delta."""
    return slack * (1.0 + math.exp(min(epsilon, 700.0)))  # beyond, no float holds it


def _delta(mu: float, epsilon: float) -> float:
    """delta(epsilon) with ideal noise, without cancellation or overflow.

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
