"""What reports of an index teach over the whole box, under scales that they themselves make likely.

Reports are private one by one, so a release is a sum of them without further noise, and what it
says is read exactly (`menu_reports`). No release tells the spread of rewards well: noise and signal
are chosen by evidence (`scales_by_evidence`).
"""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.learning.belief import AT_ENDS, Belief, Spending
from discreet.learning.epoch import Epoch
from discreet.learning.menu_reports import Rows
from discreet.learning.policy import Policy
from discreet.learning.posterior import Posterior
from discreet.learning.scales_by_evidence import NOISES, Volatility, likely_shape
from discreet.privacy.interval import IntervalEncoding


@dataclass(frozen=True, eq=False)
class ReportBelief(Belief):
    """A belief that learns from one number of each report, at public actions."""

    volatility: Volatility = field(default_factory=Volatility.before, kw_only=True)

    @classmethod
    def before(cls, plan: Plan, spending: Spending = Spending()) -> "ReportBelief":  # noqa: B008
        """Nothing released: the plan's starting point."""
        plain = Belief.before(plan, spending)
        return cls(plan, plain.window, plain.scales, plain.choice, spending)

    # -- the next epoch

    def encoding_for(self, first: int, length: int, policy: Policy) -> IntervalEncoding:
        """Residuals from the current prediction."""
        plan = self.plan
        unknown = float(self.posterior.variance(policy.menu).mean())
        residual, rows = self._next_residual(unknown), len(policy.menu)
        return IntervalEncoding.fit(residual, rows, plan.report_epsilon, size=plan.book_size)

    def expected(self, asks: int, policy: Policy) -> Posterior:
        """The posterior, but for its mean, after an epoch of so many asks under a policy."""
        encoding = self.encoding_for(self.scales.asked, asks, policy)
        counts = policy.asked(asks).astype(np.float64)
        rows = Rows(encoding, self.plan.map(policy.menu), counts, np.zeros(len(counts)), 0.0)
        told, _ = rows.told(self.posterior, self.scales.noise, clips=encoding.residual.clips)
        return Posterior(self.plan.map, self.prior + self.precision + told, self.information)

    # -- what a release teaches

    def after(self, epoch: Epoch, release: Release) -> Self:
        """What is believed after the release of an epoch."""
        encoding = epoch.encoding
        if not release.reports or not isinstance(encoding, IntervalEncoding):
            return self
        rows = Rows.of(self.plan, epoch, encoding, release)
        learnt, clips = self._with_volatility(rows, release.reports), encoding.residual.clips
        told = rows.told(self.posterior, learnt.scales.noise, clips=clips)
        learnt = replace(learnt, window=self.window.plus(*told))
        return learnt._with_shape_and_choice()

    def _with_volatility(self, rows: Rows, reports: int) -> Self:
        """With the noise that is likely now; at first also whether rewards lie at the ends."""
        clips, scales = rows.encoding.residual.clips, self.scales
        if scales.asked == 0 and self.plan.prior is None:
            ends = rows.spread > AT_ENDS * rows.counts.sum()
            scales = replace(scales, at_ends=ends)
        scales = replace(scales, asked=scales.asked + reports)
        if self.plan.noise_std is not None:
            return replace(self, scales=scales)
        likely = [rows.evidence(self.posterior, std**2, clips=clips) for std in NOISES]
        volatility = self.volatility.plus(np.array(likely))
        noise = volatility.variance
        return replace(self, scales=replace(scales, noise=noise), volatility=volatility)

    def _with_shape_and_choice(self) -> Self:
        learnt = self
        if self.plan.signal_std is None and self.plan.prior is None:
            shape = likely_shape(self._bank, self.choice, self.precision, self.information)
            learnt = replace(self, scales=replace(self.scales, shape=shape))
        return learnt._with_choice()
