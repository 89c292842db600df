"""What codebook reports teach where people bring contexts or candidates that nobody may see."""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from scipy.linalg import svd

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats
from discreet.learning.belief import Belief, Spending
from discreet.learning.book_reading import Heard
from discreet.learning.crowds import Crowd, crowd_of
from discreet.learning.epoch import Epoch
from discreet.learning.law import Law, Seen
from discreet.learning.policy import Policy
from discreet.learning.posterior import Posterior
from discreet.learning.report_belief import ReportBelief
from discreet.learning.scales_by_evidence import NOISES
from discreet.privacy.book import book_seed
from discreet.privacy.clipping import Residual
from discreet.privacy.codebook import MOST_BOOK_DIRECTIONS, BookSums, CodebookEncoding
from discreet.privacy.moments import upper_triangle

#: Numbers of directions that are tried.
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


@dataclass(frozen=True, eq=False)
class BookBelief(ReportBelief):
    """A belief about the function, and about who comes."""

    law: Law = field(kw_only=True)

    @classmethod
    def before(cls, plan: Plan, spending: Spending = Spending()) -> "BookBelief":  # noqa: B008
        """Nothing released: the plan's starting point."""
        plain = Belief.before(plan, spending)
        names = plan.domain.names if plan.decisions == "candidates" else plan.domain.context
        law = Law.before(plan.domain, names, plan.public_contexts)
        return cls(plan, plain.window, plain.scales, plain.choice, spending, law=law)

    # -- the next epoch

    def encoding_for(self, first: int, length: int, policy: Policy) -> CodebookEncoding:
        """Residuals along the directions, with the lift or signs, that leave the least error."""
        crowd = crowd_of(self.plan, self.law, policy)
        weights = crowd.weights(self.law)
        unknown = float(weights @ np.square(self.posterior.whitening @ crowd.phi.T).sum(axis=0))
        residual = self._next_residual(unknown)
        options = [
            CodebookEncoding.fit(residual, each, self.plan.epsilon, self._seed(policy), lift=lift)
            for each in self._directions(crowd)
            for lift in ((False,) if self.scales.at_ends else (False, True))
        ]
        return min(options, key=lambda each: self._left(crowd, each, length))

    def _seed(self, policy: Policy) -> str:
        return book_seed(self.plan.digest, str(self.scales.asked))

    def _directions(self, crowd: Crowd) -> list[Floats]:
        """The directions that vary most for these people, as the posterior has it: first few."""
        root = self.posterior.whitening
        weights = np.sqrt(crowd.weights(self.law))
        basis = svd((crowd.phi @ root.T) * weights[:, None], full_matrices=False)[2]
        most = min(MOST_BOOK_DIRECTIONS, len(basis))
        counts = [count for count in COUNTS if count < most] + [most]
        return [basis[:count] @ root for count in counts]

    def _left(self, crowd: Crowd, encoding: CodebookEncoding, length: int) -> float:
        """The variance of f that a release would leave, where these people go."""
        after = self._foreseen(crowd, encoding, length)
        weights = crowd.weights(self.law)
        return float(weights @ np.square(after.whitening @ crowd.phi.T).sum(axis=0))

    def _foreseen(self, crowd: Crowd, encoding: CodebookEncoding, length: int) -> Posterior:
        told, _ = self._heard(crowd, encoding, length, None).told(self.posterior, self.scales.noise)
        return Posterior(self.plan.map, self.prior + self.precision + told, self.information)

    def _heard(
        self, crowd: Crowd, encoding: CodebookEncoding, reports: int, sums: BookSums | None
    ) -> Heard:
        weights = crowd.weights(self.law)
        return Heard(encoding, crowd.phi, weights, reports, sums, self.scales.at_ends)

    def expected(self, asks: int, policy: Policy) -> Posterior:
        """The posterior, but for its mean, after an epoch of so many asks under a policy."""
        crowd = crowd_of(self.plan, self.law, policy)
        return self._foreseen(crowd, self.encoding_for(self.scales.asked, asks, policy), asks)

    # -- what a release teaches

    def after(self, epoch: Epoch, release: Release) -> Self:
        """What is believed after the release of an epoch."""
        encoding = epoch.encoding
        if not release.reports or not isinstance(encoding, CodebookEncoding):
            return self
        sums = encoding.decode(release.integers)
        crowd = crowd_of(self.plan, self.law, epoch.policy)
        learnt = self._with_law(crowd, encoding, release.reports, sums)
        heard = learnt._heard(crowd, encoding, release.reports, sums)
        learnt = learnt._with_heard_volatility(heard)
        heard = learnt._heard(crowd, encoding, release.reports, sums)
        told = heard.told(self.posterior, learnt.scales.noise)
        return replace(learnt, window=self.window.plus(*told))._with_shape_and_choice()

    def _with_heard_volatility(self, heard: Heard) -> Self:
        scales = self.scales
        if scales.asked == 0 and self.plan.prior is None and heard.encoding.lift and heard.sums:
            shape = heard.geometry
            rest = (heard.sums.second[-1, -1] / heard.reports - shape.across) / shape.excess
            scales = replace(scales, at_ends=bool(rest < 0.3))
        scales = replace(scales, asked=scales.asked + int(heard.reports))
        if self.plan.noise_std is not None:
            return replace(self, scales=scales)
        likely = [heard.evidence(self.posterior, std**2) for std in NOISES]
        volatility = self.volatility.plus(np.array(likely))
        scales = replace(scales, noise=volatility.variance)
        return replace(self, scales=scales, volatility=volatility)

    def _with_law(
        self, crowd: Crowd, encoding: CodebookEncoding, reports: int, sums: BookSums
    ) -> Self:
        """Who comes, by the second moments of codewords: sum of (h / w)^2 g g^T, with noise."""
        heard = self._heard(crowd, encoding, reports, sums)
        r, shape = heard.g.shape[1], heard.geometry
        if r < 2 or shape.excess <= 0.0:
            return self
        rows, columns = upper_triangle(r)
        gram = (sums.second[:r, :r] - reports * shape.across * np.eye(r)) / shape.excess
        squares = heard.squares(self.posterior, self.scales.noise)
        weights = heard.weights * squares
        counted = reports * float(weights.sum())
        each = np.where(rows == columns, 2.0, 1.0) / encoding.dimension**2
        variances = reports * each / shape.excess**2
        seen = Seen(heard.g, crowd.psi, weights / weights.sum(), counted, counted)
        return replace(self, law=self.law.told(gram[rows, columns], variances, [seen]))
