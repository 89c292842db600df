"""What reports of an index say where actions are public: one sum of residuals a row of the menu.

Which row j of the menu an ask got is public, so its report tells of the residual h alone
(`IntervalEncoding`). A release has for each row the number n_j of answers and unbiased estimates of
the sums of h and of h^2: a noisy linear observation of f at the rows,

    cross_j = n_j slope_j (f - f_0)(x_j) + error_j,
    Var[error_j] = n_j (Var[report] + Var[h | f]),    independent over rows.

How much rewards vary around f is told twice: by how far `cross` lies from
what was believed, and by the sum of h^2 beyond what `cross` explains.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats
from discreet.learning.clipped_lines import Lines, mean_square
from discreet.learning.epoch import Epoch
from discreet.learning.posterior import Posterior
from discreet.privacy.interval import IntervalEncoding


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a menu that were answered: features, answers, and what their reports sum to."""

    encoding: IntervalEncoding
    phi: Floats
    counts: Floats
    cross: Floats
    spread: float

    @classmethod
    def of(cls, plan: Plan, epoch: Epoch, encoding: IntervalEncoding, release: Release) -> "Rows":
        """Of an epoch's release."""
        counts, cross, spread = encoding.decode(release.integers)
        seen = counts > 0
        phi = plan.map(epoch.policy.menu[seen])
        return cls(encoding, phi, counts[seen], cross[seen], float(spread.sum()))

    @property
    def size_of_residuals(self) -> tuple[float, float]:
        """E[h^2 / w^2] over all answers, and the variance of this estimate."""
        total, width = float(self.counts.sum()), self.encoding.residual.width
        half = square_variances(self.encoding, np.array([width**2 / 2.0]))
        return self.spread / total / width**2, float(half[0]) / total / width**4

    def observed(self, before: Posterior, noise: float, *, clips: bool) -> tuple[Floats, Floats]:
        """(n_j slope_j, Var[error_j]) where rewards have this variance around f."""
        unknown, moved = before.variance_of(self.phi), self._moved(before)
        line = Lines.at(self.encoding.residual.width, unknown, noise, clips=clips)
        inside = line.variance + np.square(line.slope) * (unknown + np.square(moved))
        reports = report_variances(self.encoding, inside)
        return self.counts * line.slope, self.counts * (line.variance + reports)

    def told(self, before: Posterior, noise: float, *, clips: bool) -> tuple[Floats, Floats]:
        """What they add to precision and information."""
        slopes, variances = self.observed(before, noise, clips=clips)
        design = slopes[:, None] * self.phi
        weighted = design / variances[:, None]
        values = self.cross + design @ self.encoding.residual.prediction
        return design.T @ weighted, weighted.T @ values

    def evidence(self, before: Posterior, noise: float, *, clips: bool) -> float:
        """log p(cross) + log p(spread | cross) where rewards have this variance around f."""
        slopes, variances = self.observed(before, noise, clips=clips)
        half = self.phi @ before.whitening.T
        known = half @ half.T
        seen = slopes[:, None] * known
        factor = cho_factor(seen * slopes + np.diag(variances), lower=True)
        miss = self.cross - slopes * self._moved(before)
        likely = -float(np.log(np.diag(factor[0])).sum()) - 0.5 * miss @ cho_solve(factor, miss)
        # How large residuals were, by what is believed of them once `cross` is known.
        after = self._moved(before) + seen.T @ cho_solve(factor, miss)
        left = np.maximum(np.diag(known) - np.sum(seen * cho_solve(factor, seen), axis=0), 0.0)
        variance = left + np.square(after) + noise
        width = self.encoding.residual.width
        square = mean_square(width, variance) if clips else np.minimum(variance, 1.0)
        deviation = self.counts @ square_variances(self.encoding, square)
        excess = self.spread - self.counts @ square
        return float(likely - 0.5 * math.log(deviation) - 0.5 * excess**2 / deviation)

    def _moved(self, before: Posterior) -> Floats:
        """What is believed of f - f_0."""
        return self.phi @ (before.coefficients - self.encoding.residual.prediction)


# -- how uncertain a report is


def report_variances(encoding: IntervalEncoding, squares: Floats) -> Floats:
    """The variance of one report's estimate of h, where h^2 is this on average: it is linear."""
    width = encoding.residual.width
    least = encoding.variance(0.0)
    return least + (encoding.variance(width) - least) * squares / width**2


def square_variances(encoding: IntervalEncoding, squares: Floats) -> Floats:
    """About the variance of one report's estimate of h^2, where h^2 is this on average.

    Between what it is at h = 0 and at |h| = w, and at most what h^2 itself varies by.
    """
    width = encoding.residual.width
    none, most = (_square_variance(encoding, level) for level in (0.0, 1.0))
    level = np.clip(squares / width**2, 0.0, 1.0)
    return (none + (most - none) * level + level * (1.0 - level)) * width**4


def _square_variance(encoding: IntervalEncoding, level: float) -> float:
    """Exactly, at h / w = level, in units of w^4: v^2 is uniform in and outside the cap."""
    cap = encoding.cap
    size, nearest = cap.size, cap.nearest
    begin = round((level + 1.0) / 2.0 * (size - nearest))
    chances = np.full(size, float(cap.outside))
    chances[begin : begin + nearest] = float(cap.inside)
    slope = float(cap.share) - float(cap.outside) * nearest
    square = np.square(2.0 * np.arange(size) - (size - 1.0)) / (slope * (size - nearest) ** 2)
    return float(chances @ np.square(square) - (chances @ square) ** 2)
