"""How often a replay is within two standard errors of the truth.

The truth is what the plan brings in the world itself, played directly for as many rounds. Every
repetition draws a new log from that world, by a policy whose propensities differ by action and
person, and replays it.

    python benchmarks/replay_coverage.py --world context --repetitions 100
"""

import argparse
import math
from dataclasses import dataclass

import numpy as np

from discreet import Box, Integer, JointDP, Plan, Simulation, SquaredExponential
from discreet.simulation.play import BanditPlayer
from discreet.simulation.replay import replay

PEOPLE = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.8, 0.6, 0.4, 0.2], [0.3, 0.7, 0.6, 0.2], [0.1, 0.3, 0.5, 0.8]])
CHANCES = np.array([[0.15, 0.15, 0.3, 0.4], [0.4, 0.15, 0.3, 0.15], [0.3, 0.4, 0.15, 0.15]])


@dataclass(frozen=True)
class World:
    """Doses 0 to 3 for people of three ages, answered by yes or no; or for those of one age."""

    context: bool
    rounds: int

    @property
    def plan(self) -> Plan:
        coordinates = {"dose": Integer(0, 3)} | ({"age": Integer(0, 2)} if self.context else {})
        return Plan(
            domain=Box(coordinates, context=["age"] if self.context else ()),
            kernel=SquaredExponential(0.7),
            privacy=JointDP(8.0, 1e-4),
            horizon=10 * self.rounds,
        )

    @property
    def people(self) -> np.ndarray:
        return PEOPLE if self.context else np.array([0.0, 1.0, 0.0])

    @property
    def logged(self) -> float:
        """What the logging policy brings."""
        return float(self.people @ (CHANCES * MEANS).sum(axis=1))

    def draw_log(self, rows: int, rng: np.random.Generator) -> dict[str, object]:
        age = rng.choice(3, rows, p=self.people)
        dose = (rng.random((rows, 1)) > CHANCES[age].cumsum(axis=1)).sum(axis=1).clip(0, 3)
        answers = (rng.random(rows) < MEANS[age, dose]).astype(float)
        return {"dose": dose, "age": age, "propensity": CHANCES[age, dose], "reward": answers}

    def play(self, seed: int) -> float:
        """The mean reward of one run of the plan."""
        rng = generator(7, seed)
        player = BanditPlayer(self.plan, Simulation(int(rng.integers(2**63))))
        means: list[float] = []  # of less noise than the answers, and alike
        for _ in range(self.rounds):
            age = int(rng.choice(3, p=self.people))
            action = player.act({"age": age} if self.context else None)
            means.append(MEANS[age, int(action[0])])
            player.hear(float(rng.random() < means[-1]))
        return float(np.mean(means))


def generator(*seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))


def campaign(world: World, *, rows: int, shuffles: int, repetitions: int, direct: int) -> None:
    """Print coverage, bias, the mean standard error and the true spread, of plan and gain."""
    played = np.array([world.play(seed) for seed in range(direct)])
    truth, error = played.mean(), played.std(ddof=1) / math.sqrt(direct)
    logs = (world.draw_log(rows, generator(11, n)) for n in range(repetitions))
    found = [
        replay(world.plan, log, rounds=world.rounds, shuffles=shuffles, seed=n)
        for n, log in enumerate(logs)
    ]
    for name, true in (("plan", truth), ("gain", truth - world.logged)):
        each = [getattr(one, name) for one in found]
        means, sems = np.array([(one.mean, one.sem) for one in each]).T
        spread = means.std(ddof=1)
        off = math.hypot(spread / math.sqrt(repetitions), error)
        print(
            f"{name}: truth {true:.4f}±{error:.4f}, within 2 SE "
            f"{np.sum(np.abs(means - true) <= 2.0 * sems)} of {repetitions}, bias "
            f"{means.mean() - true:+.4f}±{off:.4f}, SE {sems.mean():.4f}, spread {spread:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", choices=("box", "context"), default="context")
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--rows", type=int, default=1600)
    parser.add_argument("--shuffles", type=int, default=8)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--direct", type=int, default=400)
    given = vars(parser.parse_args())
    campaign(World(given.pop("world") == "context", given.pop("rounds")), **given)
