"""What a custodian counts: open rounds, exact sums, and the release that is drawn from them."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats
from discreet.errors import Refused
from discreet.learning.epoch import Epoch
from discreet.one_copy import OneCopy
from discreet.privacy.budget import Simulation
from discreet.privacy.looks import Looks, in_sight
from discreet.protocol.records import Abandoned, Asked, Passed, Told
from discreet.protocol.rounds import Session
from discreet.trusted import mechanism
from discreet.trusted.randomness import source
from discreet.trusted.sums import PastSums, Sums

#: So many rounds are looked at again together: their features take memory, rounds hardly any.
TOGETHER = 1024


def _numbers() -> "array[float]":
    return array("d")


@dataclass
class _Rounds:
    """Answered rounds of an epoch, and how much they count in each release that looks at them."""

    looks: Looks
    points: "array[float]" = field(default_factory=_numbers, repr=False)
    rewards: "array[float]" = field(default_factory=_numbers, repr=False)

    def add(self, points: Floats, rewards: Floats) -> None:
        """Keep rounds, if they will be looked at again."""
        if len(self.looks) > 1:
            self.points.extend(points.ravel())
            self.rewards.extend(rewards)

    def parts(self) -> Iterator[tuple[Floats, Floats]]:
        """Points and rewards, some at a time."""
        rewards = np.array(self.rewards)
        points = np.array(self.points).reshape(len(rewards), -1) if len(rewards) else rewards
        for start in range(0, len(rewards), TOGETHER):
            yield points[start : start + TOGETHER], rewards[start : start + TOGETHER]


class Privatizer(OneCopy):
    """Open rounds, and the integer sums of the epoch that is open.

    A late answer enters the epoch that is open when it arrives, with that epoch's encoding; an
    answer that never comes contributes the zero vector. The rounds of the last few epochs are kept:
    as many as the plan looks at again. Where noise is correlated the sums of closed epochs are
    kept: a release is made of them, too.
    """

    def __init__(self, plan: Plan, simulation: Simulation | None = None) -> None:
        super().__init__()
        self._plan = plan
        self._simulation = simulation
        self._drawn: Release | None = None
        self._past: PastSums | None = None
        self._rounds: tuple[_Rounds, ...] = ()
        self.session = Session(plan.expire_after)

    def open(self, epoch: Epoch) -> None:
        """Begin an epoch with the sums of the earlier rounds that it looks at again, if any."""
        size = epoch.additive.size(self._plan.map)
        if self._past is not None:
            self._past.close(self._sums)
        elif self._plan.stream is not None:
            self._past = PastSums(size)
        self._epoch = epoch
        self._sums = Sums(size)
        self._drawn = None
        self._rounds = in_sight(_Rounds(self._plan.looks_from(epoch.first)), self._rounds)
        for age, each in enumerate(self._rounds):
            for points, rewards in each.parts():
                self._look(points, rewards, each.looks[age])

    def ask(self, event: Asked | Passed) -> None:
        """A user was given an action, or there was none to give."""
        if isinstance(event, Passed):
            self.session.skip(event)
            return
        self.session.ask(event)
        announced = self._epoch.additive.announce(self._plan.map, event.point[None, :])
        if announced is not None:
            self._sums.add(announced[0])

    def tell(self, *events: Told) -> None:
        """Users answered: encode their rounds and add each once.

        Elimination's phases know which arms were asked, so it takes late answers for silence.
        """
        closed = [self.session.close(event.number).point for event in events]
        first = self._epoch.first if self._plan.eliminates else 0
        in_time = [i for i, event in enumerate(events) if event.number >= first]
        if in_time:
            rewards = np.array([events[i].reward for i in in_time])
            points = np.array([closed[i] for i in in_time])
            self._count(points, self._plan.all_centred(rewards))

    def simulate(self, points: Floats, rewards: Floats) -> None:
        """Count rounds that are asked and answered at once: in simulations, where no one waits."""
        if self._simulation is None:
            raise Refused("rounds of real people are asked and told one by one")
        self.session.asked += len(points)
        for start in range(0, len(points), TOGETHER):
            announced = self._epoch.additive.announce(
                self._plan.map, points[start : start + TOGETHER]
            )
            if announced is not None:
                self._sums.add(announced.sum(axis=0))
        self._count(points, self._plan.all_centred(rewards))

    def abandon(self, event: Abandoned) -> None:
        """A user will not answer."""
        self.session.close(event.number, "abandon")

    @property
    def has_drawn(self) -> bool:
        """Whether the open epoch's noise is drawn: what comes now would be in no release."""
        return self._drawn is not None

    def release(self) -> Release:
        """The open epoch's release: drawn once, however often it is asked for."""
        self.check_process()
        if self._drawn is None:
            bits = source(self._simulation, self._epoch.number)
            asks = self.session.asked - self._epoch.first
            self._drawn = mechanism.release(
                self._plan, self._epoch, self._sums, asks=asks, bits=bits, past=self._past
            )
        return self._drawn

    def _count(self, points: Floats, rewards: Floats) -> None:
        """Add answered rounds of the open epoch, and keep them if they are looked at again."""
        newest = self._rounds[0]
        for start in range(0, len(rewards), TOGETHER):
            some = slice(start, start + TOGETHER)
            self._look(points[some], rewards[some], newest.looks[0])
        newest.add(points, rewards)

    def _look(self, points: Floats, rewards: Floats, weight: float) -> None:
        """Add rounds to the sums, each counting so much."""
        total = self._epoch.additive.total(self._plan.map, points, rewards, weight)
        self._sums.add(total)
