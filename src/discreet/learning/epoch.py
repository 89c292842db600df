"""(plan, belief) -> the frozen public epoch, and what its release teaches.

Opening an epoch is a pure function: what looks random in it (the design of the first epoch,
the posterior draws) comes from a generator keyed by public digests, so anyone can check it.
"""

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.agreement.plan import Exploration, Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats
from discreet.errors import InvalidArgument, StudyEnded
from discreet.learning.belief import Belief
from discreet.learning.directions import Prospect, best_directions
from discreet.learning.inference import expected_posterior, read
from discreet.learning.kernel_bank import pool
from discreet.learning.laws import laws_of
from discreet.learning.policy import Policy, packed
from discreet.learning.prefix_belief import PrefixBelief
from discreet.learning.search import Score, maximise, spread
from discreet.learning.window import Block
from discreet.privacy.clipping import Residual
from discreet.privacy.encodings import Encoding, RewardEncoding
from discreet.privacy.looks import in_sight
from discreet.storage import canonical

#: Residuals are clipped at this many predictive standard deviations, and never more narrowly
#: than the smallest width (in half-widths of the reward range).
WIDTH_IN_STDS = 1.0
SMALLEST_WIDTH = 1 / 64
#: Shares of the budget tried for the gram matrix.
SHARES = (0.1, 0.2, 0.3, 0.45, 0.65, 1.0)
#: How many different actions an epoch that fills the domain has at most.
DESIGN = 512


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

    def asked(self, asks: int) -> Floats:
        """The public points of its first asks, where it has a menu."""
        return self.policy.menu[np.arange(asks) % len(self.policy.menu)]


def believed_before(plan: Plan) -> Belief | PrefixBelief:
    """What is believed before any release."""
    return Belief.before(plan) if plan.stream is None else PrefixBelief.before(plan)


def open_epoch(
    plan: Plan, belief: Belief | PrefixBelief, *, number: int, first: int, previous: str
) -> Epoch:
    """The epoch that follows the release `previous`, after `first` asks."""
    length = plan.epoch_length(first)
    if length < 1:
        raise StudyEnded("the horizon is reached: there is no further epoch")
    design = is_design(plan, first)
    policy = _policy(plan, belief, design=design, length=length, key=previous)
    if isinstance(belief, PrefixBelief):
        encoding = belief.encoding
    else:
        encoding = _encoding(plan, belief, first, length, policy.menu)
    return Epoch(
        number=number,
        first=first,
        length=length,
        plan=plan.digest,
        previous=previous,
        encoding=encoding,
        policy=policy,
    )


def is_design(plan: Plan, first: int) -> bool:
    """Whether the epoch after `first` asks fills the domain, whatever is believed."""
    return plan.prior is None and first < plan.design_asks


def learn(
    plan: Plan, belief: Belief | PrefixBelief, epoch: Epoch, release: Release
) -> Belief | PrefixBelief:
    """What is believed after a release of this epoch."""
    if release.epoch != epoch.digest:
        raise InvalidArgument("release", "a release of this epoch")
    if release.asks > epoch.length:
        raise InvalidArgument("release", f"at most {epoch.length} asks", release.asks)
    if release.integers.size != epoch.encoding.size(plan.map):
        raise InvalidArgument("release", f"{epoch.encoding.size(plan.map)} integers")
    if (release.reports is None) == plan.is_local:
        raise InvalidArgument("release", "a number of reports, in the local model and in no other")
    if isinstance(belief, PrefixBelief):
        return belief.after(release)
    rounds = release.asks if release.reports is None else release.reports
    if rounds == 0:
        return belief
    encoding = of_sum(plan, epoch.encoding, rounds)
    blocks: tuple[Block, ...] = ()
    if isinstance(encoding, RewardEncoding):
        looks, each = plan.looks_from(epoch.first), rounds / release.asks
        block = Block.of(epoch.policy.menu, release.asks, looks, each=each)
        blocks = in_sight(block, belief.window.blocks)
    found = read(
        plan.map,
        encoding,
        release.integers,
        asks=rounds,
        points=pool(plan),
        blocks=blocks,
        laws=laws_of(plan, epoch.policy),
    )
    filled = is_design(plan, epoch.first) and (plan.decisions == "box" or plan.mu is not None)
    return belief.after(encoding, found, rounds, filled=filled)


def of_sum(plan: Plan, encoding: Encoding, rounds: int) -> Encoding:
    """The encoding with the noise that a sum of so many rounds has: what a posterior needs.

    Under joint privacy noise is drawn once for a sum, whatever it sums. In the local model each
    report brings its own, and n reports have sqrt(n) times that of one. Nothing else differs.
    """
    if not plan.is_local:
        return encoding
    return replace(encoding, noise=encoding.noise.of_sum(rounds))


def foreseen(plan: Plan, belief: Belief, asks: int) -> float:
    """The share of the variance of f that one release of `asks` spread-out asks would explain.

        1 - E_x Var[f(x) - f | release] / E_x Var[f(x) - f]        x over the public pool

    where f is taken around its mean over the pool: a level is no reason to prefer an action.

    A Gaussian posterior's variance does not depend on what is answered: this takes no data.
    """
    points, posterior = pool(plan), belief.posterior
    menu = points if plan.decisions == "box" else points[:0]
    encoding = _encoding(plan, belief, belief.scales.asked, asks, menu)
    encoding = of_sum(plan, encoding, asks)
    unknown = float(posterior.variance(points).mean())
    line = belief.line(encoding.residual, unknown)
    after = expected_posterior(posterior, encoding, asks, line, points)
    return 1.0 - after.shape_variance(points) / max(posterior.shape_variance(points), 1e-12)


def _encoding(plan: Plan, belief: Belief, first: int, length: int, menu: Floats) -> Encoding:
    """Residuals from the current prediction; noise where it leaves the least expected error."""
    rounds = plan.most_rounds(first, length)
    kind, posterior = plan.encode_with, belief.posterior
    if plan.mu is None:
        nothing = Residual(np.zeros(plan.map.dimension), 1.0)
        return kind.fit(plan.map, nothing, None, 1.0, rounds)
    points = menu if len(menu) else pool(plan)
    unknown = float(posterior.variance(points).mean())
    width = WIDTH_IN_STDS * math.sqrt(unknown + belief.scales.noise)
    width = 1.0 if belief.scales.at_ends else min(1.0, max(SMALLEST_WIDTH, width))
    residual = Residual(posterior.coefficients, width)
    exact_gram = plan.encoding in ("reward", "announced")
    if belief.scales.at_ends and (exact_gram or plan.is_local):
        residual = Residual(np.zeros(plan.map.dimension), 1.0)  # never clipped
    line = belief.line(residual, unknown)
    if plan.encoding == "announced":
        return kind.fit(plan.map, residual, plan.mu, 1.0, rounds)
    if plan.encoding == "reward":
        encoding = RewardEncoding.fit(plan.map, residual, plan.mu, 1.0, rounds)
        block = Block.of(menu, length, plan.looks_from(first))
        window = belief.window.entered(block, belief.scales.noise)
        lines = belief.lines(residual, window.blocks, posterior)
        prospect = Prospect.of(posterior, window, belief.prior, lines, belief.scales.noise)
        noise = of_sum(plan, encoding, length).noise.cross
        return replace(encoding, directions=best_directions(posterior, prospect, noise=noise))
    options = [kind.fit(plan.map, residual, plan.mu, share, rounds) for share in SHARES]
    sums = [of_sum(plan, option, length) for option in options]
    errors = [
        expected_posterior(posterior, each, length, line, pool(plan)).variance(pool(plan)).mean()
        for each in sums
    ]
    return options[int(np.argmin(errors))]


def _policy(
    plan: Plan, belief: Belief | PrefixBelief, *, design: bool, length: int, key: str
) -> Policy:
    """At first an even design, or draws from the prior; then the exploration of the plan."""
    posterior = belief.posterior
    rng = _public_generator(plan.digest, key)
    if design and plan.decisions == "box":
        return _menu_only(plan, spread(plan.domain, min(DESIGN, length), rng))
    exploration = Exploration(0.0, 1.0, DESIGN) if design else belief.exploration
    draws = min(exploration.draws, length)
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
