"""Games against looking again: all releases that look at a round, in two studies.

A study of other people makes the epochs, each with a residual, directions and noise of its own. The
privatizer then takes in two studies under these epochs that differ in one answer of the second
epoch, and shows the sums that it would add noise to: the test sees every release that looks at the
answer, at once. Given the epochs their noise is independent, so the likelihood ratio is a plain
sum. Each control is a privatizer that counts rounds in another way than the plan.
"""

from collections.abc import Callable, Iterator

import numpy as np

from discreet.agreement.plan import Plan, Schedule
from discreet.arrays import Integers
from discreet.audit.contest import audited_plan
from discreet.audit.streams import GlassPrivatizer, NodeGame, NodePlay, from_nodes
from discreet.learning.epoch import Epoch
from discreet.learning.study import Study
from discreet.privacy.looks import FOUR_LOOKS, Looks
from discreet.protocol.records import Asked, Told

#: The first epoch's rounds are looked at once; the second's in all others.
RELEASES = 1 + len(FOUR_LOOKS)
#: What everyone else answers: the middle of the range.
OTHERS = 0.5


def game(
    plan: Plan,
    name: str,
    privatizer: Callable[[Plan], GlassPrivatizer] = GlassPrivatizer,
) -> NodeGame:
    """Answers at both ends of the range, to the same action: the worst pair."""
    epochs = _epochs(plan)
    low, high = (_sums(privatizer(plan), epochs, own) for own in plan.rewards)
    stds = np.concatenate([epoch.additive.stds(plan.map) for epoch in epochs])
    moved = low != high
    return NodeGame(name, plan, (low[moved], high[moved]), stds[moved])


def looks_trials(claims: tuple[float, ...]) -> Iterator[tuple[NodeGame, str | None, NodePlay]]:
    """Four looks at each claim, and the controls at the first."""
    for claim in claims:
        schedule = Schedule(first=50, growth=1.2)
        plan = audited_plan(claim, schedule=schedule, noise_std=0.02, looks=FOUR_LOOKS)
        name = f"privatizer with four looks, mu {claim:g}"
        yield game(plan, name), None, from_nodes
        if claim == claims[0]:
            for control, privatizer in CONTROLS.items():
                yield game(plan, name, privatizer), control, from_nodes


class Weighing(GlassPrivatizer):
    """Broken on purpose: rounds count as much as these looks say, whatever they add up to."""

    looks: Looks

    def open(self, epoch: Epoch) -> None:
        """The real one, but for the weights of the rounds to come."""
        super().open(epoch)
        if epoch.number > 0:
            self._rounds[0].looks = self.looks


class WholeLooks(Weighing):
    """Each look is a whole one: the budget is spent four times."""

    looks = (1.0,) * len(FOUR_LOOKS)


class OneLookPaid(Weighing):
    """The first look has the whole budget, and the others come on top."""

    looks = (1.0, 0.7, 0.5, 0.35)


class Recounting(GlassPrivatizer):
    """Broken on purpose: the second epoch's answers are moved to the third, and left as well."""

    def open(self, epoch: Epoch) -> None:
        """The real one, and once the answers of the epoch before, as if they came now."""
        super().open(epoch)
        if epoch.number == 2:
            newest, before = self._rounds[:2]
            newest.points.extend(before.points)
            newest.rewards.extend(before.rewards)
            points = np.array(newest.points).reshape(len(newest.rewards), -1)
            self._look(points, np.array(newest.rewards), newest.looks[0])


CONTROLS: dict[str, Callable[[Plan], GlassPrivatizer]] = {
    "every look a whole one": WholeLooks,
    "looks beyond the first not paid for": OneLookPaid,
    "an answer moved to a later epoch and left": Recounting,
}


def _epochs(plan: Plan) -> tuple[Epoch, ...]:
    """Those of a study in which everyone answers alike."""
    privatizer, study = GlassPrivatizer(plan), Study(plan)
    for _ in range(RELEASES):
        epoch = study.next_epoch()
        _play(privatizer, epoch, OTHERS)
        study = study.opened(epoch).released(privatizer.release())
    return study.epochs


def _sums(privatizer: GlassPrivatizer, epochs: tuple[Epoch, ...], own: float) -> Integers:
    """What is released but for noise, this being the first answer of the second epoch."""
    for epoch in epochs:
        _play(privatizer, epoch, own if epoch.number == 1 else OTHERS)
        privatizer.release()
    return np.concatenate(privatizer.sums)


def _play(privatizer: GlassPrivatizer, epoch: Epoch, first: float) -> None:
    """Everyone answers, in this epoch."""
    privatizer.open(epoch)
    for number, point in enumerate(epoch.asked(epoch.length), start=epoch.first):
        privatizer.ask(Asked(number, point))
        privatizer.tell(Told(number, first if number == epoch.first else OTHERS))
