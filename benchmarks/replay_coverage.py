"""How often a replay is within two standard errors of the truth.

The truth is what the plan brings in the world itself, played directly for as many rounds. Every
repetition draws a new log from that world, by a policy whose propensities differ by action and
person, and replays it.

    python benchmarks/replay_coverage.py --world context --repetitions 100
"""

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from discreet import Box, Integer, JointDP, Plan, Simulation, SquaredExponential
from discreet.simulation.play import BanditPlayer
from discreet.simulation.replay import replay
from discreet.simulation.worlds import row_of

PEOPLE = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.8, 0.6, 0.4, 0.2], [0.3, 0.7, 0.6, 0.2], [0.1, 0.3, 0.5, 0.8]])
CHANCES = np.array([[0.15, 0.15, 0.3, 0.4], [0.4, 0.15, 0.3, 0.15], [0.3, 0.4, 0.15, 0.15]])


@dataclass(frozen=True)
class World:
    """Doses 0 to 3 for people of three ages, answered by yes or no; or for anyone alike."""

    context: bool
    rounds: int

    @property
    def plan(self) -> Plan:
        coordinates = {"dose": Integer(0, 3)}
        if self.context:
            coordinates["age"] = Integer(0, 2)
        return Plan(
            domain=Box(coordinates, context=["age"] if self.context else ()),
            kernel=SquaredExponential(0.7),
            privacy=JointDP(8.0, 1e-4),
            horizon=10 * self.rounds,
        )

    @property
    def people(self) -> np.ndarray:
        return PEOPLE if self.context else np.array([0.0, 1.0, 0.0])

    def draw_log(self, rows: int, rng: np.random.Generator) -> dict[str, object]:
        group = rng.choice(3, rows, p=self.people)
        dose = (rng.random((rows, 1)) > CHANCES[group].cumsum(axis=1)).sum(axis=1).clip(0, 3)
        columns = {
            "dose": dose,
            "propensity": CHANCES[group, dose],
            "reward": (rng.random(rows) < MEANS[group, dose]).astype(float),
        }
        return columns | ({"age": group} if self.context else {})

    def play(self, seed: int) -> tuple[float, float, float]:
        """The mean reward of a run, of its last tenth, and of what it recommends at the end."""
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([7, seed])))
        plan = self.plan
        player = BanditPlayer(plan, Simulation(int(rng.integers(2**63))))
        means = np.empty(self.rounds)
        for t in range(self.rounds):
            group = int(rng.choice(3, p=self.people))
            action = player.act({"age": group} if self.context else None)
            means[t] = MEANS[group, int(action[0])]  # of less noise than the answer, and alike
            player.hear(float(rng.random() < means[t]))
        player.bandit.finish()
        value = 0.0
        for group, share in enumerate(self.people):
            best = player.bandit.best(context={"age": group} if self.context else None)
            value += share * MEANS[group, int(row_of(plan.domain, best.action)[0])]
        return float(means.mean()), float(means[-math.ceil(self.rounds / 10) :].mean()), value


def play(world: World, seed: int) -> tuple[float, float, float]:
    return world.play(seed)


def repeat(world: World, rows: int, shuffles: int, seed: int) -> list[tuple[float, float]]:
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([11, seed])))
    found = replay(
        world.plan, world.draw_log(rows, rng), rounds=world.rounds, shuffles=shuffles, seed=seed
    )
    parts = (found.plan, found.late, found.recommended, found.logged, found.constant)
    return [(each.mean, each.sem) for each in parts]


def campaign(
    world: World, *, rows: int, shuffles: int, repetitions: int, direct: int, workers: int
) -> dict[str, tuple[float, float, float]]:
    """For each estimate: its coverage by two standard errors, its bias and that bias's error."""
    with ProcessPoolExecutor(workers) as pool:
        truths = np.array(list(pool.map(partial(play, world), range(direct), chunksize=8)))
        seeds = range(repetitions)
        found = np.array(list(pool.map(partial(repeat, world, rows, shuffles), seeds)))
    logged = logged_mean(world)
    constant = float((world.people @ MEANS).max())
    truth = np.array([*truths.mean(axis=0), logged, constant])
    names = ("plan", "late", "recommended", "logged", "constant")
    report = {}
    for i, name in enumerate(names):
        means, sems = found[:, i, 0], found[:, i, 1]
        error = truths[:, i].std(ddof=1) / math.sqrt(direct) if i < 3 else 0.0
        covered = float(np.mean(np.abs(means - truth[i]) <= 2.0 * sems))
        bias = means.mean() - truth[i]
        spread = math.hypot(means.std(ddof=1) / math.sqrt(repetitions), error)
        report[name] = (covered, float(bias), spread)
        print(
            f"{name:12} truth {truth[i]:.4f}±{error:.4f}  within 2 SE {covered:.0%} of "
            f"{repetitions}  bias {bias:+.4f}±{spread:.4f}  SE {sems.mean():.4f} "
            f"(spread {means.std(ddof=1):.4f})",
            flush=True,
        )
    return report


def logged_mean(world: World) -> float:
    """What the logging policy brings."""
    return float(world.people @ (CHANCES * MEANS).sum(axis=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", choices=("box", "context"), default="context")
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--rows", type=int, default=1600)
    parser.add_argument("--shuffles", type=int, default=8)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--direct", type=int, default=400)
    parser.add_argument("--workers", type=int, default=1)
    given = vars(parser.parse_args())
    world = World(given.pop("world") == "context", given.pop("rounds"))
    campaign(world, **given)
