"""The paper's estimator, on released prefix sums: (plan, releases) -> posterior.

Where noise is correlated the releases of a study decode to noisy sums of *all* rounds so far,

    S~ = sum of phi phi^T + H        u~ = sum of y phi + h,

with fixed clipped rewards y and noise whose std is known (`streams`). A posterior is made of the
latest two alone: V is S~ made positive, the mean is phi V^-1 u~ and the std is rho ||phi||_(V^-1)
(errata, section 3). An ask then plays argmax of mean + optimism std: UCB, Algorithms 1 and 2.

`Practical` has constants. `Proven` has the shift and the width of Theorem 1, so that the algorithm
runs exactly as proven. Nothing here reads anything but the plan and its releases.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet import checks
from discreet.agreement.correlated import Correlated
from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.agreement.resolve import OPTIMISM
from discreet.agreement.schedule import Exploration
from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.learning.epoch import Epoch
from discreet.learning.information import volume
from discreet.learning.policy import Policy
from discreet.learning.posterior import Posterior
from discreet.learning.theory import Assumptions, Spectrum, estimate, log_determinant, width
from discreet.privacy.clipping import Noise
from discreet.privacy.correlation import State, Strategy
from discreet.privacy.encodings import Encoding
from discreet.privacy.moments import gram_of

#: The noise of some release exceeds Lambda with at most this probability (the errata's zeta).
FAILURE = 0.1


@dataclass(frozen=True, eq=False)
class Prefix:
    """Noisy sums of the first `rounds` rounds, and the std of the gram's off-diagonal noise."""

    gram: Floats
    cross: Floats
    rounds: int
    std: float


@dataclass(frozen=True)
class Practical:
    """The practical rule: constants known before any data.

    >>> Practical().optimism
    0.3
    """

    optimism: float = OPTIMISM
    releases: int = 1

    def __post_init__(self) -> None:
        checks.number("optimism", self.optimism, at_least=0.0)
        checks.count("releases", self.releases)

    def reward(self, plan: Plan, reward: float) -> float:
        """Clipped, centred and scaled to [-1, 1]."""
        return plan.centred(reward)

    def estimated(self, plan: Plan, prefix: Prefix) -> Posterior:
        """A Gaussian process with V."""
        prior = plan.noise_variance / plan.signal_variance
        positive = self.positive(prefix.gram, prefix.std, prior)
        variance = plan.noise_variance
        return Posterior(plan.map, positive / variance, prefix.cross / variance)

    def width(self, prefix: Prefix, found: Posterior) -> float:
        """A constant number of standard deviations."""
        return self.optimism

    def margin(self, std: float, width: float) -> float:
        """Half of a 95% credible interval."""
        return 1.96 * std

    def positive(self, gram: Floats, std: float, prior: float) -> Floats:
        """V = S~ + (prior + 2 Lambda) I.

        Lambda = std (2 sqrt(m) + 2 sqrt(ln(4 T / zeta)))  bounds the noise of all T releases.
        """
        logs = math.sqrt(math.log(4 * self.releases / FAILURE))
        spectral = 2.0 * std * (math.sqrt(len(gram)) + logs)
        return gram + (prior + 2.0 * spectral) * np.eye(len(gram))


@dataclass(frozen=True)
class Proven:
    """The paper's rule as proven: its shift, and the width of Theorem 1 (`theory`).

    Rewards are divided by the larger end of their range but not centred: f, and not f minus a
    constant, has a norm of at most B. They must lie in the range, so that clipping moves no mean;
    then their noise is sub-Gaussian with half the range (Hoeffding).
    """

    spectrum: Spectrum
    assumptions: Assumptions

    @classmethod
    def of(
        cls, plan: Plan, strategy: Strategy, noise: Noise, releases: int, norm: float
    ) -> "Proven":
        """Before any data; `norm` is B, in units of the larger end of the rewards' range."""
        low, high = plan.rewards
        assumptions = Assumptions(
            norm=norm,
            noise=(high - low) / 2.0 / _end(plan),
            error=plan.map.error_bound,
            regularisation=plan.noise_variance / plan.signal_variance,
            failure=FAILURE,
        )
        m, half = plan.map.dimension, FAILURE / 2.0
        spectrum = Spectrum.joint(strategy, noise, dimension=m, releases=releases, failure=half)
        return cls(spectrum, assumptions)

    def reward(self, plan: Plan, reward: float) -> float:
        """Clipped and scaled to at most 1."""
        return plan.clip(reward) / _end(plan)

    def estimated(self, plan: Plan, prefix: Prefix) -> Posterior:
        """V = S~ + (lambda + shift) I, and u~; its std is ||phi||_(V^-1)."""
        regularisation, shift = self.assumptions.regularisation, self.spectrum.shift
        return estimate(
            plan.map, prefix.gram, prefix.cross, regularisation=regularisation, shift=shift
        )

    def width(self, prefix: Prefix, found: Posterior) -> float:
        """W_t of Theorem 1, from the released matrix and from what is known before any data."""
        floor = self.assumptions.regularisation + self.spectrum.smallest
        return width(
            self.spectrum,
            self.assumptions,
            rounds=prefix.rounds,
            log_determinant=log_determinant(found),
            side=len(prefix.cross),
            volume=volume(found.features, prefix.rounds, floor),
        )

    def margin(self, std: float, width: float) -> float:
        """Theorem 1 itself: f is this close to the mean, at all points and rounds at once."""
        return width * std + self.assumptions.norm * self.assumptions.error


Rule = Practical | Proven


def rule_of(plan: Plan) -> Rule:
    """How a plan with correlated noise makes a posterior of prefix sums."""
    agreed = _agreed(plan)
    stream, encoding = agreed.stream, agreed.encoding
    if agreed.norm is None:
        return Practical(optimism=plan.exploring.optimism, releases=stream.releases)
    norm = agreed.norm / _end(plan)
    return Proven.of(plan, stream.strategy, encoding.noise, stream.releases, norm)


@dataclass(frozen=True, eq=False)
class PrefixBelief:
    """What the releases so far say: the latest prefix sums, and what later ones decode with."""

    plan: Plan
    rule: Rule
    state: State
    asked: int
    posterior: Posterior
    width: float

    @classmethod
    def before(cls, plan: Plan) -> "PrefixBelief":
        """Nothing released: the prior."""
        agreed = _agreed(plan)
        prior = Posterior.prior(plan.map, plan.signal_variance)
        state = agreed.stream.start(agreed.encoding.size(plan.map))
        return cls(plan, rule_of(plan), state, 0, prior, plan.exploring.optimism)

    def encoding_for(self, first: int, length: int, policy: Policy) -> Encoding:
        """The one of every epoch: sums of rounds encoded otherwise would not add up."""
        return _agreed(self.plan).encoding

    @property
    def exploration(self) -> Exploration:
        """The plan's, as optimistic as the rule says now."""
        return replace(self.plan.exploring, optimism=self.width)

    def margin(self, std: float) -> float:
        """How far f may be from a mean with this standard deviation."""
        return self.rule.margin(std, self.width)

    def after(self, epoch: Epoch, release: Release) -> "PrefixBelief":
        """Decode the next prefix, B Y = A x + B z, and begin from it afresh."""
        agreed = _agreed(self.plan)
        stream, encoding = agreed.stream, agreed.encoding
        sums, state = stream.strategy.advance(self.state, release.integers.astype(np.float64))
        asked = self.asked + release.asks
        moments = encoding.decode(self.plan.map, sums, asks=asked)
        std = encoding.noise.gram * stream.std(state.released)
        prefix = Prefix(gram_of(moments), moments.cross, asked, std)
        found = self.rule.estimated(self.plan, prefix)
        return replace(
            self, state=state, asked=asked, posterior=found, width=self.rule.width(prefix, found)
        )


def _agreed(plan: Plan) -> Correlated:
    if plan.correlated is None:
        raise InvalidArgument("plan", "one with correlated noise")
    return plan.correlated


def _end(plan: Plan) -> float:
    """The larger end of the rewards' range: R."""
    return max(map(abs, plan.rewards))
