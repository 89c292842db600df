"""How regret grows with the number of rounds, with a trusted privatizer and without one.

    python -m discreet.experiments.growth --runs 8

plays the synthetic problem at epsilon = 1 in both models. A default schedule does not depend on
the horizon, so one long study tells the regret after every shorter time; its runs are kept in a
table, and a second call adds only the ones that are missing. The growth of regret R(T) ~ T^a is
the least-squares slope of log R over the last octaves, R the mean over runs; its error is the
jackknife's, which leaves out one run at a time. The theory promises a = 1/2 for joint and
a = 3/4 for local privacy, up to logarithms (docs/errata.md).
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

from discreet import checks
from discreet.budget import JointDP, LocalDP, Privacy
from discreet.errors import InvalidArgument
from discreet.experiments.crowds import play_crowd
from discreet.experiments.problems import find_problem
from discreet.experiments.runs import read_runs, write_runs
from discreet.simulation import Model, Setting

Floats = NDArray[np.float64]

EPSILON, DELTA = 1.0, 0.1
#: Regret is read after 2^10, ..., 2^15 rounds, and its exponent fitted over the last of these.
OCTAVES = tuple(range(10, 16))
FITTED = 4
TABLE, FIGURE = Path("docs/data/growth.csv"), Path("docs/images/growth.png")
#: The exponents that the theory promises.
THEORY: dict[Model, float] = {"joint": 0.5, "local": 0.75}


@dataclass(frozen=True)
class Point:
    """The regret of one run after so many rounds."""

    model: Model
    epsilon: float
    delta: float
    seed: int
    run: int
    rounds: int
    regret: float


@dataclass(frozen=True)
class Growth:
    """Mean regret over runs with its standard error, and the exponent with its own."""

    model: Model
    rounds: tuple[int, ...]
    mean: tuple[float, ...]
    sem: tuple[float, ...]
    exponent: float
    error: float
    runs: int


def privacy_of(model: Model) -> Privacy:
    """What is promised in this model.

    >>> privacy_of("local")
    LocalDP(epsilon=1.0, delta=0.1, rounds_per_user=1)
    """
    return LocalDP(EPSILON, DELTA) if model == "local" else JointDP(EPSILON, DELTA)


def play_run(model: Model, *, seed: int, run: int, octaves: Sequence[int] = OCTAVES) -> list[Point]:
    """One study of 2^last rounds, read after each octave."""
    setting = Setting(model=model, rounds=1 << octaves[-1], privacy=privacy_of(model))
    regrets = play_crowd(find_problem("synthetic"), setting, seed=seed, run=run).regrets
    return [
        Point(model, EPSILON, DELTA, seed, run, 1 << k, float(regrets[: 1 << k].sum()))
        for k in octaves
    ]


def growth_of(points: Iterable[Point], model: Model, *, fitted: int = FITTED) -> Growth:
    """Means and exponent of one model; every run must have every number of rounds.

    >>> points = [Point("joint", 1, 0.1, 0, run, n, n**0.5) for run in (0, 1) for n in (4, 16, 64)]
    >>> found = growth_of(points, "joint", fitted=2)
    >>> round(found.exponent, 6), round(found.error, 6), found.runs
    (0.5, 0.0, 2)
    """
    own = [point for point in points if point.model == model]
    rounds = sorted({point.rounds for point in own})
    runs = sorted({(point.seed, point.run) for point in own})
    found = {(point.seed, point.run, point.rounds): point.regret for point in own}
    if len(runs) < 2 or len(found) != len(runs) * len(rounds) or len(rounds) < fitted:
        raise InvalidArgument("points", f"two whole runs or more of {model}, {fitted} octaves each")
    table = np.array([[found[*run, n] for n in rounds] for run in runs])
    left_out = [_slope(rounds, np.delete(table, i, axis=0), fitted) for i in range(len(runs))]
    spread = float(np.sum(np.square(np.array(left_out) - np.mean(left_out))))
    sem = table.std(axis=0, ddof=1) / np.sqrt(len(runs))
    return Growth(
        model=model,
        rounds=tuple(rounds),
        mean=tuple(table.mean(axis=0).tolist()),
        sem=tuple(sem.tolist()),
        exponent=_slope(rounds, table, fitted),
        error=float(np.sqrt((len(runs) - 1) / len(runs) * spread)),
        runs=len(runs),
    )


def _slope(rounds: Sequence[int], table: Floats, fitted: int) -> float:
    """The slope of log mean regret over the last octaves."""
    x: Floats = np.log(np.array(rounds[-fitted:], dtype=np.float64))
    y: Floats = np.log(table.mean(axis=0)[-fitted:])
    return float(np.dot(x - x.mean(), y) / np.sum(np.square(x - x.mean())))


def collect(
    path: Path,
    *,
    runs: int,
    seed: int,
    octaves: Sequence[int] = OCTAVES,
    heard: Callable[[str], None] = lambda words: None,
) -> list[Point]:
    """The points of all runs in both models, writing the table after each run that was missing."""
    points = read_runs(Point, path)
    present = {(point.model, point.seed, point.run, point.rounds) for point in points}
    for run in range(checks.count("runs", runs)):
        for model in THEORY:
            if all((model, seed, run, 1 << k) in present for k in octaves):
                continue
            points += play_run(model, seed=seed, run=run, octaves=octaves)
            write_runs(Point, path, sorted(points, key=astuple))
            heard(f"{model}, run {run}: regret {points[-1].regret:.0f} after {points[-1].rounds:,}")
    return points


def main(arguments: Sequence[str] | None = None) -> None:
    """Play what is missing, then write the table, the figure and two lines of exponents."""
    parser = argparse.ArgumentParser(prog="python -m discreet.experiments.growth")
    parser.add_argument("--runs", type=int, default=8, help="independent runs of each model")
    parser.add_argument("--seed", type=int, default=0, help="fixes problems, answers and noise")
    parser.add_argument("--table", type=Path, default=TABLE, help="where runs are kept")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="where the figure goes")
    given = parser.parse_args(arguments)
    from discreet.experiments.figures import growth_figure  # matplotlib is slow to import

    with threadpool_limits(1):
        points = collect(given.table, runs=given.runs, seed=given.seed, heard=_say)
    found = [growth_of(points, model) for model in THEORY]
    growth_figure(found, given.figure)
    for each in found:
        _say(
            f"{each.model}: regret {each.mean[-1]:.0f} ± {each.sem[-1]:.0f} after "
            f"{each.rounds[-1]:,} rounds, growing as T^({each.exponent:.3f} ± {each.error:.3f}) "
            f"over the last {FITTED} octaves ({each.runs} runs)"
        )


def _say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
