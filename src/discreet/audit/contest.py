"""The distinguishing game: try to tell two neighbouring studies apart, and fail as promised.

Two worlds differ in one round, at the worst pair of rounds for the encoding. The real code
encodes, sums and adds noise in both, many times over (in the local model to a single round: each
report is a trial); a likelihood-ratio test with a threshold
fixed beforehand guesses the world. Its error rates, by Clopper-Pearson, give a lower bound on mu:

    mu >= Phi^-1(true positive rate) - Phi^-1(false positive rate).

A mechanism fails when the bound exceeds its claim, and also when it stays below 0.85 of it (0.7
where each draw is a whole study, `roles`): an audit that sees nothing proves nothing. Each control
breaks the mechanism on purpose and must be caught. All bounds hold together with probability
1 - 1e-6. Streams of correlated noise (`streams`) and rounds that are looked at again (`looks`) have
games of their own, with all releases of a study for one observation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from discreet.agreement.plan import Plan
from discreet.arrays import Floats
from discreet.domain.box import Box
from discreet.features.kernels import SquaredExponential
from discreet.privacy.budget import JointDP
from discreet.privacy.cost import GaussianPrivacy

FALSE_ALARM = 1e-6
#: The delta of the plans that are audited.
DELTA = 0.01
SHARPNESS = 0.85


@dataclass(frozen=True)
class Finding:
    """What one game showed: a mechanism that must pass, or a control that must be caught."""

    name: str
    control: bool
    claim: float
    lower_bound: float
    sharpness: float = SHARPNESS

    @classmethod
    def of(
        cls, game: str, control: str | None, claim: float, bound: float, sharp: float = SHARPNESS
    ) -> Self:
        """Of a game as it is, or of this control."""
        name = game if control is None else f"{game}: {control}"
        return cls(name, control is not None, claim, bound, sharp)

    @property
    def passed(self) -> bool:
        """A mechanism within its claim and not seen blindly; a control beyond its claim."""
        if self.control:
            return self.lower_bound > self.claim
        return self.sharpness * self.claim <= self.lower_bound <= self.claim


def audited_plan(mu: float, **parts: Any) -> Plan:
    """A small plan of which one round costs about mu, joint unless `privacy` says otherwise."""
    usual: dict[str, Any] = {
        "domain": Box({"dose": (0, 10)}),
        "privacy": JointDP(GaussianPrivacy(mu).epsilon(DELTA), DELTA),
        "kernel": SquaredExponential(0.2),
        "kernel_error": 1e-2,
        "name": "audit",
    }
    return Plan(**(usual | parts))


class Normals(Protocol):
    """Where standard normals come from."""

    def normals(self, count: int) -> Floats:
        """So many, independent."""
        ...


class Contest(Protocol):
    """What a test needs to know: two worlds, a claim, and the weights of its statistic."""

    @property
    def name(self) -> str:
        """What is audited."""
        ...

    @property
    def claim(self) -> float:
        """The mu that is promised."""
        ...

    @property
    def worlds(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """What is released without noise, in either world."""
        ...

    @property
    def weights(self) -> Floats:
        """The likelihood ratio is a sum of releases with these weights."""
        ...


#: (contest, world, draws, bits) -> releases, one a row.
Play = Callable[[Any, Any, int, Any], NDArray[Any]]


def lower_bound(
    contest: Contest, play: Play, draws: int, confidence: float, bits: Normals
) -> float:
    """mu is at least this, with the given confidence."""
    first, second = contest.worlds
    weights = contest.weights
    threshold = float((second - first).astype(np.float64) @ weights) / 2
    rates: list[int] = []
    for world in (first, second):
        scores = (play(contest, world, draws, bits) - first).astype(np.float64) @ weights
        rates.append(int(np.count_nonzero(scores > threshold)))
    return mu_from_counts(rates[1], rates[0], draws, confidence)


def mu_from_counts(hits: int, alarms: int, draws: int, confidence: float) -> float:
    """A lower bound on mu from `hits` and false `alarms` in as many draws each.

    >>> 0.9 < mu_from_counts(69_146, 30_854, 100_000, 1 - 1e-7) < 1.0
    True
    """
    tail = (1.0 - confidence) / 2
    hit_rate = betaincinv(hits, draws - hits + 1, tail) if hits else 0.0
    alarm_rate = betaincinv(alarms + 1, draws - alarms, 1.0 - tail) if alarms < draws else 1.0
    return max(0.0, float(ndtri(hit_rate) - ndtri(alarm_rate)))


def verdict(findings: list[Finding]) -> bool:
    """Whether every mechanism passed and every control was caught."""
    return all(finding.passed for finding in findings)
