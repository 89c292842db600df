"""Algorithm 3 as proven: the paper's estimator on sums of local reports.

Every report brings its own noise, so the sums of t reports are

    S~ = sum of phi phi^T + H_t      u~ = sum of y phi + h_t      std of one report times sqrt(t)

whatever the epochs. Shift, width and choice are those of Theorem 1 with the spectrum of a sum of T
reports (`theory.Spectrum.local`). As proven it releases in every round; where a schedule says
otherwise, people of an epoch choose by the same bound. A person who sends no report is not in the
sums at all, and moves no estimate.
"""

from dataclasses import dataclass, replace

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.agreement.schedule import Exploration
from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.learning.epoch import Epoch
from discreet.learning.policy import Policy
from discreet.learning.posterior import Posterior
from discreet.learning.prefix_belief import Prefix, Proven
from discreet.privacy.clipping import Residual
from discreet.privacy.correlation import Independent
from discreet.privacy.encodings import Encoding
from discreet.privacy.moments import gram_of


@dataclass(frozen=True, eq=False)
class ReportSums:
    """The sums of all reports so far, and the rule that the plan's horizon fixes."""

    plan: Plan
    rule: Proven
    gram: Floats
    cross: Floats
    reports: int
    posterior: Posterior
    width: float

    @classmethod
    def before(cls, plan: Plan) -> "ReportSums":
        """No report: the prior."""
        if plan.horizon is None or plan.norm is None:
            raise InvalidArgument("plan", "one with a horizon and a norm")
        m, norm = plan.map.dimension, plan.norm / plan.half_width
        noise = _encoding(plan).noise
        rule = Proven.of(plan, Independent(), noise, plan.horizon, norm)
        prior = Posterior.prior(plan.map, plan.signal_variance)
        return cls(plan, rule, np.zeros((m, m)), np.zeros(m), 0, prior, plan.exploring.optimism)

    def encoding_for(self, first: int, length: int, policy: Policy) -> Encoding:
        """The one of every epoch: clipped rewards, no residuals."""
        return _encoding(self.plan)

    @property
    def exploration(self) -> Exploration:
        """As optimistic as the width says now."""
        return replace(self.plan.exploring, optimism=self.width)

    def margin(self, std: float) -> float:
        """Theorem 1."""
        return self.rule.margin(std, self.width)

    def after(self, epoch: Epoch, release: Release) -> "ReportSums":
        """With the reports of one more epoch."""
        told = release.reports or 0
        if not told:
            return self
        moments = epoch.additive.decode(self.plan.map, release.integers, asks=told)
        reports = self.reports + told
        gram, cross = self.gram + gram_of(moments), self.cross + moments.cross
        std = epoch.additive.noise.gram * reports**0.5
        prefix = Prefix(gram, cross, reports, std)
        found = self.rule.estimated(self.plan, prefix)
        return replace(
            self,
            gram=gram,
            cross=cross,
            reports=reports,
            posterior=found,
            width=self.rule.width(prefix, found),
        )


def _encoding(plan: Plan) -> Encoding:
    nothing = Residual(np.zeros(plan.map.dimension), 1.0)
    return plan.encode_with.fit(plan.map, nothing, plan.mu, 1.0, (plan.horizon or 1))
