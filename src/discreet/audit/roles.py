"""Games through the roles: people ask, answer and repeat themselves, and releases are shown.

The other games break open the mechanism; these use it as a study does. Every draw is a whole
study with a fresh custodian, or a fresh client. One person differs between the worlds: what they
bring, and an answer far outside the range. They answer late, one epoch after they asked, and twice;
under elimination, which drops late answers, at once and again when it is late. Every release, or
report, is asked for twice. The public epochs are the same in all draws.

An observer scores each thing shown by the direction in which the person's round would move it, in
units of its noise. How the scores are best added up, and where to draw the line, is learnt from
draws of both worlds that are not counted: so a leak shows wherever it is, in a second draw of a
release, or in an epoch that should not know the answer.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.agreement.elimination import Elimination
from discreet.agreement.plan import Plan, Schedule
from discreet.agreement.release import GENESIS, Release
from discreet.arrays import Floats, Integers
from discreet.audit.contest import DELTA, audited_plan, mu_from_counts
from discreet.learning.epoch import Epoch
from discreet.privacy.budget import JointDP, LocalDP, Simulation
from discreet.privacy.cost import GaussianPrivacy
from discreet.privacy.looks import FOUR_LOOKS, ONE_LOOK, Looks
from discreet.protocol.batches import Sealed
from discreet.protocol.messages import Answer, Ask, Offer, Opening, Report
from discreet.protocol.publisher import Publisher
from discreet.protocol.records import Told
from discreet.protocol.server import Server
from discreet.trusted import mechanism
from discreet.trusted.client import Client, Sent
from discreet.trusted.custodian import Custodian
from discreet.trusted.custody import Custody
from discreet.trusted.privatizer import Privatizer

CLAIM = 3.0
#: With so many draws of each world a bound on mu = 3 lies more than five of its standard deviations
#: above the least that is asked of it, and a control's as many above the claim.
DRAWS, SHARPNESS = 2_500, 0.7
#: Draws of each world that scores are weighed by.
PILOT = 400
#: Added to the variances of scores, in units of noise: two that are the same share a weight.
RIDGE = 1e-3
#: Asks in an epoch: the person's is the second of the first.
ASKS, OWN = 3, 1
#: Far outside the range, on either side.
REWARDS = (-40.0, 41.0)

#: (game, world) -> what is shown in one study: one vector a release or report.
Play = Callable[["RoleGame", int], list[Integers]]


@dataclass(frozen=True, eq=False)
class RoleGame:
    """One person who differs, under public epochs: `points` are their actions in the two worlds."""

    name: str
    plan: Plan
    epochs: tuple[Epoch, ...]
    points: tuple[Floats, Floats]
    play: Play

    @property
    def claim(self) -> float:
        """The mu that the plan promises."""
        return self.plan.mu or 0.0

    @property
    def counted(self) -> int:
        """The epoch whose release counts the person's answer."""
        return 0 if self.plan.is_local or self.plan.eliminates else 1

    def lower_bound(self, draws: int, confidence: float) -> float:
        """mu is at least this, with the given confidence."""
        directions = self._directions()
        pilot = [self._scores(world, PILOT, directions) for world in (0, 1)]
        means: list[Floats] = [scores.mean(axis=0) for scores in pilot]
        residuals = np.concatenate([each - mean for each, mean in zip(pilot, means, strict=True)])
        covariance = residuals.T @ residuals / len(residuals) + RIDGE * np.eye(len(directions))
        weights = np.asarray(np.linalg.solve(covariance, means[1] - means[0]), np.float64)
        line = float(weights @ (means[0] + means[1])) / 2
        alarms, hits = (
            int(np.count_nonzero(self._scores(world, draws, directions) @ weights > line))
            for world in (0, 1)
        )
        return mu_from_counts(hits, alarms, draws, confidence)

    def _scores(self, world: int, draws: int, directions: list[Floats]) -> Floats:
        shown = (self.play(self, world) for _ in range(draws))
        rows = [[x @ w for x, w in zip(each, directions, strict=True)] for each in shown]
        return np.array(rows, dtype=np.float64)

    def _directions(self) -> list[Floats]:
        """For each thing shown, how the person's round would move it, in units of its noise."""
        found: list[Floats] = []
        for epoch in self.epochs:
            moved = _moved(self.plan, epoch, self.points)
            stds = epoch.additive.stds(self.plan.map)
            found += 2 * [moved / np.linalg.norm(moved) / np.where(stds > 0, stds, 1.0)]
        return found

    def brings(self, world: int) -> tuple[dict[str, Any], ...] | None:
        """The one candidate of the person in this world; none where the public policy chooses."""
        if self.plan.decisions == "box":
            return None
        return (self.plan.domain.decode(self.points[world]),)


def role_trials() -> Iterator[tuple[RoleGame, str | None]]:
    """Every encoding in both models, as it is; then custodians and clients broken on purpose."""
    for kind in ("gram", "fourier", "announced"):
        yield joint_game(kind), None
    for kind in ("reward", "directed"):
        yield joint_game(kind, looks=ONE_LOOK), None
        yield joint_game(kind, looks=FOUR_LOOKS), None
    for kind in ("gram", "fourier", "reward"):
        yield local_game(kind), None
    yield elimination_game(), None
    for control, custodian in CUSTODIANS.items():
        yield joint_game("gram", custodian=custodian), control
    for control in PHASES:
        yield elimination_game(CUSTODIANS[control]), f"{control}, by a phase"
    for control, client in CLIENTS.items():
        yield local_game("gram", client=client), control


# -- the joint model


def joint_game(
    kind: str,
    *,
    looks: Looks | None = None,
    custodian: Callable[[Plan], Custodian] = Custodian,
) -> RoleGame:
    """A game of a custodian's: as many releases as look at the late answer, and one more."""
    rewards_only = kind == "announced"
    privacy = JointDP(
        GaussianPrivacy(CLAIM).epsilon(DELTA),
        DELTA,
        protect="rewards" if rewards_only else "decisions",
    )
    plan = _plan(kind, privacy=privacy, public_decisions=rewards_only, looks=looks)
    epochs = _epochs(plan, 2 + len(plan.looks or ONE_LOOK))
    name = f"custodian, {kind}" if looks is None else f"custodian, {kind}, looks {len(looks)}"
    points = _points(plan, epochs[0], counted=epochs[1])
    return RoleGame(name, plan, epochs, points, play_custodian(custodian))


def elimination_game(custodian: Callable[[Plan], Custodian] = Custodian) -> RoleGame:
    """A game of phases: the person's answer is in the first, and may be in no other.

    Means are declared to be so close that residuals are clipped within the range of rewards.
    """
    plan = _plan(
        "reward",
        confidence="theory",
        norm=1.0,
        elimination=Elimination(net=5, means=(0.4, 0.6)),
    )
    epochs = _epochs(plan, 3)
    points = _points(plan, epochs[0], counted=epochs[0])
    return RoleGame("custodian, elimination", plan, epochs, points, play_custodian(custodian))


def play_custodian(custodian: Callable[[Plan], Custodian]) -> Play:
    """Ask, answer and release through messages, each twice."""

    def play(game: RoleGame, world: int) -> list[Integers]:
        role, shown, previous = custodian(game.plan), list[Integers](), GENESIS
        for epoch in game.epochs:
            role.open(Opening(previous, replace(epoch, previous=previous)))
            for number in range(epoch.first, epoch.end):
                own = number == OWN
                role.choose(Ask(_id(number), f"user {number}", game.brings(world if own else 0)))
                if not own:
                    role.receive(Answer(_id(number), 0.5))
            if game.counted <= epoch.number <= 1:
                for _ in range(2):
                    role.receive(Answer(_id(OWN), REWARDS[world]))
            releases = [role.release(), role.finish()]
            shown += [release.integers for release in releases]
            previous = releases[0].digest
        return shown

    return play


def _epochs(plan: Plan, count: int) -> tuple[Epoch, ...]:
    """Those of a study in which everyone answers alike."""
    publisher, custodian = Publisher(plan), Custodian(plan, simulation=Simulation(1))
    for _ in range(count):
        custodian.open(publisher.opening)
        for number in range(custodian.asked, publisher.study.epochs[-1].end):
            dose = {"dose": 2.0 + number % 7}
            candidates = None if plan.decisions == "box" else (dose,)
            custodian.choose(Ask(_id(number), f"user {number}", candidates))
            custodian.receive(Answer(_id(number), 0.5))
        publisher.publish(custodian.release())
    return publisher.study.epochs[:count]


def _id(number: int) -> str:
    return f"{number:032x}"


# -- the local model


def local_game(kind: str, *, client: Callable[[Plan], Client] = Client) -> RoleGame:
    """A game of a client's: one report, asked for twice."""
    plan = _plan(kind, privacy=LocalDP(GaussianPrivacy(CLAIM).epsilon(DELTA), DELTA))
    epoch = Server(plan).study.epochs[0]
    points = _points(plan, epoch, counted=epoch)
    return RoleGame(f"client, {kind}", plan, (epoch,), points, play_client(client))


def play_client(client: Callable[[Plan], Client]) -> Play:
    """Choose and report, twice."""

    def play(game: RoleGame, world: int) -> list[Integers]:
        role = client(game.plan)
        role.choose(Offer(role.request().id, OWN, game.epochs[0]), game.brings(world))
        return [_integers(role.report(REWARDS[world])) for _ in range(2)]

    return play


# -- the worst pair


def _plan(kind: str, **parts: Any) -> Plan:
    usual: dict[str, Any] = {
        "decisions": "box" if kind == "reward" else "candidates",
        "encoding": kind,
        "schedule": Schedule(first=ASKS, growth=1.0),
        "noise_std": 0.02,
    }
    return audited_plan(CLAIM, **(usual | parts))


def _points(plan: Plan, asked: Epoch, *, counted: Epoch) -> tuple[Floats, Floats]:
    """Actions of the person in the two worlds: what moves the epoch that counts them most."""
    if plan.decisions == "box":
        own = asked.asked(ASKS)[OWN]
        return own, own
    near = np.array([0.3])
    if plan.public_decisions:
        return near, near
    options = [(near, np.array([x])) for x in np.linspace(0.3, 1.0, 71)]
    sizes = [float(np.linalg.norm(_moved(plan, counted, pair))) for pair in options]
    return options[int(np.argmax(sizes))]


def _moved(plan: Plan, epoch: Epoch, points: tuple[Floats, Floats]) -> Floats:
    """How far the person's round moves what is released, in units of its noise."""
    rewards = np.array([plan.centred(plan.clip(reward)) for reward in REWARDS])
    rounds = epoch.additive.encode(plan.map, np.array(points), rewards)
    stds = epoch.additive.stds(plan.map)
    return np.where(stds > 0, rounds[1] - rounds[0], 0.0) / np.where(stds > 0, stds, 1.0)


# -- broken on purpose


class Quiet(Privatizer):
    """A quarter of the noise."""

    def release(self) -> Release:
        """The real one, three quarters of the way back to the sums."""
        drawn = super().release()
        exact = mechanism.total(self._plan, self._sums, self._past)
        return replace(drawn, integers=exact + (drawn.integers - exact) // 4)


class Doubling(Privatizer):
    """Every answer counts twice."""

    def tell(self, *events: Told) -> None:
        """The real one, and the answers once more."""
        points = np.array([self.session.find(event.number).point for event in events])
        super().tell(*events)
        rewards = np.array([self._plan.centred(event.reward) for event in events])
        self._look(points, rewards, self._rounds[0].looks[0])


class Keeping(Privatizer):
    """The answers of an epoch count in the next one, too."""

    def __init__(self, plan: Plan, simulation: Simulation | None = None) -> None:
        super().__init__(plan, simulation)
        self._kept: list[tuple[Floats, Floats]] = []

    def open(self, epoch: Epoch) -> None:
        """The real one, and what was told before it."""
        super().open(epoch)
        for points, rewards in self._kept:
            self._look(points, rewards, 1.0)
        self._kept.clear()

    def tell(self, *events: Told) -> None:
        """The real one, with a memory."""
        points = np.array([self.session.find(event.number).point for event in events])
        self._kept.append(
            (points, np.array([self._plan.centred(event.reward) for event in events]))
        )
        super().tell(*events)


class Anew(Privatizer):
    """A release that was drawn is not kept."""

    def release(self) -> Release:
        """The real one, as if it had not been called before."""
        self._drawn = None
        return super().release()


class Redrawing(Custody):
    """Noise is drawn at every call."""

    PRIVATIZER = Anew

    def draw(self) -> Release:
        """The real one; then as if it had not been called before."""
        return super().draw() if self.release is None else self._privatizer.release()


def _custodian(custody: type[Custody]) -> type[Custodian]:
    return type(f"With{custody.__name__}", (Custodian,), {"CUSTODY": custody})


def _integers(report: Sent) -> Integers:
    """What a report says: its integers, or its index."""
    if isinstance(report, Sealed):
        raise TypeError("a sealed report says nothing")
    return report.integers if isinstance(report, Report) else np.array([report.index])


def _custody(privatizer: type[Privatizer]) -> type[Custody]:
    return type(f"With{privatizer.__name__}", (Custody,), {"PRIVATIZER": privatizer})


class Forgetful(Client):
    """It does not keep what it sent: a report asked for again is drawn again."""

    def report(self, reward: float) -> Sent:
        """The real one, as if it had not been called before."""
        return super().report(reward) if self._report is None else self._draw(reward)


CUSTODIANS: dict[str, Callable[[Plan], Custodian]] = {
    "a quarter of the noise": _custodian(_custody(Quiet)),
    "answers count twice": _custodian(_custody(Doubling)),
    "noise redrawn at each call": _custodian(Redrawing),
    "late answers kept in two epochs": _custodian(_custody(Keeping)),
}
#: Of these, those that are also played with phases of elimination.
PHASES = ("a quarter of the noise", "late answers kept in two epochs")
CLIENTS: dict[str, Callable[[Plan], Client]] = {
    "randomised anew when sent again": Forgetful,
}
