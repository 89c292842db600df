"""Where people go: the law of who comes, and the public policy, as a crowd of made-up people.

A crowd stands for the rounds of an epoch. Each made-up person brings what the law says and gets
the action that the policy gives to such a person, so that means over the crowd are what sums over
the real people are expected to be, divided by how many they are. No real person is in it.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from discreet.agreement.plan import Plan
from discreet.arrays import Floats, frozen
from discreet.learning.law import Law
from discreet.learning.policy import OPTIONS, Policy, best_of
from discreet.privacy.looks import ONE_LOOK, Looks


@dataclass(frozen=True, eq=False)
class Crowd:
    """Made-up people: where they go, the features there, what they bring, and under which law."""

    points: Floats
    phi: Floats
    psi: Floats
    tilt: Floats
    chances: Floats

    @lru_cache(maxsize=8)  # noqa: B019 - asked for again by every number of directions
    def weights(self, law: Law) -> Floats:
        """How much each person counts under the law as it is now."""
        weights = self.chances * law.reweighed(self.psi, self.tilt)
        return frozen(weights / weights.sum())

    @lru_cache(maxsize=8)  # noqa: B019 - likewise
    def moments(self, law: Law) -> Floats:
        """E[phi phi^T]."""
        return frozen((self.phi * self.weights(law)[:, None]).T @ self.phi)


@lru_cache(maxsize=4)
def crowd_of(plan: Plan, law: Law, policy: Policy) -> Crowd:
    """The crowd of an epoch with this policy."""
    brought = law.people
    psi, numbers = law.kind.psi(brought), np.arange(len(brought))
    if plan.decisions == "candidates":
        return Crowd(brought, plan.map(brought), psi, law.tilt, _chances(plan, policy, brought))
    points, admitted = policy.search(plan.map, numbers, plan.domain, brought)
    if not admitted.any():  # the predicate leaves nothing to anyone here: any action stands for it
        admitted = ~admitted
    points, psi = points[admitted], psi[admitted]
    return Crowd(points, plan.map(points), psi, law.tilt, np.ones(len(points)))


def _chances(plan: Plan, policy: Policy, options: Floats) -> Floats:
    """How likely each option is the best of those that a person brings."""
    if not len(policy.tilts):
        return np.ones(len(options))
    ranks = policy.scores(plan.map, options).argsort(axis=1).argsort(axis=1)
    return best_of(OPTIONS[3], len(options))[ranks].mean(axis=0)


@dataclass(frozen=True, eq=False)
class CrowdBlock:
    """The rounds of an epoch: how many, whom they are made up of, and how much they count.

    What these rounds' reward noise adds up to along the features is the same in every look. It is
    rho sqrt(n) R e with R R^T = E[phi phi^T] and e standard normal: `root` is R, of full column
    rank.
    """

    crowd: Crowd
    asks: float
    looks: Looks
    root: Floats

    @classmethod
    def of(cls, crowd: Crowd, law: Law, asks: float, looks: Looks = ONE_LOOK) -> "CrowdBlock":
        """So many asks of a crowd under a law."""
        values, vectors = np.linalg.eigh(crowd.moments(law))
        kept = values > 1e-9 * values[-1]
        return cls(crowd, asks, looks, vectors[:, kept] * np.sqrt(values[kept]))

    @property
    def size(self) -> int:
        """How many numbers its shared noise has; none if it is never looked at again."""
        return self.root.shape[1] if len(self.looks) > 1 else 0

    def noise_precision(self, noise: float) -> Floats:
        """Of e, in units of the deviation of rewards."""
        return np.eye(self.size) / noise

    @cached_property
    def _inverse(self) -> Floats:
        """R^+T: from E[g phi^T] to how g carries the shared noise."""
        return self.root / np.square(self.root).sum(axis=0)  # its columns are orthogonal

    def carried(self, design: Floats) -> Floats:
        """E[g phi^T] R^-T: what of the shared noise, along e, the directions g see."""
        return design @ self._inverse
