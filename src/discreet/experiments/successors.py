"""The paper's successors beside it: two ways that were published later, under the same promise.

`private_covariance` and `private_rewards` say what of them is theirs and what is ours. Regret is on
camelback, where no gap helps, and on the synthetic problem, whose people bring candidates. All keep
(epsilon, delta) for the same budget. They do not protect the same: `PROTECTED` says what.

    python -m discreet.experiments.successors

plays the constants that were tried, on seeds of their own.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from discreet.experiments.contenders import Played, Trial
from discreet.experiments.growth import DELTA, EPSILON, Growth, growth_of_way
from discreet.experiments.private_covariance import simulate_private_covariance
from discreet.experiments.private_rewards import Rewards, laplace_scale, simulate_private_rewards
from discreet.experiments.tables import head, line
from discreet.privacy.budget import GaussianPrivacy
from discreet.simulation.problems import find_problem

#: Regret is read after so many rounds, 2^k of them, on each problem; `discreet reproduce --quick`.
OCTAVES = {"camelback": tuple(range(12, 18)), "synthetic": tuple(range(8, 14))}
QUICK_OCTAVES = {"camelback": tuple(range(7, 12)), "synthetic": tuple(range(5, 10))}
LABELS = {
    "tree": "paper's, exact",
    "private covariance": "private covariance",
    "elimination": "elimination",
    "ours": "ours",
    "private rewards": "private rewards",
    "private rewards, medians": "private rewards, medians",
    "ours, local": "ours, local",
}
LOCAL = ("private rewards", "private rewards, medians", "ours, local")
#: What a way protects on camelback, where actions are public, and on the synthetic problem.
PROTECTED = {
    "camelback": dict.fromkeys(LABELS, "rewards"),
    "synthetic": {
        **dict.fromkeys(LABELS, "candidates and rewards"),
        "private rewards": "rewards alone",
        "private rewards, medians": "rewards alone",
    },
}
TUNING_SEED = 100
#: Deviations that were tried; groups of medians of means, with deviations.
DEVIATIONS = (0.25, 0.5, 1.0, 2.0)
GROUPED = ((1, 0.3), (1, 1.0), (1, 2.0), (3, 0.3), (3, 1.0), (5, 0.3), (5, 1.0))


def ways_of(problem: str) -> list[str]:
    """Who plays a problem: elimination needs public arms."""
    return [way for way in LABELS if way != "elimination" or problem == "camelback"]


def successor_trials(runs: int, *, quick: bool = False, seed: int = 0) -> Iterator[Trial]:
    """Runs of all ways on both problems, each as long as its last octave."""
    for problem, octaves in (QUICK_OCTAVES if quick else OCTAVES).items():
        for run, way in product(range(runs), ways_of(problem)):
            yield Trial(problem, way, EPSILON, DELTA, 1 << octaves[-1], seed, run)


def grown(rows: Sequence[Played]) -> dict[str, list[tuple[str, Growth]]]:
    """For each problem the ways and how their regret grows."""
    found: dict[str, list[tuple[str, Growth]]] = {}
    for problem in OCTAVES:
        own = [row for row in rows if row.problem == problem]
        full = own[0].rounds == 1 << OCTAVES[problem][-1]
        octaves = (OCTAVES if full else QUICK_OCTAVES)[problem]
        found[problem] = [
            (way, growth_of_way(own, way, LABELS[way], octaves=octaves)) for way in ways_of(problem)
        ]
    return found


def successor_table(rows: Sequence[Played]) -> list[str]:
    """Regret after each octave, by problem and model of trust, with what is protected."""
    lines: list[str] = []
    for problem, ways in grown(rows).items():
        rounds = ways[0][1].rounds
        lines += ["", *head([problem, "trust", "protects", *(f"T = {n:,}" for n in rounds)])]
        for way, each in ways:
            cells = [f"{m:.0f} ± {s:.0f}" for m, s in zip(each.mean, each.sem, strict=True)]
            trust = "local" if way in LOCAL else "joint"
            lines.append(line([each.model, trust, PROTECTED[problem][way], *cells]))
    return lines[1:]


# -- constants, tried on other seeds


@dataclass(frozen=True)
class Tried:
    """One constant of a way on a problem, and what it cost on average."""

    problem: str
    way: str
    regret: float
    error: float


def tried(problem: str, rounds: int, runs: int) -> Iterator[Tried]:
    """Every constant of a small grid, on the tuning seed."""
    make, mu = find_problem(problem), GaussianPrivacy.of(EPSILON, DELTA).mu
    seeds = {"rounds": rounds, "seed": TUNING_SEED}
    for beta in DEVIATIONS:
        costs = [
            simulate_private_covariance(make, mu=mu, beta=beta, run=run, **seeds).sum()
            for run in range(runs)
        ]
        yield _summed(problem, f"private covariance, {beta:g} deviations", costs)
    for groups, beta in GROUPED:
        way = Rewards(laplace_scale(EPSILON, DELTA), groups, beta)
        costs = [simulate_private_rewards(make, way, run=run, **seeds).sum() for run in range(runs)]
        yield _summed(problem, f"private rewards, {groups} groups, {beta:g} deviations", costs)


def _summed(problem: str, way: str, costs: Sequence[float]) -> Tried:
    values = np.array(costs)
    error = values.std(ddof=1) / np.sqrt(len(values))
    return Tried(problem, way, float(values.mean()), float(error))


if __name__ == "__main__":
    for where, length in (("camelback", 1 << 15), ("synthetic", 1 << 13)):
        for each in tried(where, length, 6):
            sys.stdout.write(f"{where}: {each.way}: {each.regret:.0f} ± {each.error:.0f}\n")
            sys.stdout.flush()
