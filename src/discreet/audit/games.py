"""The games: every encoding in both models, as it is and broken on purpose."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq

from discreet.agreement.plan import Plan, Schedule
from discreet.agreement.release import Release
from discreet.arrays import Floats, Integers
from discreet.audit import indices, roles, shuffled
from discreet.audit.contest import (
    DELTA,
    FALSE_ALARM,
    Contest,
    Finding,
    Play,
    audited_plan,
    lower_bound,
)
from discreet.audit.looks import looks_trials
from discreet.audit.streams import node_trials, stream_trials
from discreet.bandit import Bandit
from discreet.learning.epoch import Epoch
from discreet.learning.study import Study
from discreet.privacy.announced import AnnouncedEncoding
from discreet.privacy.budget import JointDP, LocalDP, Simulation
from discreet.privacy.clipping import Residual
from discreet.privacy.cost import GaussianPrivacy
from discreet.privacy.encodings import EncodingName
from discreet.trials import Trial
from discreet.trusted import mechanism
from discreet.trusted.randomness import Source, source
from discreet.trusted.sums import Sums

DRAWS = 100_000
CLAIMS = (1.0, 3.0)


@dataclass(frozen=True, eq=False)
class Round:
    """One user's round: a scaled action and a centred reward."""

    point: Floats
    reward: float


@dataclass(frozen=True, eq=False)
class Game:
    """Two totals of the same epoch that differ in one round."""

    name: str
    plan: Plan
    epoch: Epoch
    worlds: tuple[Integers, Integers]

    @property
    def stds(self) -> Floats:
        """The noise the real mechanism adds."""
        return self.epoch.additive.stds(self.plan.map)

    @property
    def weights(self) -> Floats:
        """The likelihood ratio's, for independent noise.

        Integers that get no noise betray any difference: weighed as if noise were tiny.
        """
        difference = (self.worlds[1] - self.worlds[0]).astype(np.float64)
        return difference / np.where(self.stds > 0, self.stds, 1.0) ** 2

    @property
    def claim(self) -> float:
        """The mu that the plan promises."""
        return self.plan.mu or 0.0


def audit(draws: int = DRAWS, advance: Callable[[str], None] = lambda name: None) -> list[Finding]:
    """Play every game with the operating system's bits; `advance` hears of each finding."""
    trials, through_roles = list(_trials()), list(roles.role_trials())
    exact, mixing = list(indices.index_trials()), list(shuffled.mixing_trials())
    confidence = 1.0 - FALSE_ALARM / (len(trials) + len(through_roles) + len(exact) + len(mixing))
    findings: list[Finding] = []

    def found(finding: Finding) -> None:
        findings.append(finding)
        advance(finding.name)

    for number, (game, control, play) in enumerate(trials):
        bound = lower_bound(game, play, draws, confidence, source(None, number))
        found(Finding.of(game.name, control, game.claim, bound))
    for game, control in through_roles:
        bound = game.lower_bound(roles.DRAWS, confidence)
        found(Finding.of(game.name, control, game.claim, bound, roles.SHARPNESS))
    for game, control in exact:
        shown = game.shown()
        found(Finding.of(f"{game.name}, exactly", control, game.claim, shown, indices.SHARPNESS))
        if control is None:
            bound = game.lower_bound(indices.DRAWS, confidence)
            name = f"{game.name}, by draws"
            found(Finding.of(name, None, game.claim, bound, indices.DRAWN_SHARPNESS))
    for game, control in mixing:
        count = shuffled.DRAWS if control is None else shuffled.CONTROL_DRAWS
        bound = game.lower_bound(count, confidence)
        found(Finding.of(game.name, control, game.claim, bound, shuffled.SHARPNESS))
    return findings


# -- how a game is played: as it is, and broken on purpose


def honestly(game: Game, world: Integers, draws: int, bits: Source) -> Integers:
    """The real mechanism, once for each draw."""
    return mechanism.noisy(np.tile(world, (draws, 1)), game.stds, bits=bits)


def with_less_noise(factor: float) -> Play:
    """The real mechanism with its noise scaled down."""

    def play(game: Game, world: Integers, draws: int, bits: Source) -> Integers:
        return mechanism.noisy(np.tile(world, (draws, 1)), factor * game.stds, bits=bits)

    return play


def drawn_twice(game: Game, world: Integers, draws: int, bits: Source) -> Integers:
    """Two releases of one epoch, averaged: what redrawing noise gives away."""
    first, second = (honestly(game, world, draws, bits) for _ in range(2))
    return (first + second) // 2


# -- the games


def _trials() -> Iterator[tuple[Contest, str | None, Play]]:
    kinds: tuple[EncodingName, ...] = ("gram", "fourier", "reward", "announced")
    for kind in kinds:
        for claim in CLAIMS:
            plan = _plan(kind, claim)
            for epoch, label in zip(_epochs(plan), ("fixed", "residual"), strict=True):
                game = _game(f"{kind}, {label}, mu {claim:g}", plan, epoch)
                yield game, None, honestly
                if claim == CLAIMS[0]:
                    yield game, "noise x 0.5", with_less_noise(0.5)
                    yield game, "noise x 0.8", with_less_noise(0.8)
                    yield game, "drawn twice", drawn_twice
                    yield _unclipped(game), "unclipped reward", honestly
                if claim == CLAIMS[0] and kind in ("fourier", "reward"):
                    yield _exact_spread(game), "spread released exactly", honestly
    yield from _local_trials()
    plan = _plan("reward", CLAIMS[0])
    yield _exact_actions(plan, _epochs(plan)[0]), "actions published beside it", honestly
    plan = _plan("gram", CLAIMS[0])
    game = _actions_game(plan, PeekingBandit, "another user's action")
    yield game, "an ask that looks at open trials", honestly
    yield from stream_trials(CLAIMS)
    yield from node_trials(CLAIMS)
    yield from looks_trials(CLAIMS)


def _local_trials() -> Iterator[tuple[Game, str | None, Play]]:
    kinds: tuple[EncodingName, ...] = ("gram", "fourier", "reward")
    for kind, claim in itertools.product(kinds, CLAIMS):
        plan = _plan(kind, claim, local=True)
        for epoch, label in zip(_epochs(plan), ("fixed", "residual"), strict=True):
            game = _game(f"local {kind}, {label}, mu {claim:g}", plan, epoch)
            yield game, None, honestly
            if label == "fixed":
                yield game, "noise x 0.5", with_less_noise(0.5)
                yield game, "noise x 0.8", with_less_noise(0.8)
            if label == "fixed" and claim == CLAIMS[0]:
                yield game, "randomised anew when sent again", drawn_twice


def _plan(kind: EncodingName, mu: float, *, local: bool = False) -> Plan:
    rewards_only = kind == "announced"
    epsilon = GaussianPrivacy(mu).epsilon(DELTA)
    joint = JointDP(epsilon, DELTA, protect="rewards" if rewards_only else "decisions")
    return audited_plan(
        mu,
        privacy=LocalDP(epsilon, DELTA) if local else joint,
        decisions="box" if kind == "reward" else "candidates",
        public_decisions=rewards_only,
        encoding=kind,
        schedule=Schedule(first=200),
        noise_std=0.02,
    )


def _epochs(plan: Plan) -> tuple[Epoch, Epoch]:
    """A first epoch, and the residual epoch after a release that taught something."""
    study = Study(plan)
    first = study.next_epoch()
    rng = np.random.Generator(np.random.Philox(1))
    menu = first.policy.menu
    points = first.asked(first.length) if len(menu) else rng.random((first.length, 1))
    rewards = np.sin(6.0 * points[:, 0]) / 2
    bits = source(Simulation(1), 0)
    if plan.is_local:
        half, centre = plan.half_width, plan.centre
        answers = zip(points, centre + half * rewards, strict=True)
        reports = [mechanism.report(plan, first, p, float(r), bits=bits) for p, r in answers]
        release = _release_of(first, reports)
    else:
        rounds = [Round(p, float(r)) for p, r in zip(points, rewards, strict=True)]
        sums = _sums(plan, first, rounds)
        release = mechanism.release(plan, first, sums, asks=first.length, bits=bits)
    return first, study.opened(first).released(release).next_epoch()


def _release_of(epoch: Epoch, reports: list[Integers]) -> Release:
    return Release(
        epoch=epoch.digest,
        previous=epoch.previous,
        asks=epoch.length,
        reports=len(reports),
        integers=np.sum(reports, axis=0),
        private=False,
    )


def _game(name: str, plan: Plan, epoch: Epoch) -> Game:
    """The worst pair: residuals at both ends of the width, at points with k = share.

    Their squares are the same: at the worst pair the spread does not move (`round_encoding`).
    """
    near, far = _worst_points(plan, epoch)
    up, down = _rewards(plan, epoch, near), _rewards(plan, epoch, far)
    worlds = (Round(near, max(up)), Round(far, min(down)))
    return Game(name, plan, epoch, (_total(plan, epoch, worlds[0]), _total(plan, epoch, worlds[1])))


def _worst_points(plan: Plan, epoch: Epoch) -> tuple[Floats, Floats]:
    """Points whose features have the inner product at which the bound is reached."""
    encoding = epoch.additive
    here = np.array([[0.3]])
    if encoding.noise.gram == 0.0:
        return here[0], here[0]
    share = (encoding.residual.width * encoding.noise.gram / encoding.noise.cross) ** 2
    if share > 1.0 - 1e-9:
        return here[0], here[0]
    phi = plan.map(here)[0]

    def excess(step: float) -> float:
        return float(plan.map(here + step)[0] @ phi) - share

    return here[0], here[0] + float(brentq(excess, 0.0, 0.7))


def _rewards(plan: Plan, epoch: Epoch, point: Floats) -> tuple[float, float]:
    """Rewards whose residuals lie at both ends of the width, as far as the range allows."""
    predicted, width = _predicted(plan, epoch, point), epoch.additive.residual.width
    return max(-1.0, predicted - width), min(1.0, predicted + width)


def _predicted(plan: Plan, epoch: Epoch, point: Floats) -> float:
    """The reward whose residual is zero."""
    return float(plan.map(point[None, :])[0] @ epoch.additive.residual.prediction)


def _total(plan: Plan, epoch: Epoch, own: Round) -> Integers:
    """The round among others; alone where it is a report."""
    others = [Round(np.array([0.1 * i]), 0.05 * i) for i in range(10)]
    return _sums(plan, epoch, [own] if plan.is_local else [*others, own]).total


def _sums(plan: Plan, epoch: Epoch, rounds: list[Round]) -> Sums:
    encoding = epoch.additive
    sums = Sums(encoding.size(plan.map))
    for each in rounds:
        point = each.point[None, :]
        sums.add(encoding.encode(plan.map, point, np.array([each.reward]))[0])
        if (announced := encoding.announce(plan.map, point)) is not None:
            sums.add(announced[0])
    return sums


def _unclipped(game: Game) -> Game:
    """Clipping forgotten: the noise is the epoch's, but residuals are let through as they come."""
    residual = Residual(game.epoch.additive.residual.prediction, width=math.inf)
    careless = replace(game.epoch, encoding=replace(game.epoch.additive, residual=residual))
    rounds = [Round(np.array([0.3]), reward) for reward in (-3.0, 3.0)]
    worlds = [_total(game.plan, careless, each) for each in rounds]
    return Game(game.name, game.plan, game.epoch, (worlds[0], worlds[1]))


def _exact_spread(game: Game) -> Game:
    """A residual at the end of the width against none, and no noise on the sum of squares."""
    plan, epoch, point = game.plan, game.epoch, np.array([0.3])
    end, nothing = max(_rewards(plan, epoch, point)), _predicted(plan, epoch, point)
    worlds = [_total(plan, epoch, Round(point, reward)) for reward in (end, nothing)]
    return _ExactSpread(game.name, plan, epoch, (worlds[0], worlds[1]))


def _exact_actions(plan: Plan, epoch: Epoch) -> Game:
    """Two users with other actions and the same answer, and the sum of actions left exact."""
    features = plan.map
    announced = AnnouncedEncoding.fit(
        features, epoch.additive.residual, plan.mu, 1.0, plan.expire_after
    )
    leaky = replace(epoch, encoding=announced)
    worlds = [_sums(plan, leaky, [Round(np.array([x]), 0.5)]).total for x in (0.2, 0.6)]
    return Game("reward", plan, leaky, (worlds[0], worlds[1]))


def _actions_game(plan: Plan, make: Callable[[Plan], Bandit], name: str) -> Game:
    """What a second user is given while a first, who differs between the worlds, has not answered.

    Actions get no noise: were they to differ at all, the worlds would be told apart for certain.
    """
    worlds: list[Integers] = []
    for own in (1.0, 9.0):
        bandit = make(plan)
        bandit.ask([[own]], user="first")
        chosen = bandit.ask(np.linspace(0.0, 10.0, 11)[:, None], user="second").chosen
        worlds.append(np.array([-1 if chosen is None else chosen], dtype=np.int64))
    return _SilentGame(name, plan, Study(plan).next_epoch(), (worlds[0], worlds[1]))


class PeekingBandit(Bandit):
    """Broken on purpose: it keeps away from actions that are being tried right now."""

    def ask(self, candidates: Any = None, **brought: Any) -> Trial:
        """The candidate that is farthest from the newest open trial's action."""
        if not self.open_trials:
            return super().ask(candidates, **brought)
        pending = self._sides.session.find(self.open_trials[-1]).point
        apart = np.abs(self.plan.domain.encode(candidates) - pending).sum(axis=1)
        farthest = int(np.argmax(apart))
        return replace(super().ask(candidates[[farthest]], **brought), chosen=farthest)


class _ExactSpread(Game):
    """A game against a mechanism that adds no noise to the last integer."""

    @property
    def stds(self) -> Floats:
        """The epoch's, but for the spread."""
        return np.append(super().stds[:-1], 0.0)


class _SilentGame(Game):
    """A game about something that gets no noise at all."""

    @property
    def stds(self) -> Floats:
        """None."""
        return np.zeros(len(self.worlds[0]))
