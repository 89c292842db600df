"""A study in a world, everyone of an epoch at once.

Within an epoch the policy is frozen and sums do not care about their order. So its people may act
together, and be counted together, and every epoch, release and posterior is that of people who come
one after the other: bit for bit, with a custodian, because the code that chooses, counts and draws
is the custodian's own (`decide`, `Privatizer`). In the local model the noise of n reports is drawn
at once, with the law of their sum. Everything here is seeded and therefore not private.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats, Integers
from discreet.learning.belief import Belief, Spending
from discreet.learning.epoch import Epoch
from discreet.learning.next_epoch import believed_before
from discreet.learning.study import Study
from discreet.privacy.budget import Simulation
from discreet.privacy.cap import THRESHOLD_BITS, Cap
from discreet.protocol.decisions import decide
from discreet.protocol.handed_up import handed_up
from discreet.protocol.tally import WIDER
from discreet.simulation.people import People
from discreet.simulation.worlds import Crowd, World
from discreet.trusted.privatizer import TOGETHER, Privatizer

#: So many options are scored at a time: their features stay near the processor.
OPTIONS = 4096


class Counting(Protocol):
    """What counts the rounds of an epoch and releases their noisy sums."""

    def open(self, epoch: Epoch) -> None:
        """Begin an epoch."""
        ...

    def simulate(self, points: Floats, rewards: Floats) -> None:
        """Count rounds that are asked and answered at once."""
        ...

    def release(self) -> Release:
        """The open epoch's release."""
        ...


class Reports:
    """The reports of an epoch's devices, added up as a server adds them.

    A report is its encoded round plus integer noise of std s, so the sum of n has the sum of the
    rounds plus, up to rounding (below an integer in each, of at least a thousand that s has),

        N(0, n s^2),        s as wide as smoothing makes it (`tally`).
    """

    def __init__(self, plan: Plan, rng: np.random.Generator) -> None:
        self._plan, self._rng = plan, rng

    def open(self, epoch: Epoch) -> None:
        """Begin an epoch."""
        self._epoch, self._reports = epoch, 0
        self._sums = np.zeros(epoch.additive.size(self._plan.map), dtype=np.int64)

    def simulate(self, points: Floats, rewards: Floats) -> None:
        """Count rounds that are asked and reported at once."""
        plan, encoding = self._plan, self._epoch.additive
        for start in range(0, len(points), TOGETHER):
            some = slice(start, start + TOGETHER)
            self._sums += encoding.total(plan.map, points[some], plan.all_centred(rewards[some]))
        self._reports += len(points)

    def release(self) -> Release:
        """The sums, and the noise of so many reports."""
        plan, epoch, count = self._plan, self._epoch, self._reports
        stds = WIDER * plan.noise_of_sum(epoch.additive, count).stds(plan.map)
        noise = np.rint(stds * self._rng.standard_normal(len(stds))).astype(np.int64)
        return Release(
            epoch=epoch.digest,
            previous=epoch.previous,
            asks=count,
            reports=count,
            integers=self._sums + noise,
            private=False,
        )


class IndexReports(Reports):
    """The indices that an epoch's devices send, drawn and counted together."""

    def open(self, epoch: Epoch) -> None:
        """Begin an epoch."""
        self._epoch, self._reports = epoch, 0
        self._sums = np.zeros(epoch.indexed.size(self._plan.map), dtype=np.int64)

    def simulate(self, points: Floats, rewards: Floats) -> None:
        """Count rounds that are asked and reported at once."""
        plan, encoding, rng = self._plan, self._epoch.indexed, self._rng
        asks = np.arange(self._reports, self._reports + len(points))
        for start in range(0, len(points), TOGETHER):
            some = slice(start, start + TOGETHER)
            count = len(asks[some])
            indices = encoding.indices(
                plan.map,
                points[some],
                plan.all_centred(rewards[some]),
                coins=rng.integers(1 << THRESHOLD_BITS, size=count),
                places=_places(encoding.cap, count, rng),
            )
            sent = self.sent(points[some], indices)
            self._sums += encoding.statistics(sent, self._epoch.policy.rows(asks[some]))
        self._reports += len(points)

    def sent(self, points: Floats, indices: Integers) -> Integers:
        """What devices of people at these actions send: what they drew, unless they lie."""
        return indices

    def release(self) -> Release:
        """The sums: every index was drawn already."""
        epoch, count = self._epoch, self._reports
        integers, reports = handed_up(self._plan, epoch, self._sums, count)
        return Release(
            epoch=epoch.digest,
            previous=epoch.previous,
            asks=count,
            reports=reports,
            integers=integers,
            private=False,
        )


def _places(cap: Cap, count: int, rng: np.random.Generator) -> Integers:
    """Places of so many reports in their rankings (`randomness.places`, from a seed)."""
    near = rng.integers(1 << THRESHOLD_BITS, size=count) < cap.threshold
    inside = rng.integers(cap.nearest, size=count)
    return np.where(near, inside, rng.integers(cap.nearest, cap.size, size=count))


def begin(plan: Plan, spending: Spending | None = None) -> Study:
    """A simulated study that has not begun, with its budget spent in the usual way or another."""
    belief = believed_before(plan)
    if spending is not None and isinstance(belief, Belief):
        belief = replace(belief, spending=spending)
    return Study.begun(belief, simulated=True)


def play_study(
    world: World,
    study: Study,
    rounds: int,
    advance: Callable[[int], None] = lambda rounds: None,
    *,
    counting: Counting | None = None,
) -> tuple[Floats, Study]:
    """The regret of each round, and the study after them; it had not begun.

    `advance` is called with the number of rounds just played. `counting` is who counts the rounds:
    by default the plan's own side.
    """
    plan, crowd, regrets = study.plan, Crowd(world, rounds), list[Floats]()
    counting = counting or _counting(plan, world.player)
    while rounds:
        epoch = study.next_epoch()
        study = study.opened(epoch)
        counting.open(epoch)
        length, done = min(rounds, epoch.length), 0
        for people in crowd.parts(length):
            points, actions = _act(plan, epoch, epoch.first + done, people)
            counting.simulate(points, crowd.answers(actions))
            regrets.append(people.ceilings() - world.problem.mean(actions))
            done += len(people)
            advance(len(people))
        study = study.released(counting.release())
        rounds -= length
    return np.concatenate(regrets), study


def _counting(plan: Plan, rng: np.random.Generator) -> Counting:
    if plan.is_local:
        return IndexReports(plan, rng) if plan.sends_indices else Reports(plan, rng)
    return Privatizer(plan, Simulation(int(rng.integers(2**63))))


def _act(plan: Plan, epoch: Epoch, first: int, people: People) -> tuple[Floats, Floats]:
    """The actions of people who come in a row: scaled, and in natural units."""
    options = people.scaled()
    each = max((len(own) for own in options if own is not None), default=1)
    together = max(1, OPTIONS // each)
    found = [
        decide(plan, epoch, first + start, options[start : start + together])
        for start in range(0, len(options), together)
    ]
    for refusal in (error for part in found for error in part.refusals.values()):
        raise refusal
    points = np.concatenate([part.points for part in found])
    positions = [part.positions for part in found if part.positions is not None]
    return points, people.actions(points, np.concatenate(positions) if positions else None)
