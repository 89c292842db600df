"""Games against the shuffler: who can tell one person among others whose reports are mixed?

Every draw is an epoch through the real roles. One person's client differs between the worlds: an
answer far above the range, or far below it. The others answer in the middle, and the observer, who
holds the server's key, knows that. It opens the batch and says "above" if

    sum over indices i of (P_above[i] - e^epsilon P_below[i]) / P_others[i]  >  0,

which is the best rule there is, where others are alike and reports are mixed; or if the first
report of the batch is in the cap of "above". Which of the two it believes is learnt from draws
that are not counted. Clopper-Pearson bounds of its two rates give a lower bound on delta:

    delta >= P(says above | above) - e^epsilon P(says above | below).

The claim is the delta that was promised, a constant: a level that is chosen wrongly does not move
it. The worlds' caps have nothing in common, and what a sound shuffler shows comes within a percent
of the claim, of which so many draws prove half.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import betaincinv

from discreet.agreement.plan import Plan, Schedule
from discreet.arrays import Floats, Integers
from discreet.audit.contest import audited_plan
from discreet.learning.epoch import Epoch
from discreet.learning.study import Study
from discreet.privacy.cap import Cap
from discreet.privacy.interval import IntervalEncoding
from discreet.privacy.shuffled import ShuffledDP
from discreet.protocol.batches import Batch, Sealed, Turn
from discreet.protocol.messages import Request
from discreet.protocol.sealing import public_key, seal, unseal
from discreet.protocol.verifier import Verifier
from discreet.trusted import mechanism
from discreet.trusted.client import Client
from discreet.trusted.randomness import source
from discreet.trusted.shuffler import Shuffler

#: People of the epoch; what is promised of them; and what the person answers in the two worlds.
PEOPLE, EPSILON, DELTA = 8, 0.5, 0.25
BELOW, ABOVE = -40.0, 41.0
#: Draws of each world. A bound on delta = 0.25 then lies more than five of its standard deviations
#: above the least that is asked of it; a control's, with fewer, as many above the claim.
DRAWS, SHARPNESS, CONTROL_DRAWS = 4_000, 0.4, 1_000
#: Draws of each world by which the observer chooses its rule.
PILOT = 200
#: The crowd whose level the control of a larger level takes.
LARGER = 300
_SECRET = "5e" * 32


@dataclass(frozen=True, eq=False)
class MixingGame:
    """One person among others, and the roles that hide them; of `PEOPLE` so many answer."""

    name: str
    plan: Plan
    epoch: Epoch
    shuffler: Callable[[Plan], Shuffler] = Shuffler
    client: Callable[[Plan], Client] = Client
    answering: int = PEOPLE

    @property
    def claim(self) -> float:
        """The delta that was promised at this epsilon: not what the plan's level makes of it."""
        return DELTA

    def lower_bound(self, draws: int, confidence: float) -> float:
        """delta is at least this, with the given confidence."""
        pilot = [self._said(world, PILOT) for world in (BELOW, ABOVE)]
        gains = pilot[1].mean(axis=0) - math.exp(EPSILON) * pilot[0].mean(axis=0)
        rule = int(np.argmax(gains))
        alarms, hits = (
            int(np.count_nonzero(self._said(world, draws)[:, rule])) for world in (BELOW, ABOVE)
        )
        return delta_from_counts(hits, alarms, draws, confidence)

    def _said(self, reward: float, draws: int) -> Floats:
        """What both rules say of each draw: 1 for above."""
        return np.array([self._rules(self.shown(reward)) for _ in range(draws)], dtype=np.float64)

    def shown(self, reward: float) -> Integers:
        """The indices of a batch, as the server opens it; the person came first."""
        role = self.shuffler(self.plan)
        role.open(Turn(public_key(_SECRET), None, self.epoch))
        person = self.client(self.plan)
        person.choose(role.offer(person.request()))
        role.receive(_sealed(person.report(reward)))
        for number, index in enumerate(self._others().tolist(), start=1):
            offer = role.offer(Request(f"{number:032x}", 0))
            box = seal(index, self.epoch.digest, offer.key or "")
            if number < self.answering:
                role.receive(Sealed(offer.id, self.epoch.digest, offer.key or "", box))
        return self._opened(role.batch())

    def _opened(self, batch: Batch) -> Integers:
        boxes = [box for group in batch.groups for box in group]
        opened = [unseal(box, self.epoch.digest, _SECRET) for box in boxes]
        return np.array([index for index in opened if index is not None], dtype=np.int64)

    def _others(self) -> Integers:
        """The reports of everyone else, by the real mechanism."""
        points = np.repeat(self.epoch.policy.menu, PEOPLE - 1, axis=0)
        middle = np.full(PEOPLE - 1, self.plan.centre)
        bits = source(None, 0)
        return mechanism.drawn(self.plan, self._encoding, points, middle, bits=bits)

    def _rules(self, indices: Integers) -> tuple[bool, bool]:
        if not indices.size:
            return False, False
        below, above, others = self._laws
        score = (above[indices] - math.exp(EPSILON) * below[indices]) / others[indices]
        return bool(score.sum() > 0.0), bool(above[indices[0]] > below[indices[0]])

    @cached_property
    def _laws(self) -> Floats:
        """How likely each index is of a person below, above, and in the middle."""
        cap = self._encoding.cap
        begins = self._encoding.begins(np.array([-1.0, 1.0, 0.0]), np.zeros(3, dtype=np.int64))
        laws = np.full((3, cap.size), float(cap.outside))
        for law, begin in zip(laws, begins.tolist(), strict=True):
            law[begin : begin + cap.nearest] = float(cap.inside)
        return laws

    @property
    def _encoding(self) -> IntervalEncoding:
        if not isinstance(self.epoch.encoding, IntervalEncoding):
            raise TypeError("this game is about reports of an interval")
        return self.epoch.encoding


def delta_from_counts(hits: int, alarms: int, draws: int, confidence: float) -> float:
    """A lower bound on delta from `hits` and false `alarms` in as many draws each.

    >>> 0.2 < delta_from_counts(42_600, 10_600, 100_000, 1 - 1e-7) < 0.25
    True
    """
    tail = (1.0 - confidence) / 2
    hit_rate = betaincinv(hits, draws - hits + 1, tail) if hits else 0.0
    alarm_rate = betaincinv(alarms + 1, draws - alarms, 1.0 - tail) if alarms < draws else 1.0
    return max(0.0, float(hit_rate - math.exp(EPSILON) * alarm_rate))


def mixing_trials() -> Iterator[tuple[MixingGame, str | None]]:
    """The shuffler as it is; then shufflers and levels that are broken on purpose."""
    yield mixing_game(), None
    yield replace(mixing_game(), shuffler=Orderly), "the order in which people came is kept"
    yield replace(mixing_game(), shuffler=Generous, answering=1), "a small batch is handed up"
    game = mixing_game()
    cap = game.plan.cap_of(IntervalEncoding, 1, LARGER)
    yield louder(game, cap), "the level of a larger crowd"


def mixing_game() -> MixingGame:
    """One action for everyone of an epoch, and answers around its middle."""
    plan = audited_plan(
        1.0,
        privacy=ShuffledDP(EPSILON, DELTA, minimum=PEOPLE, answering=1.0, honest=1.0),
        schedule=Schedule(first=PEOPLE, growth=1.0, least=PEOPLE),
        explore=[{"dose": 3.0}],
    )
    return MixingGame("shuffler, interval, delta", plan, Study(plan).next_epoch())


def louder(game: MixingGame, cap: Cap) -> MixingGame:
    """The game with reports by another cap, and roles that do not check it."""
    encoding = game.epoch.encoding
    epoch = replace(game.epoch, encoding=replace(encoding, cap=cap))
    return replace(game, epoch=epoch, shuffler=Believing, client=Credulous)


# -- broken on purpose


class Orderly(Shuffler):
    """It hands up reports in the order in which they came."""

    def _mixed(self, epoch: Epoch) -> Batch:
        batch, order = super()._mixed(epoch), list(self._boxes)
        groups = tuple(tuple(sorted(group, key=order.index)) for group in batch.groups)
        return replace(batch, groups=groups)


class Generous(Shuffler):
    """It hands up what it has, however little that is."""

    def _mixed(self, epoch: Epoch) -> Batch:
        return replace(super()._mixed(epoch), groups=(tuple(self._boxes),))


class Unchecked(Verifier):
    """It believes every epoch."""

    def check(self, epoch: Epoch, releases: tuple[object, ...]) -> None:
        """Nothing is refused."""

    def take(self, epoch: Epoch, releases: tuple[object, ...]) -> None:
        """Nothing is refused."""


class Credulous(Client):
    """It randomises by the epoch's cap, whatever the plan says."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, verifier=Unchecked(plan))

    def _draw(self, reward: float) -> Sealed:
        offer = self._offer
        if offer is None or offer.key is None:
            raise TypeError("no offer of a shuffler's")
        point, rewards, bits = self.chosen.point[None, :], np.array([reward]), source(None, 0)
        index = mechanism.drawn(self.plan, offer.epoch.indexed, point, rewards, bits=bits)[0]
        box = seal(int(index), offer.epoch.digest, offer.key)
        return Sealed(offer.id, offer.epoch.digest, offer.key, box)


class Believing(Shuffler):
    """It opens every epoch, whatever the plan says."""

    def _check_follows(self, turn: Turn) -> None:
        self._verifier = Unchecked(self.plan)


def _sealed(report: object) -> Sealed:
    if not isinstance(report, Sealed):
        raise TypeError("a shuffled plan's report is sealed")
    return report
