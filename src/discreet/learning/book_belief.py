"""What codebook reports teach where nobody may know which action a report is about.

People bring contexts or candidates that are private, or their reports come without the ask that
they answer. Where they went is known in law alone: by the menu, or by the law of who comes, which
the second moments of codewords move (`law`). What a release then says is in `book_reading`.

Which directions an epoch has, and whether residuals are told by a sign or by the lift, is decided
by what is expected to leave the least uncertain: a public rule.
"""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats
from discreet.learning.belief import Belief, Spending
from discreet.learning.book_reading import Heard
from discreet.learning.crowds import crowd_of
from discreet.learning.epoch import Epoch
from discreet.learning.law import Law, Seen
from discreet.learning.policy import Policy
from discreet.learning.posterior import Posterior
from discreet.learning.report_belief import ReportBelief
from discreet.learning.singular import thin_svd
from discreet.privacy.book import book_seed
from discreet.privacy.clipping import Residual
from discreet.privacy.codebook import MOST_BOOK_DIRECTIONS, BookSums, CodebookEncoding
from discreet.privacy.moments import upper_triangle

#: The book of an epoch is named when it opens.
NO_SEED = book_seed()
#: Numbers of directions that are tried.
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


@dataclass(frozen=True, eq=False)
class Went:
    """Made-up people who stand for those of an epoch: features, weights, and what they bring."""

    phi: Floats
    weights: Floats
    psi: Floats | None = None


@dataclass(frozen=True, eq=False)
class BookBelief(ReportBelief):
    """A belief about the function, and about who comes."""

    law: Law | None = field(kw_only=True)

    @classmethod
    def before(cls, plan: Plan, spending: Spending = Spending()) -> "BookBelief":  # noqa: B008
        """Nothing released: the plan's starting point."""
        plain = Belief.before(plan, spending)
        law = None
        if plan.decisions != "box":
            names = plan.domain.names if plan.decisions == "candidates" else plan.domain.context
            law = Law.before(plan.domain, names, plan.public_contexts)
        return cls(plan, plain.window, plain.scales, plain.choice, spending, law=law)

    # -- the next epoch

    def encoding_for(self, first: int, length: int, policy: Policy) -> CodebookEncoding:
        """Residuals along the directions, with the lift or signs, that leave the least error."""
        went = self._went(policy, length)
        unknown = float(went.weights @ self.posterior.variance_of(went.phi))
        residual = self._next_residual(unknown)
        options = [
            self._encoding(residual, each, length, lift=lift)
            for each in self._directions(went)
            for lift in self._lifts()
        ]
        return min(options, key=lambda each: self._left(went, each, length))

    def _encoding(
        self, residual: Residual, directions: Floats, length: int, *, lift: bool
    ) -> CodebookEncoding:
        plan, dimension = self.plan, len(directions) + lift
        level = plan.level_of(CodebookEncoding, dimension, length)  # all of an epoch are one group
        size = plan.book_size
        return CodebookEncoding.fit(residual, directions, level, NO_SEED, lift=lift, size=size)

    def _went(self, policy: Policy, asks: int) -> Went:
        """Where the people of an epoch go: by its menu, or by the law of who comes."""
        if self.law is None:
            return Went(self.plan.map(policy.menu), policy.asked(asks) / asks)
        crowd = crowd_of(self.plan, self.law, policy)
        return Went(crowd.phi, crowd.weights(self.law), crowd.psi)

    def _lifts(self) -> tuple[bool, ...]:
        """The lift tells how large rewards are until that is known; signs do at the ends."""
        if self._is_undecided:
            return (True,)
        return (False,) if self.scales.at_ends else (False, True)

    def _directions(self, went: Went) -> list[Floats]:
        """Directions that differ most between these people, first few."""
        root, centred = self.posterior.whitening, self._compared(went)
        whitened = (centred @ root.T) * np.sqrt(went.weights)[:, None]
        basis = thin_svd(whitened)[2]
        most = min(MOST_BOOK_DIRECTIONS, len(basis))
        counts = [count for count in COUNTS if count < most] + [most]
        return [basis[:count] @ root for count in counts]

    def _left(self, went: Went, encoding: CodebookEncoding, length: int) -> float:
        """The variance that a release would leave of how f differs between these people."""
        after = self._foreseen(went, encoding, length)
        return float(went.weights @ after.variance_of(self._compared(went)))

    def _compared(self, went: Went) -> Floats:
        """What differs between actions: a level that all candidates share changes no choice."""
        if self.plan.decisions != "candidates":
            return went.phi
        return went.phi - went.weights @ went.phi

    def _foreseen(self, went: Went, encoding: CodebookEncoding, length: int) -> Posterior:
        told, _ = self._heard(went, encoding, length, None).told(self.posterior, self.scales.noise)
        return Posterior(self.plan.map, self.prior + self.precision + told, self.information)

    def _heard(
        self, went: Went, encoding: CodebookEncoding, reports: int, sums: BookSums | None
    ) -> Heard:
        return Heard(encoding, went.phi, went.weights, reports, sums, self.scales.at_ends)

    def expected(self, asks: int, policy: Policy) -> Posterior:
        """The posterior, but for its mean, after an epoch of so many asks under a policy."""
        encoding = self.encoding_for(self.scales.asked, asks, policy)
        return self._foreseen(self._went(policy, asks), encoding, asks)

    # -- what a release teaches

    def after(self, epoch: Epoch, release: Release) -> Self:
        """What is believed after the release of an epoch."""
        encoding, reports = epoch.encoding, release.reports
        if not reports or not isinstance(encoding, CodebookEncoding):
            return self
        sums, went = encoding.decode(release.integers), self._went(epoch.policy, release.asks)
        learnt = self._with_law(self._heard(went, encoding, reports, sums), went.psi)
        went = learnt._went_as_before(self, epoch.policy, release.asks)
        heard, before = learnt._heard(went, encoding, reports, sums), self.posterior
        if self._is_undecided and encoding.lift:
            learnt = learnt._with_extent(*heard.size_of_residuals)
            heard = learnt._heard(went, encoding, reports, sums)
        learnt = learnt._heard_from(reports, lambda noise: heard.evidence(before, noise))
        return learnt._learnt(*heard.told(before, learnt.scales.noise))

    def _went_as_before(self, before: "BookBelief", policy: Policy, asks: int) -> Went:
        """The people of an epoch that opened under an earlier law, as this one weighs them."""
        if self.law is None or before.law is None:
            return self._went(policy, asks)
        crowd = crowd_of(self.plan, before.law, policy)
        return Went(crowd.phi, crowd.weights(self.law), crowd.psi)

    def _with_law(self, heard: Heard, psi: Floats | None) -> Self:
        """Who comes, by the second moments of codewords: sum of (h / w)^2 g g^T, with noise."""
        r, shape, n = heard.g.shape[1], heard.geometry, heard.reports
        if self.law is None or psi is None or heard.sums is None or r < 2:
            return self
        rows, columns = upper_triangle(r)
        gram = (heard.sums.second[:r, :r] - n * shape.across * np.eye(r)) / shape.excess
        weights = heard.weights * heard.squares(self.posterior, self.scales.noise)
        counted = n * float(weights.sum())
        each = np.where(rows == columns, 2.0, 1.0) / heard.encoding.dimension**2
        seen = Seen(heard.g, psi, weights / weights.sum(), counted, counted)
        variances = n * each / shape.excess**2
        return replace(self, law=self.law.told(gram[rows, columns], variances, [seen]))
