"""What one released phase of elimination says: estimates at arms, and how far they may be off.

With c_a asks of arm a, g_a what a residual there is multiplied by, and rows B phi of what is
estimated,

    u = sum of y g + noise        M = sum of c_a g_a (B phi_a)^T        z = M^-T B phi(x)

the estimate at x is z u. Its noise has the variance proxy z C z, C = rho^2 sum of c g g^T + s^2 I.
On top comes bias: misfit at x and at the asked arms, each ask of which moves the estimate by
z g_a; people who did not answer; fixed point. docs/theory.md has the proof.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats, Indices
from discreet.learning.arms import Arms
from discreet.learning.epoch import Epoch
from discreet.learning.posterior import Posterior

#: Pairs of so many arms with all others are looked at together.
TOGETHER = 512
#: Rounding takes less than this share from a squared distance of rows of a few hundred numbers.
ROUNDING = 1e-13
#: A phase whose asks do not span its directions tells nothing.
WORST_CONDITION = 1e10


@dataclass(frozen=True, eq=False)
class Estimates:
    """At some arms, one a row; `scaled` rows are as far apart as noise can move them apart."""

    values: Floats
    scaled: Floats
    bias: Floats

    @property
    def widths(self) -> Floats:
        """|value - f| is at most this, at all rows at once."""
        return np.linalg.norm(self.scaled, axis=1) + self.bias

    def lead(self, rows: Indices, others: Indices, sign: float) -> Floats:
        """For each row, the largest value' - value + sign * width of the pair, over the others.

        With sign -1 it is positive where another arm is proven better; with +1 it bounds by how
        much the best of the others can be better.
        """
        found = np.empty(len(rows))
        squares, away = np.square(self.scaled).sum(axis=1), self.scaled[others]
        for start in range(0, len(rows), TOGETHER):
            some = rows[start : start + TOGETHER]
            both = squares[some, None] + squares[others]
            distance = both - 2.0 * self.scaled[some] @ away.T
            # Of arms that hardly differ rounding may leave nothing: never less than it may take.
            width = np.sqrt(np.maximum(distance, 0.0) + ROUNDING * both)
            width += self.bias[some, None] + self.bias[others]
            ahead = self.values[others] - self.values[some, None] + sign * width
            found[start : start + TOGETHER] = ahead.max(axis=1)
        return found


@dataclass(frozen=True, eq=False)
class Phase:
    """The sums of a phase, and what they are sums of.

    `menu` holds the features of the asked arms, `rows` what is estimated of features (B), `private`
    the noise on each sum, `clip` the largest residual, `silent` how many people did not answer, and
    `cut` what fixed point takes from each sum, at most.
    """

    menu: Floats
    counts: Floats
    along: Floats
    rows: Floats
    sums: Floats
    private: float
    clip: float
    silent: float
    cut: Floats

    @classmethod
    def of(
        cls, plan: Plan, epoch: Epoch, release: Release, rows: Floats, silence: float
    ) -> "Phase":
        """Read a release of the `rows`; without privacy it has sums of all features, for any."""
        answered = release.asks if release.reports is None else release.reports
        encoding = plan.noise_of_sum(epoch.additive, max(answered, 1))
        menu = plan.map(epoch.policy.menu)
        counts = epoch.policy.asked(release.asks).astype(np.float64)
        g: Floats = encoding.along(menu)
        cross = encoding.decode(plan.map, release.integers, asks=release.asks).cross
        # Answers are truncated; noise, of one release or of every report, is rounded.
        cut = np.full(len(rows), math.ldexp(2 * release.asks, -encoding.bits))
        if not encoding.is_noisy:
            cross, g, cut = rows @ cross, g @ rows.T, cut * np.abs(rows).sum(axis=1)
        predicted = (g * counts[:, None]).T @ (menu @ encoding.residual.prediction)
        return cls(
            menu=menu,
            counts=counts,
            along=g,
            rows=rows,
            sums=cross + predicted,
            private=encoding.noise.cross,
            clip=encoding.residual.width,
            silent=silence * release.asks if release.reports is None else release.asks - answered,
            cut=cut,
        )

    @cached_property
    def _weighted(self) -> Floats:
        return self.along * self.counts[:, None]

    @cached_property
    def matrix(self) -> Floats:
        """M."""
        return self._weighted.T @ (self.menu @ self.rows.T)

    @property
    def spans(self) -> bool:
        """Whether the asks tell everything that is to be estimated."""
        return bool(np.linalg.cond(self.matrix) < WORST_CONDITION)

    def covariance(self, noise: float) -> Floats:
        """C, for rewards with this sub-Gaussian noise."""
        own = np.eye(len(self.sums)) * self.private**2
        return noise**2 * self._weighted.T @ self.along + own

    @property
    def theta(self) -> Floats:
        """The coefficients whose predictions are the estimates."""
        return self.rows.T @ solve(self.matrix, self.sums)

    def observed(self, posterior: Posterior, noise: float) -> Posterior:
        """A posterior that takes the phase for a linear observation."""
        return posterior.observe(self._weighted.T @ self.menu, self.sums, self.covariance(noise))

    def at(self, phi: Floats, arms: Arms, log: float) -> Estimates:
        """Estimates at arms with these features; `log` is the L_k of all of them."""
        z: Floats = solve(self.matrix.T, self.rows @ phi.T).T
        root = cholesky(self.covariance(arms.noise), lower=True)
        return Estimates(z @ self.sums, log * (z @ root), self._bias(z, phi, arms))

    def _bias(self, z: Floats, phi: Floats, arms: Arms) -> Floats:
        """What misfit, silence and fixed point can add to each estimate."""
        onto = np.linalg.pinv(self.rows) @ self.rows
        left = max(
            float(np.linalg.norm(each - each @ onto, axis=1).max()) for each in (phi, self.menu)
        )
        pull = np.abs(z @ self.along.T)  # how far one ask moves each estimate
        misfit = (arms.misfit + arms.norm * left) * (1.0 + pull @ self.counts)
        most = np.sqrt(self.silent * (np.square(pull) @ self.counts))
        silence = self.clip * np.minimum(self.silent * pull.max(axis=1), most)
        return misfit + silence + np.abs(z) @ self.cut
