"""What a person gives away: Gaussian privacy, a pure epsilon, both together, and sums of them.

A mechanism is mu-Gaussian private if telling neighbouring inputs apart is never easier than
telling N(0, 1) from N(mu, 1). In terms of epsilon and delta that is, exactly,

    delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu).

So it is with ideal noise. Noise of finite precision takes a little more of delta: its *slack*.
Reports that are an index add no noise; they cost an epsilon, exactly, and no delta.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from scipy.optimize import brentq
from scipy.special import erfcx, ndtr, ndtri

from discreet import checks
from discreet.errors import InvalidArgument


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
        left = delta - share_of(slack, epsilon)
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
        return min(1.0, _delta(self.mu, epsilon) + share_of(self.slack, epsilon))

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


@dataclass(frozen=True)
class PurePrivacy:
    """A privacy cost without delta: every probability changes by at most a factor e^`total`.

    No mechanism of this cost tells neighbours apart better than one that says the truth with
    probability e^total / (1 + e^total). At a smaller epsilon it therefore has at most

        delta(epsilon) = (e^total - e^epsilon) / (1 + e^total).

    >>> cost = PurePrivacy(2.0)
    >>> cost.epsilon(0.0), round(cost.epsilon(1e-3), 4), round(cost.delta(1.0), 3), cost.delta(2.0)
    (2.0, 1.9989, 0.557, 0.0)

    With `missed` all this holds but for so small a probability, in which everything may be told:
    a promise of (epsilon, delta) of which no more is known is PurePrivacy(epsilon, delta), for none
    is easier to tell apart (Kairouz, Oh and Viswanath 2015).

    >>> PurePrivacy(1.0, missed=1e-6).epsilon(1e-6), PurePrivacy(1.0, missed=1e-6).epsilon(1e-7)
    (1.0, inf)
    """

    total: float
    missed: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", checks.number("total", self.total, above=0.0))
        object.__setattr__(self, "missed", checks.number("missed", self.missed, at_least=0.0))

    def delta(self, epsilon: float) -> float:
        """The smallest delta for this epsilon: 0 from `total` on."""
        epsilon = checks.number("epsilon", epsilon, at_least=0.0)
        if epsilon >= self.total:
            return self.missed
        told = -math.expm1(epsilon - self.total) / (1.0 + math.exp(-self.total))
        return min(1.0, self.missed + told)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon for this delta, 0 included: `total` at delta = 0."""
        delta = checks.number("delta", delta, at_least=0.0) - self.missed
        if delta < 0.0:
            return math.inf
        left = 1.0 - delta * (1.0 + math.exp(-self.total))
        return max(0.0, self.total + math.log(left)) if left > 0.0 else 0.0

    @property
    def least_delta(self) -> float:
        """The smallest delta that is certified: none is needed, but for what is missed."""
        return self.missed


@dataclass(frozen=True)
class MixedPrivacy:
    """A Gaussian cost and a pure one together: epsilons add up, and so do deltas.

    (a, d) and (b, e) together are (a + b, d + e)-private, also where one study depends on what the
    other released. From the pure part's total on, delta is the Gaussian's at what is left:

        delta(epsilon) = delta_mu(epsilon - total)            epsilon >= total
                         delta_pure(epsilon) + delta_mu(0)    below.

    >>> both = MixedPrivacy(GaussianPrivacy.of(1.0, 1e-6), PurePrivacy(2.0))
    >>> round(both.epsilon(1e-6), 6), round(both.delta(3.0), 9)
    (3.0, 1e-06)
    """

    gaussian: GaussianPrivacy
    pure: PurePrivacy

    def delta(self, epsilon: float) -> float:
        """A delta that suffices for this epsilon."""
        left = max(0.0, checks.number("epsilon", epsilon, at_least=0.0) - self.pure.total)
        return min(1.0, self.pure.delta(epsilon) + self.gaussian.delta(left))

    def epsilon(self, delta: float) -> float:
        """An epsilon that suffices for this delta; inf where none will do."""
        spare = checks.number("delta", delta, above=0.0) - self.gaussian.delta(0.0)
        if spare >= self.pure.missed:
            return self.pure.epsilon(spare)
        left = delta - self.pure.missed
        return self.pure.total + self.gaussian.epsilon(left) if left > 0.0 else math.inf

    @property
    def least_delta(self) -> float:
        """The smallest delta that is certified: the Gaussian part's, and what the other misses."""
        return self.gaussian.least_delta + self.pure.missed


PrivacyCost = GaussianPrivacy | PurePrivacy | MixedPrivacy


def compose(costs: Iterable[PrivacyCost | None]) -> PrivacyCost | None:
    """What a person gives away who takes part in several studies, each as often as it allows.

        mu^2 = sum of mu_i^2,        slack = sum of slack_i

    Studies may run at the same time, and what happens in one may depend on what another has
    released. With ideal noise the squared whitened differences of all releases of study i sum to
    at most mu_i^2, whatever was released anywhere: those of all studies to at most mu^2, and the
    argument of `streams` holds for all of them as one stream. Real noise is exchanged for ideal in
    one study after another: total variation obeys the triangle inequality, so slacks add up, and
    e^epsilon meets their sum once. This is exact for Gaussian noise: (epsilon, delta) of each study
    added up would be more. Studies of pure reports add their epsilons: the factors e^epsilon_i
    multiply. Beside Gaussian ones they are added at the end (`MixedPrivacy`).

    None stands for a study without a guarantee. With one of these there is none for all together.

    >>> spring, autumn = GaussianPrivacy.of(1.0, 1e-6), GaussianPrivacy.of(1.0, 1e-6)
    >>> round(compose([spring, autumn]).epsilon(1e-6), 2)
    1.45
    >>> compose([spring, None]) is None
    True
    >>> compose([PurePrivacy(1.0), PurePrivacy(2.0)])
    PurePrivacy(total=3.0, missed=0.0)
    >>> round(compose([spring, autumn, PurePrivacy(2.0)]).epsilon(1e-6), 2)
    3.45
    """
    known = list(costs)
    if not known:
        raise InvalidArgument("costs", "at least one")
    private = [cost for cost in known if cost is not None]
    if len(private) < len(known):
        return None
    parts = [parts_of(cost) for cost in private]
    noisy = [gaussian for gaussian, _ in parts if gaussian is not None]
    exact = math.fsum(pure.total for _, pure in parts if pure is not None)
    missed = math.fsum(pure.missed for _, pure in parts if pure is not None)
    if not noisy:
        return PurePrivacy(exact, missed)
    mu = math.hypot(*(cost.mu for cost in noisy))
    gaussian = GaussianPrivacy(mu, math.fsum(cost.slack for cost in noisy))
    return MixedPrivacy(gaussian, PurePrivacy(exact, missed)) if exact else gaussian


def parts_of(cost: PrivacyCost) -> tuple[GaussianPrivacy | None, PurePrivacy | None]:
    """What of a cost is Gaussian, and what is pure."""
    match cost:
        case GaussianPrivacy():
            return cost, None
        case PurePrivacy():
            return None, cost
        case MixedPrivacy():
            return cost.gaussian, cost.pure


def share_of(slack: float, epsilon: float) -> float:
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
