"""What else one could do at the same privacy: the table behind the default.

    python -m discreet.experiments.alternatives docs/data/alternatives.csv

Every way plays the same worlds. A finished run is a line of the CSV at once and is not played
again: stop and go on as you like. `--table` prints mean, standard error and worst run instead.
"""

import argparse
import itertools
import math
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from discreet import epoch
from discreet.budget import GaussianPrivacy, JointDP
from discreet.encodings import EncodingChoice
from discreet.experiments.prefix import release_times, simulate_prefix
from discreet.experiments.problems import find_problem
from discreet.experiments.runs import read_runs, write_runs
from discreet.noise import BLT, SquareRoot, Strategy, Tree
from discreet.simulation import Setting, simulate, standard_error

DELTA = 0.1
#: Prefix sums are looked at when this much was added: as good as every round, and far cheaper.
EVERY, GROWTH = 5, 1.1
OURS: dict[str, EncodingChoice] = {"ours": "auto", "fourier": "fourier", "gram": "gram"}
PREFIX = ("prefix, tree", "prefix, square root", "prefix, BLT")
#: Residuals are clipped at the whole reward range, however well they are predicted.
WIDE = "fixed width"


@dataclass(frozen=True)
class Cell:
    """One run of one way."""

    problem: str
    way: str
    epsilon: float
    rounds: int
    seed: int
    run: int


@dataclass(frozen=True)
class Result(Cell):
    """What it cost."""

    regret: float


def cells(seed: int, runs: int) -> Iterator[Cell]:
    """All that is compared: ways on synthetic over epsilon and T, encodings on camelback."""
    ways = ("ours", "gram", *PREFIX)
    for way, epsilon, run in itertools.product(ways, (10.0, 1.0, 0.1), range(runs)):
        yield Cell("synthetic", way, epsilon, 1024, seed, run)
    for way, run in itertools.product(ways, range(runs)):
        yield Cell("synthetic", way, 1.0, 4096, seed, run)
    for way, epsilon, run in itertools.product(
        ("ours", "fourier", "gram", WIDE), (10.0, 1.0, 0.1), range(runs)
    ):
        yield Cell("camelback", way, epsilon, 10_000, seed, run)


def play(cell: Cell) -> Result:
    """The regret of one cell."""
    problem = find_problem(cell.problem)
    if cell.way in PREFIX:
        regrets = simulate_prefix(
            problem,
            strategy=_strategy(cell),
            privacy_mu=GaussianPrivacy.of(cell.epsilon, DELTA).mu,
            rounds=cell.rounds,
            seed=cell.seed,
            run=cell.run,
            every=EVERY,
            growth=GROWTH,
        ).regrets
    else:
        setting = Setting(
            model="joint",
            rounds=cell.rounds,
            encoding=OURS.get(cell.way, "auto"),
            privacy=JointDP(cell.epsilon, DELTA),
        )
        default = epoch.WIDTH_IN_STDS
        epoch.WIDTH_IN_STDS = math.inf if cell.way == WIDE else default
        try:
            regrets = simulate(problem, setting, seed=cell.seed, run=cell.run).regrets
        finally:
            epoch.WIDTH_IN_STDS = default
    return Result(**asdict(cell), regret=round(float(regrets.sum()), 3))


def _strategy(cell: Cell) -> Strategy:
    releases = len(release_times(cell.rounds, every=EVERY, growth=GROWTH))
    kinds = {PREFIX[0]: Tree, PREFIX[1]: SquareRoot, PREFIX[2]: lambda: BLT.fit(releases)}
    return kinds[cell.way]()


def run(path: Path, wanted: Iterable[Cell], *, processes: int) -> None:
    """Play what the file does not hold yet; every run is written when it is finished."""
    results = read_runs(Result, path)
    done = {replace(each, regret=0.0) for each in results}
    missing = [cell for cell in wanted if Result(**asdict(cell), regret=0.0) not in done]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for count, result in enumerate(pool.map(play, missing), start=1):
            results.append(result)
            write_runs(Result, path, results)
            _say(f"{count} of {len(missing)}: {result}")


def table(results: list[Result]) -> str:
    """Mean regret with its standard error and the worst run, as Markdown."""
    lines = [
        "| problem | T | epsilon | way | runs | regret | worst |",
        "|---|---|---|---|---|---|---|",
    ]
    kinds = dict.fromkeys((r.problem, r.rounds, r.epsilon, r.way) for r in results)
    for problem, rounds, epsilon, way in kinds:
        found = np.array(
            [
                each.regret
                for each in results
                if (each.problem, each.rounds, each.epsilon, each.way)
                == (problem, rounds, epsilon, way)
            ]
        )
        error = standard_error(found) or math.nan
        lines.append(
            f"| {problem} | {rounds:,} | {epsilon:g} | {way} | {len(found)} "
            f"| {found.mean():.0f} ± {error:.0f} | {found.max():.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """The command of the module's docstring."""
    parser = argparse.ArgumentParser(description="Compare ways to learn at the same privacy.")
    parser.add_argument("path", type=Path, help="the CSV to continue")
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--table", action="store_true", help="print what the file holds, play nothing"
    )
    options = parser.parse_args()
    if not options.table:
        run(options.path, cells(options.seed, options.runs), processes=options.processes)
    _say(table(read_runs(Result, options.path)))


def _say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
