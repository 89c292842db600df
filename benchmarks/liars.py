"""Liars among people whose reports are indices: how much regret they cause, at worst.

A liar knows the plan, the open epoch and the action of their own ask, and may send any index. Over
the whole box a report tells one number, so a liar sends the largest, or the smallest, and what is
left to choose is where: liars lift what is near a *decoy* and press all else down. The worst decoy
is searched for; they can also press down what is near the best action, and lift the rest.

    .venv/bin/python benchmarks/liars.py                figures seen: docs/threat-model.md
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.agreement.plan import Plan
from discreet.arrays import Floats, Integers
from discreet.errors import ShortHorizon
from discreet.privacy.budget import LocalDP
from discreet.simulation.epochs import IndexReports, begin, play_study
from discreet.simulation.play import Setting, plan_for
from discreet.simulation.problems import find_problem
from discreet.simulation.worlds import World

#: What is near a decoy, in scaled units.
RADII = (0.15, 0.3, 0.6)


@dataclass(frozen=True, eq=False)
class Lie:
    """Lift what is within `radius` of `decoy`, press the rest down; the other way if `turned`."""

    decoy: Floats
    radius: float
    turned: bool = False

    def indices(self, points: Floats, size: int) -> Integers:
        """What liars at these actions send."""
        near = np.linalg.norm(points - self.decoy, axis=1) <= self.radius
        return np.where(near != self.turned, size - 1, 0)


class LyingReports(IndexReports):
    """Reports of people of whom a share lies, each by their own dice."""

    def __init__(self, plan: Plan, rng: np.random.Generator, share: float, lie: Lie) -> None:
        super().__init__(plan, rng)
        self._share, self._lie = share, lie

    def sent(self, points: Floats, indices: Integers) -> Integers:
        """What is sent in place of honest indices."""
        liars = self._rng.random(len(points)) < self._share
        return np.where(liars, self._lie.indices(points, self._epoch.indexed.cap.size), indices)


def regret(epsilon: float, share: float, lie: Lie, *, rounds: int, seed: int, run: int) -> float:
    """The regret of one run on camelback with this share of liars."""
    world = World.draw(find_problem("camelback"), seed=seed, run=run)
    setting = Setting(model="local", rounds=rounds, privacy=LocalDP(epsilon))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizon)
        plan = plan_for(world.problem, setting, world.decisions, f"liars {seed}.{run}")
    liars = LyingReports(plan, world.player, share, lie)
    found, _ = play_study(world, begin(plan), rounds, counting=liars)
    return float(found.sum())


def lies(best: Floats, decoys: int) -> list[Lie]:
    """Decoys that fill the box, and the best action pressed down."""
    side = np.linspace(0.1, 0.9, decoys)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    found = [Lie(decoy, radius) for decoy in grid for radius in RADII[:2]]
    return found + [Lie(best, radius, turned=True) for radius in RADII]


def worst(epsilon: float, share: float, options: Sequence[Lie], *, rounds: int, seed: int) -> Lie:
    """The lie that costs most in one run of a seed that is not shown."""
    costs = [regret(epsilon, share, lie, rounds=rounds, seed=seed, run=0) for lie in options]
    return options[int(np.argmax(costs))]


def main() -> None:
    """The table of docs/threat-model.md."""
    rounds, best = 10_000, np.array([0.5 - 0.0898 / 4, 0.5 + 0.7126 / 4])
    options = lies(best, 4)
    for epsilon in (4.0, 1.0):
        lie = worst(epsilon, 0.1, options, rounds=rounds, seed=900)
        place = f"{lie.decoy.round(2).tolist()} within {lie.radius}{', turned' * lie.turned}"
        for share in (0.0, 0.01, 0.05, 0.1):
            runs = [regret(epsilon, share, lie, rounds=rounds, seed=901, run=r) for r in range(6)]
            print(
                f"epsilon {epsilon:g}, {share:.0%}: {np.median(runs):.0f} {np.round(runs)} {place}"
            )


if __name__ == "__main__":
    main()
