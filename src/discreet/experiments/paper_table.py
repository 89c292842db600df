"""One table for the paper's algorithm: its noise as printed, exact and better, and our default.

The synthetic problem, in the same worlds for every row. Writes one line for each run, and prints
the table and how regret grows as privacy does. Runs that the file has already are not played again.

    python -m discreet.experiments.paper_table docs/data/paper-table.csv
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from discreet.arrays import Floats
from discreet.experiments.contenders import Played, Trial, play
from discreet.experiments.paper import BETA, FIGURE_ROUNDS, YARDSTICK
from discreet.experiments.sweep import said, sweep
from discreet.experiments.tables import cell, head, in_words, line

RUNS = 20
NOISES = ("as printed, std", "as printed", "tree", "square root", "BLT")
WAYS = (*(f"{noise}{rule}" for noise in NOISES for rule in ("", ", as proven")), "ours")
#: The ways whose growth with privacy is measured, at three levels; the whole table has two.
SLOPES = ("tree", "BLT", "BLT, as proven", "ours")
EPSILONS, WHOLE = (0.1, 1.0, 10.0), (0.1, 1.0)


def trials(runs: int = RUNS, rounds: int = FIGURE_ROUNDS) -> Iterator[Trial]:
    """Every way at two levels, those of the slopes at each; run by run."""
    for run, epsilon, way in product(range(runs), EPSILONS, (*WAYS, YARDSTICK)):
        if epsilon in WHOLE or way in SLOPES:
            yield Trial("synthetic", way, epsilon, BETA, rounds, 0, run)


def table(rows: Iterable[Played]) -> list[str]:
    """Markdown: mean regret, its standard error and, in brackets, the number of runs."""
    found = _collected(rows)
    levels = sorted({level for _, level in found}, reverse=True)
    lines = head(["way", *(f"epsilon = {level:g}" for level in levels)])
    for way in (*WAYS, YARDSTICK):
        runs = [found.get((way, level), {}) for level in levels]
        if any(runs):
            lines.append(line([way, *(cell([*r.values()]) if r else "" for r in runs)]))
    return lines


def slopes(rows: Iterable[Played]) -> list[str]:
    """How log regret falls with log epsilon, by least squares; the paper predicts -1/2."""
    found = _collected(rows)
    lines = head(["way", "slope"])
    for way in SLOPES:
        levels = sorted(level for name, level in found if name == way)
        if len(levels) < 2:
            continue
        runs = [found[way, level] for level in levels]
        common = sorted(set[int].intersection(*map(set[int], runs)))
        logs = np.log(np.array([[level[run] for run in common] for level in runs]))
        x = np.log(levels) - np.mean(np.log(levels))
        each: Floats = x @ logs / (x @ x)  # a slope for each run: all levels share its world
        lines.append(line([way, f"{in_words(each.tolist(), digits=2)} ({len(common)})"]))
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """The command of the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m discreet.experiments.paper_table")
    parser.add_argument("path", type=Path, help="the CSV to continue")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args(arguments)
    wanted = list(trials(given.runs))
    rows = sweep(Played, given.path, wanted, play, workers=given.workers, heard=said)
    sys.stdout.write("\n".join([*table(rows), "", *slopes(rows), ""]))


def _collected(rows: Iterable[Played]) -> dict[tuple[str, float], dict[int, float]]:
    """The regret of each run, by way and level."""
    found: dict[tuple[str, float], dict[int, float]] = {}
    for row in rows:
        found.setdefault((row.way, row.epsilon), {})[row.run] = row.regret
    return found


if __name__ == "__main__":
    main()
