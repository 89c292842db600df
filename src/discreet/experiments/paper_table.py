"""One table for the paper's algorithm: its noise as printed, exact and better, and our default.

The synthetic problem, in the same worlds for every row. Writes one line for each run, and prints
the table and how regret grows as privacy does. Runs that the file has already are not played again.

    python -m discreet.experiments.paper_table docs/data/paper-table.csv
"""

import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.budget import GaussianPrivacy, JointDP
from discreet.experiments.as_printed import Form, Printed, simulate_printed
from discreet.experiments.prefix import Confidence, simulate_prefix
from discreet.experiments.problems import find_problem
from discreet.experiments.runs import read_runs, write_runs
from discreet.noise import BLT, SquareRoot, Strategy, Tree
from discreet.simulation import Setting, simulate, standard_error

Floats = NDArray[np.float64]
Noise = Literal[
    "as printed (std)",
    "as printed (variance)",
    "tree",
    "square root",
    "BLT",
    "independent epochs",
    "none: uniform play",
]
Choice = Confidence | Literal[""]

ROUNDS, RUNS, DELTA = 1024, 20, 0.1
#: The levels at which slopes are measured; the whole table has two of them.
EPSILONS = (0.1, 1.0, 10.0)
WHOLE = (0.1, 1.0)
#: The rows whose growth with privacy is measured.
SLOPES = (
    ("tree", "practical"),
    ("BLT", "practical"),
    ("BLT", "theory"),
    ("independent epochs", ""),
)
FORMS: dict[Noise, Form] = {"as printed (std)": "std", "as printed (variance)": "variance"}


@dataclass(frozen=True)
class Cell:
    """What is played: a noise, a confidence (where there is a choice), a level of privacy."""

    noise: Noise
    confidence: Choice
    epsilon: float


@dataclass(frozen=True)
class Row:
    """One run, as a line of the file."""

    noise: str
    confidence: str
    epsilon: float
    delta: float
    rounds: int
    run: int
    regret: float


def cells() -> Iterator[Cell]:
    """Every cell: all of them at two levels, those of the slopes at each."""
    both: tuple[Choice, ...] = ("practical", "theory")
    for epsilon in EPSILONS:
        for noise in get_args(Noise):
            plain = noise in ("independent epochs", "none: uniform play")
            for confidence in ("",) if plain else both:
                if epsilon in WHOLE or (noise, confidence) in SLOPES:
                    yield Cell(noise, confidence, epsilon)


def play(cell: Cell, run: int, rounds: int = ROUNDS) -> Row:
    """One run of one cell."""
    problem, noise = find_problem("synthetic"), cell.noise
    if noise == "none: uniform play":
        found = simulate(problem, Setting("random", rounds), seed=0, run=run)
    elif noise == "independent epochs":
        setting = Setting("joint", rounds, privacy=JointDP(cell.epsilon, DELTA))
        found = simulate(problem, setting, seed=0, run=run)
    elif noise in FORMS:
        printed = Printed(FORMS[noise], alpha=cell.epsilon, beta=DELTA, horizon=rounds)
        confidence = cell.confidence or "practical"
        found = simulate_printed(problem, printed, seed=0, run=run, confidence=confidence)
    else:
        found = simulate_prefix(
            problem,
            strategy=_strategy(noise, rounds),
            privacy_mu=GaussianPrivacy.of(cell.epsilon, DELTA).mu,
            rounds=rounds,
            seed=0,
            run=run,
            confidence=cell.confidence or "practical",
        )
    regret = float(found.regrets.sum())
    return Row(noise, cell.confidence, cell.epsilon, DELTA, rounds, run, round(regret, 4))


def table(rows: Iterable[Row]) -> list[str]:
    """Markdown: mean regret, its standard error and, in brackets, the number of runs."""
    found = _collected(rows)
    kinds = list(dict.fromkeys(key[:2] for key in found))
    levels = sorted({key[2] for key in found}, reverse=True)
    lines = [
        "| noise | confidence | " + " | ".join(f"epsilon = {level:g}" for level in levels) + " |",
        "|---|---|" + "---|" * len(levels),
    ]
    for noise, confidence in sorted(kinds, key=lambda kind: get_args(Noise).index(kind[0])):
        runs = [found.get((noise, confidence, level), {}) for level in levels]
        words = [f"{_words(np.array([*r.values()]))} ({len(r)})" if r else "" for r in runs]
        lines.append(f"| {noise} | {confidence} | " + " | ".join(words) + " |")
    return lines


def slopes(rows: Iterable[Row]) -> list[str]:
    """How log regret falls with log epsilon, by least squares; the paper predicts -1/2."""
    found = _collected(rows)
    lines = ["| noise | confidence | slope |", "|---|---|---|"]
    for noise, confidence in SLOPES:
        levels = sorted(key[2] for key in found if key[:2] == (noise, confidence))
        if len(levels) < 2:
            continue
        runs = [found[noise, confidence, level] for level in levels]
        common = sorted(set[int].intersection(*map(set[int], runs)))
        logs = np.log(np.array([[level[run] for run in common] for level in runs]))
        x = np.log(levels) - np.mean(np.log(levels))
        each: Floats = x @ logs / (x @ x)  # a slope for each run: all levels share its world
        lines.append(f"| {noise} | {confidence} | {_words(each, digits=2)} ({len(common)}) |")
    return lines


def main(path: Path, workers: int = 2) -> None:
    """Play what the file does not have, write it down run by run, print the tables."""
    rows = read_runs(Row, path)
    done = {(row.noise, row.confidence, row.epsilon, row.run) for row in rows}
    # Run by run, so that a table that is stopped early compares the same worlds.
    wanted = [(cell, run) for run in range(RUNS) for cell in cells()]
    jobs = [(cell, run) for cell, run in wanted if (*astuple(cell), run) not in done]
    with ProcessPoolExecutor(workers) as pool:
        for job in as_completed([pool.submit(play, cell, run) for cell, run in jobs]):
            rows.append(job.result())
            ordered = sorted(rows, key=lambda r: (r.epsilon, r.noise, r.confidence, r.run))
            write_runs(Row, path, ordered)
    sys.stdout.write("\n".join([*table(rows), "", *slopes(rows), ""]))


def _strategy(noise: Noise, rounds: int) -> Strategy:
    if noise == "BLT":
        return BLT.fit(rounds)
    return Tree() if noise == "tree" else SquareRoot()


def _collected(rows: Iterable[Row]) -> dict[tuple[str, str, float], dict[int, float]]:
    """The regret of each run, by cell."""
    found: dict[tuple[str, str, float], dict[int, float]] = {}
    for row in rows:
        found.setdefault((row.noise, row.confidence, row.epsilon), {})[row.run] = row.regret
    return found


def _words(values: Floats, digits: int = 0) -> str:
    error = standard_error(values)
    spread = "" if error is None else f" ± {error:.{digits}f}"
    return f"{values.mean():.{digits}f}{spread}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
