"""(plan, posterior) -> the frozen public epoch, and what its release teaches.

Opening an epoch is a pure function: what looks random in it (the design of the first epoch,
the posterior draws) comes from a generator keyed by public digests, so anyone can check it.
"""

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet import canonical
from discreet.encodings import Encoding, RewardEncoding
from discreet.errors import InvalidArgument, StudyEnded
from discreet.inference import Clipped, expected_error, observe, read
from discreet.plan import Exploration, Plan
from discreet.policy import Policy, packed
from discreet.posterior import Posterior
from discreet.release import Release
from discreet.residuals import Residual
from discreet.search import Score, maximise, spread

Floats = NDArray[np.float64]

#: Residuals are clipped at this many predictive standard deviations, and never more narrowly
#: than the smallest width (in half-widths of the reward range).
WIDTH_IN_STDS = 2.0
SMALLEST_WIDTH = 1 / 64
#: Shares of the budget tried for the gram matrix.
SHARES = (0.1, 0.2, 0.3, 0.45, 0.65, 1.0)
#: How many public points stand for where people will be.
POOL = 256


@dataclass(frozen=True, eq=False)
class Epoch:
    """A block of consecutive asks under one policy and one encoding.

    `first` is the index of its first ask; its asks are first .. first + length - 1. `plan` and
    `previous` are the digests of the plan and of the release before it.
    """

    number: int
    first: int
    length: int
    plan: str
    previous: str
    encoding: Encoding
    policy: Policy

    @property
    def end(self) -> int:
        """The index of the first ask after this epoch."""
        return self.first + self.length

    @cached_property
    def digest(self) -> str:
        """The digest that this epoch's release carries."""
        return canonical.digest(self)

    def public_gram(self, plan: Plan, asks: int) -> Floats:
        """The sum of phi phi^T over its first asks, known from the menu beforehand."""
        turns = np.arange(asks) % len(self.policy.menu)
        counts = np.bincount(turns, minlength=len(self.policy.menu))
        phi = plan.map(self.policy.menu)
        return (phi * counts[:, None]).T @ phi


def open_epoch(
    plan: Plan, posterior: Posterior, *, number: int, first: int, previous: str
) -> Epoch:
    """The epoch that follows the release `previous`, after `first` asks."""
    length = plan.epoch_length(first)
    if length < 1:
        raise StudyEnded("the horizon is reached: there is no further epoch")
    blank = number == 0 and plan.prior is None
    return Epoch(
        number=number,
        first=first,
        length=length,
        plan=plan.digest,
        previous=previous,
        encoding=_encoding(plan, posterior, length),
        policy=_policy(plan, posterior, blank=blank, length=length, key=previous),
    )


def learn(plan: Plan, posterior: Posterior, epoch: Epoch, release: Release) -> Posterior:
    """The posterior after a release of this epoch."""
    if release.epoch != epoch.digest:
        raise InvalidArgument("release", "a release of this epoch")
    if release.asks > epoch.length:
        raise InvalidArgument("release", f"at most {epoch.length} asks", release.asks)
    if release.integers.size != epoch.encoding.size(plan.map):
        raise InvalidArgument("release", f"{epoch.encoding.size(plan.map)} integers")
    encoding, points = epoch.encoding, _pool(plan)
    found = read(plan.map, encoding, release.integers, asks=release.asks, points=points)
    if isinstance(encoding, RewardEncoding):
        found = replace(found, gram=epoch.public_gram(plan, release.asks))
    return observe(posterior, encoding, found, _line(plan, posterior, encoding))


def _encoding(plan: Plan, posterior: Posterior, length: int) -> Encoding:
    """Residuals from the current prediction; the budget split for the least expected error."""
    m, rounds = plan.map.dimension, length + plan.expire_after
    kind = plan.encode_with
    if plan.mu is None:
        return kind.fit(plan.map, Residual(np.zeros(m), 1.0), None, 1.0, rounds)
    spread_std = math.sqrt(_unknown_variance(plan, posterior) + plan.noise_variance)
    width = min(1.0, max(SMALLEST_WIDTH, WIDTH_IN_STDS * spread_std))
    residual = Residual(posterior.coefficients, width)
    if plan.encoding in ("reward", "announced"):
        return kind.fit(plan.map, residual, plan.mu, 1.0, rounds)
    points = _pool(plan)
    options = [kind.fit(plan.map, residual, plan.mu, share, rounds) for share in SHARES]
    errors = [
        expected_error(posterior, option, length, _line(plan, posterior, option), points)
        for option in options
    ]
    return options[int(np.argmin(errors))]


def _line(plan: Plan, posterior: Posterior, encoding: Encoding) -> Clipped:
    """How an encoded residual depends on f: rewards within the range are not clipped at all."""
    if encoding.residual.width >= 1.0:
        return Clipped(1.0, plan.noise_variance)
    unknown = _unknown_variance(plan, posterior)
    return Clipped.at(encoding.residual.width, unknown, plan.noise_variance)


def _unknown_variance(plan: Plan, posterior: Posterior) -> float:
    return float(posterior.variance(_pool(plan)).mean())


def _pool(plan: Plan) -> Floats:
    return spread(plan.domain, POOL, np.random.Generator(np.random.Philox(POOL)))


def _policy(plan: Plan, posterior: Posterior, *, blank: bool, length: int, key: str) -> Policy:
    """Before anything is known an even design, or draws from the prior; then the exploration."""
    rng = _public_generator(plan.digest, key)
    exploration = Exploration(0.0, 1.0, length) if blank else plan.exploration
    draws = min(exploration.draws, length)
    if blank and plan.decisions == "box":
        return _menu_only(plan, spread(plan.domain, draws, rng))
    normals = rng.standard_normal((draws, plan.map.dimension))
    mean = posterior.coefficients
    tilts = mean + exploration.sampling * (posterior.draws(normals) - mean)
    if plan.decisions == "box":
        score = Score(plan.map, posterior.whitening, exploration.optimism)
        return _menu_only(plan, maximise(score, plan.domain, tilts))
    no_menu = np.zeros((0, plan.domain.dimension))
    return Policy(tilts, packed(posterior.whitening), exploration.optimism, no_menu)


def _menu_only(plan: Plan, menu: Floats) -> Policy:
    return Policy(np.zeros((0, plan.map.dimension)), np.zeros(0), 0.0, menu)


def _public_generator(*digests: str) -> np.random.Generator:
    key = hashlib.sha256("".join(digests).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key[:16], "big")))
