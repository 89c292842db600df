"""Long simulations: everyone of an epoch plays at once.

Within an epoch the policy is frozen, so its people can act together, and what they answer can be
encoded and summed in one go. Epochs, encodings, noise and posteriors are those of a study; only
the order in which dice are thrown differs from `simulate`, where a round takes five times longer.
Everything here is seeded and therefore not private.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats, Integers
from discreet.learning.belief import Belief, Spending
from discreet.learning.epoch import Epoch
from discreet.learning.next_epoch import believed_before
from discreet.learning.study import Study
from discreet.privacy.looks import Looks, in_sight
from discreet.simulation.play import Run, Setting, plan_for
from discreet.simulation.worlds import MakeProblem, Options, Problem, World, rows_of, values_of

#: So many people are looked at together: enough for speed, few enough for memory.
TOGETHER = 1024


@dataclass(frozen=True, eq=False)
class _Batch:
    """What some people did: scaled actions, answers, and how far they fell short."""

    points: Floats
    rewards: Floats
    regrets: Floats


@dataclass(frozen=True, eq=False)
class _Rounds:
    """The batches of an epoch, and how much they count in each release that looks at them."""

    looks: Looks
    batches: tuple[_Batch, ...]


def play_batched(
    make_problem: MakeProblem,
    setting: Setting,
    *,
    seed: int,
    run: int = 0,
    spending: Spending | None = None,
) -> Run:
    """One study of a problem with a box or candidates; (seed, run) fixes it.

    >>> from discreet.simulation.problems import find_problem
    >>> from discreet.privacy.budget import LocalDP
    >>> setting = Setting(model="local", rounds=50, privacy=LocalDP(8.0, 0.01))
    >>> play_batched(find_problem("synthetic"), setting, seed=1).regrets.shape
    (50,)
    """
    world = World.draw(make_problem, seed=seed, run=run)
    plan = plan_for(world.problem, setting, world.decisions, f"batch {seed}.{run}")
    belief = believed_before(plan) if spending is None else Belief.before(plan, spending)
    return play_study(world, Study.begun(belief), setting.rounds)


def play_study(world: World, study: Study, rounds: int) -> Run:
    """A study that has not begun, played in a world for as many rounds as its plan's horizon."""
    plan, regrets = study.plan, [np.empty(0)]
    seen: tuple[_Rounds, ...] = ()
    while sum(map(len, regrets)) < rounds:
        epoch = study.next_epoch()
        newest = _Rounds(plan.looks_from(epoch.first), tuple(_batches(world, plan, epoch)))
        seen = in_sight(newest, seen)
        sums = np.zeros(epoch.encoding.size(plan.map), dtype=np.int64)
        for age, each in enumerate(seen):
            for batch in each.batches:
                sums += _encoded(plan, epoch, batch, each.looks[age])
        regrets += [batch.regrets for batch in newest.batches]
        study = study.opened(epoch).released(_release(plan, epoch, sums, world.player))
    return Run(world.problem, np.concatenate(regrets), study, seconds=0.0)


def _batches(world: World, plan: Plan, epoch: Epoch) -> Iterator[_Batch]:
    for start in range(0, epoch.length, TOGETHER):
        numbers = np.arange(start, min(start + TOGETHER, epoch.length))
        yield _act(world, plan, epoch, numbers)


def _act(world: World, plan: Plan, epoch: Epoch, numbers: NDArray[np.intp]) -> _Batch:
    problem, rng = world.problem, world.answers
    if plan.decisions == "box":
        points = epoch.policy.from_menu(numbers)
        actions = rows_of(plan.domain, points)
        best = np.full(len(numbers), world.best)
    else:
        sets = decision_sets(problem, len(numbers), rng)
        scaled = plan.domain.encode(values_of(plan.domain, sets.reshape(-1, sets.shape[2])))
        options = list(scaled.reshape(sets.shape))
        chosen = epoch.policy.choose(plan.map, numbers, options)
        everyone = np.arange(len(sets))
        points, actions = scaled.reshape(sets.shape)[everyone, chosen], sets[everyone, chosen]
        best = problem.mean(sets.reshape(-1, sets.shape[2])).reshape(sets.shape[:2]).max(axis=1)
    rewards = np.array([problem.reward(action, rng) for action in actions])
    return _Batch(points, rewards, best - problem.mean(actions))


def decision_sets(problem: Problem, count: int, rng: np.random.Generator) -> Floats:
    """What `count` people bring, (people, candidates, coordinates): at once where a problem can."""
    together = getattr(problem, "decision_sets", None)
    if together is not None:
        return together(count, rng)
    brought: list[Options] = [problem.decision_set(rng) for _ in range(count)]
    return np.array(brought, dtype=np.float64)


def _encoded(plan: Plan, epoch: Epoch, batch: _Batch, weight: float) -> Integers:
    centred = np.array([plan.centred(reward) for reward in batch.rewards])
    total = epoch.encoding.total(plan.map, batch.points, centred, weight)
    announced = epoch.encoding.announce(plan.map, batch.points)
    return total if announced is None else total + announced.sum(axis=0)


def _release(plan: Plan, epoch: Epoch, sums: Integers, rng: np.random.Generator) -> Release:
    """The sums plus the noise of a release, or of as many reports as there were asks."""
    stds = plan.noise_of_sum(epoch.encoding, epoch.length).stds(plan.map)
    noise = np.rint(stds * rng.standard_normal(len(stds))).astype(np.int64)
    return Release(
        epoch=epoch.digest,
        previous=epoch.previous,
        asks=epoch.length,
        reports=epoch.length if plan.is_local else None,
        integers=sums + noise,
        private=False,
    )
