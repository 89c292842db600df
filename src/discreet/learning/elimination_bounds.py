"""What elimination promises before any data: widths and regret, as functions of plan and T.

For phase k with n_k asks, a design of rank r whose largest lever is q <= (1 + t) r, t the design's
tolerance, and p asked arms (docs/theory.md has the proof):

    W_k = n_k / (n_k - p) (L_k sqrt(rho^2 kappa q / n_k + (s_k q / n_k)^2)
          + e (1 + sqrt(kappa q)) + w_k sqrt(silence kappa q) + rounding)
    L_k = sqrt(2 ln(4 N k (k + 1) / zeta_1))        kappa = sqrt((1 + t) / (1 - t))
    w_k = min(1, W_(k-1) + rho sqrt(2 ln(2 n_k k (k + 1) / zeta_2)))        s_k = 2 w_k / mu

    R_T <= sum over phases of a_k min(spread, 4 W_(k-1)) + T net_error

where a_k is the number of the first T asks that fall into phase k. Numbers are in half-widths of
the reward range.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet import checks
from discreet.agreement.plan import MOST_ASKS, Plan
from discreet.arrays import Floats
from discreet.learning.arms import Arms, arms_of
from discreet.learning.design import TOLERANCE, most_rows
from discreet.learning.singular import thin_svd
from discreet.privacy.clipping import Residual
from discreet.privacy.reward import RewardEncoding

#: The share of the failure that is for rewards beyond where they are clipped.
CLIPPED_SHARE = 0.1
#: No study without a horizon has more phases.
MOST_PHASES = 64
#: How much levers of the asked arms differ: sqrt((1 + t) / (1 - t)).
KAPPA = math.sqrt((1.0 + TOLERANCE) / (1.0 - TOLERANCE))


def log_factor(failure: float, phase: int, arms: int) -> float:
    """L_k: at every arm, and for every difference to the best, in all phases at once.

    Each of `arms` estimates and of as many differences has two tails; 1 / (k (k + 1)) sums to 1.

    >>> round(log_factor(0.05, 1, 2500), 3)
    5.1
    """
    own = (1.0 - CLIPPED_SHARE) * failure / (phase * (phase + 1))
    return math.sqrt(2.0 * math.log(4.0 * arms / own))


@dataclass(frozen=True)
class Outlook:
    """What a phase's width is predicted from.

    `clip` is where its residuals are clipped, `noise` the noise on its sums, and `cut` bounds the
    length of what fixed point takes from them.
    """

    asks: int
    log: float
    clip: float
    noise: float
    cut: float


def outlook(plan: Plan, phase: int, asked: int, asks: int, reach: float, active: int) -> Outlook:
    """Of a phase after `asked` asks, on whose arms the prediction is off by at most `reach`."""
    arms, m = arms_of(plan), plan.map.dimension
    own = CLIPPED_SHARE * arms.failure / (phase * (phase + 1))
    clip = min(1.0, reach + arms.noise * math.sqrt(2.0 * math.log(2.0 * asks / own)))
    rounds = plan.most_rounds(asked, asks)
    encoding = RewardEncoding.fit(plan.map, Residual(np.zeros(m), clip), plan.mu, 1.0, rounds)
    return Outlook(
        asks=asks,
        log=log_factor(arms.failure, phase, active),
        clip=clip,
        noise=plan.noise_of_sum(encoding, asks).noise.cross,
        cut=math.ldexp(2 * asks, -encoding.bits) * math.sqrt(m),
    )


def predicted_width(arms: Arms, expected: Outlook, *, rank: int, tail: float) -> float:
    """W of a design of this rank, as if it could be asked in fractions.

    `tail` is how much of the longest phi lies outside of the directions.
    """
    n, q = expected.asks, (1.0 + TOLERANCE) * rank
    misfit = arms.misfit + arms.norm * tail
    return (
        expected.log * math.sqrt(arms.noise**2 * KAPPA * q / n + (expected.noise * q / n) ** 2)
        + misfit * (1.0 + math.sqrt(KAPPA * q))
        + expected.clip * math.sqrt(arms.silence * KAPPA * q)
        + expected.cut * q / n
    )


@lru_cache(maxsize=8)
def leading(plan: Plan) -> tuple[Floats, Floats]:
    """The directions in which the arms' features are longest, and what is left beyond each.

    Beyond the first r directions lies at most `tails[r - 1]` of the length of any arm's features.
    """
    phi = arms_of(plan).phi
    vectors = thin_svd(phi)[2]
    return vectors, tails(phi, vectors)


def tails(phi: Floats, vectors: Floats) -> Floats:
    """How much of the longest row lies outside of the first 1, 2, ... orthonormal vectors.

    >>> tails(np.array([[0.6, 0.8]]), np.eye(2)).round(6).tolist()
    [0.8, 0.0]
    """
    seen = np.cumsum(np.square(phi @ vectors.T), axis=1)
    left = np.square(phi).sum(axis=1)[:, None] - seen
    return np.sqrt(np.maximum(left, 0.0)).max(axis=0)


@dataclass(frozen=True)
class Foreseen:
    """A phase before any data: its first ask, its asks, where it clips, its noise, and W."""

    first: int
    asks: int
    rank: int
    clip: float
    noise: float
    width: float


@lru_cache(maxsize=32)
def foreseen(plan: Plan) -> tuple[Foreseen, ...]:
    """The phases of a plan; without a horizon, many of them."""
    arms, (_, beyond) = arms_of(plan), leading(plan)
    reach, asked, found = arms.level, 0, list[Foreseen]()
    while len(found) < MOST_PHASES and asked < MOST_ASKS:
        if (asks := plan.epoch_length(asked)) < 1:
            break
        expected = outlook(plan, len(found) + 1, asked, asks, reach, len(arms.points))
        ideal = [
            predicted_width(arms, expected, rank=r, tail=float(tail))
            for r, tail in enumerate(beyond, start=1)
        ]
        rank = int(np.argmin(ideal)) + 1
        spare = asks - most_rows(rank)
        width = ideal[rank - 1] * asks / spare if spare > 0 else math.inf
        found.append(Foreseen(asked, asks, rank, expected.clip, expected.noise, width))
        asked, reach = asked + asks, min(reach, width)
    return tuple(found)


def regret_bound(plan: Plan, rounds: int) -> float:
    """R_T of the first `rounds` asks is at most this, in units of rewards, with 1 - failure.

    >>> from discreet import Box, Elimination, JointDP, SquaredExponential
    >>> plan = Plan(
    ...     domain=Box({"dose": (0, 10)}),
    ...     kernel=SquaredExponential(0.5),
    ...     privacy=JointDP(8.0, 1e-6),
    ...     confidence="theory",
    ...     norm=1.0,
    ...     noise_std=0.1,
    ...     elimination=Elimination(misfit=0.0, net=20),
    ... )
    >>> bounds = [regret_bound(plan, 10**k) / 10**k for k in (2, 4, 6)]
    >>> [round(bound, 3) for bound in bounds]
    [1.002, 0.188, 0.021]
    """
    arms, left = arms_of(plan), checks.count("rounds", rounds)
    total, price = 0.0, arms.spread
    for phase in foreseen(plan):
        total += min(left, phase.asks) * price
        left = max(left - phase.asks, 0)
        price = min(price, 4.0 * phase.width)
    total += left * price + rounds * arms.net_error
    return min(total, rounds * (arms.spread + arms.net_error)) * plan.half_width


def closed_bound(
    rounds: int,
    *,
    first: int,
    spread: float,
    noise: float,
    private: float,
    lever: float,
    log: float,
    lost: float = 0.0,
) -> float:
    """(closed) of docs/theory.md: what the sum over doubling phases is at most, for T >= n_1.

        D n_1 + (1 / (1 - eta)) ((8 + 4 sqrt(2)) rho L sqrt(kappa q T)
        + 8 s q L min(log2(2 T / n_1), 3.21 + log2+(n_x / n_1)))        n_x = s^2 q / (rho^2 kappa)

    for phases of n_1, n_1, 2 n_1, 4 n_1, ... asks and numbers that bound those of every phase:
    `lever` q, `log` L, `private` s = 2 R / mu; `lost` is eta, p / n_1. Before n_1 it is D T.
    Misfit, silence, fixed point and the net come on top.

    >>> usual = {"first": 1000, "spread": 2.0, "noise": 0.1, "lever": 10.0, "log": 5.0}
    >>> [round(closed_bound(10**6, private=private, **usual)) for private in (0.0, 2.0)]
    [23810, 27955]
    """
    t, n, q = checks.count("rounds", rounds), checks.count("first", first), lever
    if t <= n:
        return spread * t
    rewards = (8.0 + 4.0 * math.sqrt(2.0)) * noise * log * math.sqrt(KAPPA * q * t)
    phases = math.log2(2.0 * t / n)
    if noise > 0.0:
        short = private**2 * q / (noise**2 * KAPPA) / n  # n_x / n_1
        phases = min(phases, 3.21 + math.log2(max(short, 1.0)))
    return spread * n + (rewards + 8.0 * private * q * log * phases) / (1.0 - lost)
