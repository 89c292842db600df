"""What reports of an index teach, under scales that they themselves make likely.

Reports are private one by one, so a release is a sum of them without further noise, and what it
says is read exactly. No release tells the spread of rewards well: noise and signal are chosen by
evidence (`scales_by_evidence`). Over the whole box a report tells the residual at a public action
(`MenuBelief`, `menu_reports`); where actions are private, see `book_belief`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats
from discreet.learning.belief import Belief, Spending
from discreet.learning.epoch import Epoch
from discreet.learning.menu_reports import Rows
from discreet.learning.policy import Policy
from discreet.learning.posterior import Posterior
from discreet.learning.scales_by_evidence import NOISES, Extent, Volatility, likely_shape
from discreet.privacy.interval import IntervalEncoding


@dataclass(frozen=True, eq=False)
class ReportBelief(Belief):
    """A belief whose scales are chosen by evidence."""

    volatility: Volatility = field(default_factory=Volatility.before, kw_only=True)
    extent: Extent = field(default=Extent(), kw_only=True)

    @property
    def _is_undecided(self) -> bool:
        """Whether rewards may still lie at the ends of their range."""
        return self.plan.prior is None and self.extent.at_ends is None

    def _with_extent(self, size: float, variance: float) -> Self:
        """After an estimate of E[h^2], of this variance; undecided is taken for at the ends.

        Rewards are then neither predicted nor clipped, which is right for both.
        """
        extent = self.extent.told(size, variance)
        at_ends = extent.at_ends is not False
        return replace(self, extent=extent, scales=replace(self.scales, at_ends=at_ends))

    def _heard_from(self, reports: int, evidence: Callable[[float], float]) -> Self:
        """After so many reports, which say how likely each variance of rewards is."""
        scales = replace(self.scales, asked=self.scales.asked + reports)
        if self.plan.noise_std is not None:
            return replace(self, scales=scales)
        likely = np.array([evidence(std**2) for std in NOISES.tolist()])
        volatility = self.volatility.plus(likely)
        scales = replace(scales, noise=volatility.variance)
        return replace(self, scales=scales, volatility=volatility)

    def _learnt(self, precision: Floats, information: Floats) -> Self:
        """With more known of f; then how much f varies, and its kernel, are chosen anew."""
        learnt = replace(self, window=self.window.plus(precision, information))
        if self.plan.signal_std is None and self.plan.prior is None:
            told = learnt.precision, learnt.information
            shape = likely_shape(self._bank, self.choice, *told)
            learnt = replace(learnt, scales=replace(learnt.scales, shape=shape))
        return learnt._with_choice()


@dataclass(frozen=True, eq=False)
class MenuBelief(ReportBelief):
    """A belief that learns from one number of each report, at public actions."""

    @classmethod
    def before(cls, plan: Plan, spending: Spending = Spending()) -> "MenuBelief":  # noqa: B008
        """Nothing released: the plan's starting point."""
        plain = Belief.before(plan, spending)
        return cls(plan, plain.window, plain.scales, plain.choice, spending)

    def encoding_for(self, first: int, length: int, policy: Policy) -> IntervalEncoding:
        """Residuals from the current prediction."""
        unknown = float(self.posterior.variance(policy.menu).mean())
        asked = policy.asked(length)
        cap = self.plan.cap_of(IntervalEncoding, 1, int(asked[asked > 0].min()))
        return IntervalEncoding(self._next_residual(unknown), cap, len(policy.menu))

    def expected(self, asks: int, policy: Policy) -> Posterior:
        """The posterior, but for its mean, after an epoch of so many asks under a policy."""
        encoding = self.encoding_for(self.scales.asked, asks, policy)
        counts = policy.asked(asks).astype(np.float64)
        seen = counts > 0
        phi, nothing = self.plan.map(policy.menu[seen]), np.zeros(int(seen.sum()))
        rows = Rows(encoding, phi, counts[seen], nothing, 0.0)
        told, _ = rows.told(self.posterior, self.scales.noise, clips=encoding.residual.clips)
        return Posterior(self.plan.map, self.prior + self.precision + told, self.information)

    def after(self, epoch: Epoch, release: Release) -> Self:
        """What is believed after the release of an epoch."""
        encoding = epoch.encoding
        if not release.reports or not isinstance(encoding, IntervalEncoding):
            return self
        rows, clips = Rows.of(self.plan, epoch, encoding, release), encoding.residual.clips
        learnt, before = self, self.posterior
        if self._is_undecided:
            learnt = self._with_extent(*rows.size_of_residuals)
        learnt = learnt._heard_from(
            release.reports, lambda noise: rows.evidence(before, noise, clips=clips)
        )
        return learnt._learnt(*rows.told(before, learnt.scales.noise, clips=clips))
