"""What releases say where people bring contexts or candidates that nobody may see.

A release holds sum A h g, sum A g g^T and sum A h^2 over private rounds (`DirectedEncoding`). Where
these people went is known in law alone (`crowds`): with A_b, n_b the weight and number of block b,

    v = sum_b A_b slope_b (n_b E_b[g phi^T] (theta - theta_0) + sqrt(n_b) Q_b e_b) + error,

e_b the reward noise that all looks at the block share, Q_b how the directions see it, and

    Cov(error) = sigma_u^2 I + sum_b A_b^2 n_b ((excess_b + slope_b^2 Var_b[f - f_0]) E_b[g g^T]
                 + slope_b^2 rho^2 (E_b[g g^T] - Q_b Q_b^T)).

As h is a residual, what the law gets wrong is multiplied by what the model still gets wrong. The
gram tells who comes (`law`), and its trace how many answered: ||g|| = 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats
from discreet.learning.belief import Belief, Spending
from discreet.learning.crowds import Crowd, CrowdBlock, crowd_of
from discreet.learning.epoch import Epoch
from discreet.learning.inference import Clipped, Statistics, nonnegative
from discreet.learning.law import Law, Seen
from discreet.learning.policy import Policy
from discreet.learning.posterior import Posterior
from discreet.learning.search import public_points
from discreet.learning.singular import thin_svd
from discreet.learning.window import Window
from discreet.privacy.clipping import Residual
from discreet.privacy.directed import MOST_DIRECTIONS, DirectedEncoding
from discreet.privacy.encodings import Encoding
from discreet.privacy.looks import in_sight
from discreet.privacy.moments import gram_of, upper_triangle

#: So many made-up people say where features leave something out.
JUDGED = 256


@dataclass(frozen=True)
class Answered:
    """The share of asks that are answered: a Gaussian, at first around 1 within a fifth."""

    mean: float = 1.0
    precision: float = 25.0

    @property
    def share(self) -> float:
        """The share, between a twentieth and all."""
        return min(1.0, max(0.05, self.mean))

    def told(self, counted: float, asks: float, variance: float) -> "Answered":
        """After so many asks, of which this many answers were counted, with noise.

        >>> Answered().told(counted=5_000.0, asks=10_000.0, variance=83.0**2).share.__round__(2)
        0.5
        """
        precision = self.precision + asks**2 / variance
        step = asks * (counted - asks * self.mean) / variance / precision
        return Answered(self.mean + step, precision)


@dataclass(frozen=True, eq=False)
class PersonalBelief(Belief):
    """A belief about the function, and about who comes and answers."""

    law: Law = field(kw_only=True)
    answered: Answered = field(default=Answered(), kw_only=True)

    @classmethod
    def before(cls, plan: Plan, spending: Spending = Spending()) -> "PersonalBelief":  # noqa: B008
        """Nothing released: the plan's starting point."""
        plain = Belief.before(plan, spending)
        names = plan.domain.names if plan.decisions == "candidates" else plan.domain.context
        law = Law.before(plan.domain, names, plan.public_contexts)
        return cls(plan, plain.window, plain.scales, plain.choice, spending, law=law)

    # -- the next epoch

    def _mean_features(self, policy: Policy) -> Floats:
        """The mean of phi over the people that a policy serves, as the law has them."""
        crowd = crowd_of(self.plan, self.law, policy)
        return crowd.weights(self.law) @ crowd.phi

    def _newest_asked(self) -> tuple[Floats, Floats] | None:
        """Where the law has some of the newest people, and how often."""
        if not self.window.blocks:
            return None
        crowd: Crowd = self.window.blocks[0].crowd
        return crowd.points[:JUDGED], crowd.weights(self.law)[:JUDGED]

    def encoding_for(self, first: int, length: int, policy: Policy) -> DirectedEncoding:
        """Residuals from the current prediction along the directions that leave the least error."""
        plan, block = self.plan, self._block(policy, first, length)
        unknown = self._unknown(block, self.posterior)
        encoding = DirectedEncoding.fit(
            plan.map, self._next_residual(unknown), plan.mu, 1.0, plan.most_rounds(first, length)
        )
        window = self.window.entered(block, self.scales.noise)
        options = [replace(encoding, directions=each) for each in self._directions(block)]
        return min(options, key=lambda each: self._left(window, each))

    def _block(self, policy: Policy, first: int, length: int) -> CrowdBlock:
        crowd = crowd_of(self.plan, self.law, policy)
        return CrowdBlock.of(crowd, self.law, length, self.plan.looks_from(first))

    def _next_residual(self, unknown: float) -> Residual:
        """As for any; where answers lie at the ends, so wide that none of them is clipped."""
        residual = super()._next_residual(unknown)
        if not self.scales.at_ends:
            return residual
        furthest = 1.0 + float(np.abs(self.posterior.mean(public_points(self.plan.domain))).max())
        return replace(residual, width=min(DirectedEncoding.widest, furthest))

    def line(self, residual: Residual, unknown: float) -> Clipped:
        """As for any residual; what lies at the ends of its range is not clipped at all."""
        if self.scales.at_ends:
            return Clipped(1.0, self.scales.noise)
        return super().line(residual, unknown)

    def _directions(self, block: CrowdBlock) -> list[Floats]:
        """The directions that vary most for these people, as the posterior has it: first few."""
        root = self.posterior.whitening.T
        basis = thin_svd(root.T @ block.root)[0]
        most = min(MOST_DIRECTIONS, basis.shape[1])
        counts = sorted({min(count, most) for count in self.spending.counts})
        return [basis[:, :count].T @ root.T for count in counts]

    def _left(self, window: Window[CrowdBlock], encoding: DirectedEncoding) -> float:
        """The variance of f that a release would leave, where the newest people go."""
        return self._unknown(window.blocks[0], self._foreseen(window, encoding))

    def expected(self, asks: int, policy: Policy) -> Posterior:
        """The posterior, but for its mean, after an epoch of so many asks under a policy."""
        first = self.scales.asked
        window = self.window.entered(self._block(policy, first, asks), self.scales.noise)
        return self._foreseen(window, self.encoding_for(first, asks, policy))

    def _foreseen(self, window: Window[CrowdBlock], encoding: DirectedEncoding) -> Posterior:
        """The posterior, but for its mean, after a release that looks at this window."""
        nothing = np.zeros(len(encoding.directions))
        seen = self._look(window, encoding, nothing, self.posterior)
        return Posterior(self.plan.map, self.prior + seen.theta.precision, self.information)

    # -- what a release teaches

    def after(self, epoch: Epoch, release: Release) -> "PersonalBelief":
        """What is believed after the release of an epoch."""
        plan, encoding = self.plan, epoch.additive
        if release.asks == 0:
            return self
        moments = encoding.decode(plan.map, release.integers, asks=release.asks)
        newest = self._block(epoch.policy, epoch.first, release.asks)
        learnt = self._told_who(encoding, gram_of(moments), in_sight(newest, self.window.blocks))
        newest = CrowdBlock.of(newest.crowd, learnt.law, newest.asks, newest.looks)
        blocks = in_sight(newest, self.window.blocks)
        grams = [
            learnt._counted(b, age) * b.crowd.moments(learnt.law) for age, b in enumerate(blocks)
        ]
        rounds = sum(learnt._counted(block, age) for age, block in enumerate(blocks))
        found = Statistics(
            np.sum(grams, axis=0), moments.cross, moments.spread, np.zeros((0, 0)), rounds, blocks
        )
        return learnt.taught(encoding, found, release.asks, filled=plan.is_design(epoch.first))

    def _counted(self, block: CrowdBlock, age: int) -> float:
        """How often the answered rounds of a block count."""
        return block.looks[age] * block.asks * self.answered.share

    def _told_who(
        self, encoding: Encoding, gram: Floats, blocks: Sequence[CrowdBlock]
    ) -> "PersonalBelief":
        """After a gram along directions: who comes, and how many answer."""
        r, noise = len(gram), encoding.noise.gram**2
        asks = sum(block.looks[age] * block.asks for age, block in enumerate(blocks))
        told = self.answered.told(float(np.trace(gram)), asks, 2.0 * r * noise)
        learnt = replace(self, answered=told)
        seen = [learnt._seen(encoding, block, age) for age, block in enumerate(blocks)]
        rows, columns = upper_triangle(r)
        variances = noise * np.where(rows == columns, 2.0, 1.0)
        if not self.spending.learns_law:
            return learnt
        return replace(learnt, law=self.law.told(gram[rows, columns], variances, seen))

    def _seen(self, encoding: Encoding, block: CrowdBlock, age: int) -> Seen:
        crowd, counted = block.crowd, self._counted(block, age)
        weights = crowd.weights(self.law)
        g = encoding.along(crowd.phi)
        return Seen(g, crowd.psi, weights, counted, counted * block.looks[age])

    def _told(
        self, before: Posterior, encoding: Encoding, found: Statistics, unknown: float
    ) -> Window[Any]:
        """The window after the release."""
        window = self.window.entered(found.blocks[0], self.scales.noise)
        only = unknown if len(window.blocks) == 1 else None
        return self._look(window, encoding, found.cross, before, only)

    def _look(
        self,
        window: Window[CrowdBlock],
        encoding: Encoding,
        cross: Floats,
        before: Posterior,
        unknown: float | None = None,
    ) -> Window[CrowdBlock]:
        """The window after a release that looks at its blocks; `unknown` of the only one."""
        noise, r = self.scales.noise, len(cross)
        covariance = encoding.noise.cross**2 * np.eye(r)
        theta = np.zeros((r, len(before.precision)))
        shared: list[Floats] = []
        for age, block in enumerate(window.blocks):
            left = self._unknown(block, before) if unknown is None else unknown
            line = self.line(encoding.residual, left)
            seen = self._seen(encoding, block, age)
            weighed = seen.g * seen.weights[:, None]
            carries, square = weighed.T @ block.crowd.phi, weighed.T @ seen.g
            n, weight = block.asks * self.answered.share, block.looks[age]
            theta += line.slope * weight * n * carries
            error = (line.excess(noise) + line.slope**2 * left) * square
            rest = square
            if block.size:
                along = block.carried(carries)
                # The law may have moved since: what its people carry then no longer adds up.
                rest = nonnegative(square - along @ along.T)
                shared.append(line.slope * weight * np.sqrt(n) * along)
            covariance += weight**2 * n * (error + line.slope**2 * noise * rest)
        design = np.concatenate([theta, *shared], axis=1)
        values = cross + theta @ encoding.residual.prediction
        return window.observe(design, values, (covariance + covariance.T) / 2)

    def _unknown(self, block: CrowdBlock, posterior: Posterior) -> float:
        """The mean variance of f where these people go."""
        return float(np.sum(posterior.covariance * block.crowd.moments(self.law)))
