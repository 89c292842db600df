"""Phased elimination: (plan, releases) -> the arms that may still be best, with a certificate.

An epoch is a phase. Its asks follow a G-optimal design over the active arms (`design`), and a
round is encoded along directions whitened by it, g = B phi / ||B phi||: noise is spent evenly on
what the phase estimates. What is encoded is the reward less what the last phase predicts, clipped
where no reward falls, so that noise shrinks with what is unknown. `phase` says what a release
estimates, and how far off it may be. An arm is dropped if another is better by more than that.

docs/theory.md has the theorem and its proof. Everything here is post-processing of releases.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.agreement.schedule import Exploration
from discreet.arrays import Floats, Mask
from discreet.errors import InvalidArgument
from discreet.learning.arms import Arms, arms_of
from discreet.learning.design import Design, g_optimal, rounded
from discreet.learning.elimination_bounds import (
    Outlook,
    foreseen,
    leading,
    log_factor,
    outlook,
    predicted_width,
    tails,
)
from discreet.learning.epoch import Epoch
from discreet.learning.phase import Phase
from discreet.learning.policy import Policy
from discreet.learning.posterior import Posterior
from discreet.learning.singular import thin_svd
from discreet.privacy.clipping import Residual
from discreet.privacy.encodings import Encoding
from discreet.privacy.reward import RewardEncoding

#: Directions in which all arms' features are shorter than this, of the longest, are one's rounding.
INDEPENDENT = 1e-7


@dataclass(frozen=True)
class Certificate:
    """What is proven with probability 1 - failure, whatever f is within the premises.

    `active` of `arms` may still be best; the recommended action is within `gap` of the best of the
    domain, and all `asks` so far together cost at most `regret`, in units of rewards.
    """

    asks: int
    arms: int
    active: int
    gap: float
    regret: float
    failure: float


@dataclass(frozen=True, eq=False)
class Opened:
    """How a phase begins: a basis of what it estimates, and a design over its arms."""

    basis: Floats
    design: Design

    @property
    def directions(self) -> Floats:
        """B = S^-1/2 basis / sqrt(q), so that ||B phi|| <= 1 on the active arms."""
        values, vectors = np.linalg.eigh(self.design.inverse)
        root = (vectors * np.sqrt(values)) @ vectors.T
        return root @ self.basis / math.sqrt(self.design.lever)


@dataclass(frozen=True, eq=False)
class Remaining:
    """What the releases so far leave: active arms, how far estimates may be off, and the gaps.

    `theta` predicts rewards within `reach` on the active arms; `gaps` bound max f - f, by arm;
    `estimates` and `margins` are of the arms as the last phase that had them saw them.
    """

    plan: Plan
    phases: int
    asked: int
    active: Mask
    theta: Floats
    reach: float
    gaps: Floats
    estimates: Floats
    margins: Floats
    regret: float
    posterior: Posterior

    @classmethod
    def before(cls, plan: Plan) -> "Remaining":
        """Nothing released: every arm may be best."""
        arms = arms_of(plan)
        n = len(arms.points)
        return cls(
            plan=plan,
            phases=0,
            asked=0,
            active=np.ones(n, dtype=np.bool_),
            theta=np.zeros(plan.map.dimension),
            reach=arms.level,
            gaps=np.full(n, arms.spread),
            estimates=np.zeros(n),
            margins=np.full(n, arms.level),
            regret=0.0,
            posterior=Posterior.prior(plan.map, plan.signal_variance),
        )

    @property
    def arms(self) -> Arms:
        """All arms, and the premises."""
        return arms_of(self.plan)

    @property
    def exploration(self) -> Exploration:
        """None: a design explores."""
        return self.plan.exploring

    def margin(self, std: float) -> float:
        """Half of a 95% credible interval, for actions that are no arms."""
        return 1.96 * std

    # -- the next phase

    @cached_property
    def _opened(self) -> dict[int, Opened]:
        return {}

    def opened(self, length: int) -> Opened:
        """The basis and the design of the next phase, if it has so many asks."""
        if length not in self._opened:
            phi = self.arms.phi[self.active]
            basis = self._basis(phi, length)
            # Of one length: a design is the same in any coordinates, and rounding is not.
            basis = basis / np.sqrt(np.square(phi @ basis.T).mean(axis=0))[:, None]
            self._opened[length] = Opened(basis, g_optimal(phi @ basis.T))
        return self._opened[length]

    def _basis(self, phi: Floats, length: int) -> Floats:
        """The leading directions of the active arms, as many as predict the least width.

        No more than were foreseen before any data, and never worse than those foreseen.
        """
        expected, ahead = self._outlook(length), foreseen(self.plan)
        most = ahead[min(self.phases, len(ahead) - 1)].rank
        common = leading(self.plan)[0][:most]
        options = [_spanning(phi @ common.T) @ common, thin_svd(phi)[2]]
        best, width = options[0], math.inf
        for vectors, least in zip(options, (len(options[0]), 1), strict=True):
            left = tails(phi, vectors)
            lengths = np.linalg.norm(phi @ vectors.T, axis=0)
            usable = int(np.sum(lengths > INDEPENDENT * lengths.max()))
            for rank in range(least, min(most, usable) + 1):
                ideal = predicted_width(self.arms, expected, rank=rank, tail=float(left[rank - 1]))
                if ideal < width:
                    best, width = vectors[:rank], ideal
        return best

    def _outlook(self, length: int) -> Outlook:
        number, active = self.phases + 1, int(self.active.sum())
        return outlook(self.plan, number, self.asked, length, self.reach, active)

    def policy_for(self, length: int) -> Policy:
        """The design, rounded to exactly so many asks."""
        design = self.opened(length).design
        counts = rounded(design.weights, length)
        given = counts > 0
        menu = self.arms.points[np.flatnonzero(self.active)[design.rows[given]]]
        nothing = np.zeros((0, self.plan.map.dimension))
        return Policy(nothing, np.zeros(0), 0.0, menu, counts[given])

    def encoding_for(self, first: int, length: int, policy: Policy) -> Encoding:
        """Residuals from the last estimate, clipped where none falls, along the whitened design."""
        plan, width = self.plan, self._outlook(length).clip
        rounds = plan.most_rounds(first, length)
        # At the full width only rewards themselves are never clipped, by the range of the plan.
        prediction = self.theta if width < 1.0 else np.zeros_like(self.theta)
        fitted = RewardEncoding.fit(plan.map, Residual(prediction, width), plan.mu, 1.0, rounds)
        if plan.mu is None:
            return fitted
        return replace(fitted, directions=self.opened(length).directions)

    # -- what a release teaches

    def after(self, epoch: Epoch, release: Release) -> "Remaining":
        """Estimate, drop what is proven worse, and tighten the certificate."""
        counts = epoch.policy.asked(release.asks).astype(np.float64)
        later = replace(
            self,
            phases=self.phases + 1,
            asked=self.asked + release.asks,
            regret=self.regret + float(counts @ self._gaps_at(epoch.policy.menu)),
        )
        if release.asks == 0 or release.reports == 0:
            return later
        rows = _directions(epoch) if self.plan.mu else self.opened(epoch.length).directions
        phase = Phase.of(self.plan, epoch, release, rows, self.arms.silence)
        return later._without_worse(phase) if phase.spans else later

    def _gaps_at(self, menu: Floats) -> Floats:
        """What an ask of each action of a menu costs at most."""
        places = {point.tobytes(): i for i, point in enumerate(self.arms.points)}
        known = [places.get(point.tobytes()) for point in menu]
        return np.array([self.arms.spread if i is None else self.gaps[i] for i in known])

    def _without_worse(self, phase: Phase) -> "Remaining":
        """Without the arms that the phase just counted proves worse than another."""
        arms, places = self.arms, np.flatnonzero(self.active)
        log, every = log_factor(arms.failure, self.phases, len(places)), np.arange(len(places))
        found = phase.at(arms.phi[places], arms, log)
        left = every[found.lead(every, every, -1.0) <= 0.0]
        gaps, estimates, margins = self.gaps.copy(), self.estimates.copy(), self.margins.copy()
        gap = np.maximum(found.lead(left, left, 1.0), 0.0)
        gaps[places[left]] = np.minimum(gaps[places[left]], gap)
        estimates[places], margins[places] = found.values, found.widths
        active = np.zeros_like(self.active)
        active[places[left]] = True
        reach = float(margins[active].max())
        return replace(
            self,
            active=active,
            theta=phase.theta if reach < self.reach else self.theta,
            reach=min(reach, self.reach),
            gaps=gaps,
            estimates=estimates,
            margins=margins,
            posterior=phase.observed(self.posterior, arms.noise),
        )

    # -- what is certain

    @property
    def best(self) -> int:
        """The active arm with the highest estimate."""
        return int(np.argmax(np.where(self.active, self.estimates, -np.inf)))

    @property
    def certificate(self) -> Certificate:
        """What is proven now."""
        arms, unit = self.arms, self.plan.half_width
        return Certificate(
            asks=self.asked,
            arms=len(arms.points),
            active=int(self.active.sum()),
            gap=min(float(self.gaps[self.best]) + arms.net_error, arms.spread) * unit,
            regret=(self.regret + self.asked * arms.net_error) * unit,
            failure=arms.failure,
        )


def _directions(epoch: Epoch) -> Floats:
    if not isinstance(epoch.additive, RewardEncoding):
        raise InvalidArgument("epoch", "one whose rewards are encoded along directions")
    return epoch.additive.directions


def _spanning(psi: Floats) -> Floats:
    """An orthonormal basis of what the rows span."""
    _, lengths, vectors = thin_svd(psi)
    return vectors[lengths > INDEPENDENT * lengths[0]]
