"""What commands share: places to write to, progress, tables and numbers in words."""

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from discreet.errors import InvalidArgument
from discreet.experiments.problems import find_problem
from discreet.forecast import Estimate
from discreet.simulation import MakeProblem, Run, Setting, simulate
from discreet.study import Study


def check_picture(path: Path) -> None:
    """Refuse a figure of a kind that cannot be drawn before anything is played."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise InvalidArgument("figure", "a writable .png, .svg or .pdf", str(path))


def check_places(*paths: Path) -> None:
    """Refuse places that cannot be written before any work is done."""
    for path in paths:
        if not path.absolute().parent.is_dir():
            raise InvalidArgument("path", "a file in a folder that exists", str(path))


def beside(problem: str) -> MakeProblem:
    """A problem by name; module:name finds what lies beside the user."""
    if ":" in problem:
        sys.path.insert(0, str(Path.cwd()))
    return find_problem(problem)


def play(
    label: str, make_problem: MakeProblem, setting: Setting, *, runs: int, seed: int
) -> list[Run]:
    """Simulate runs one after the other under a progress bar on the error stream."""
    with rounds_progress() as bar:
        task = bar.add_task(label, total=runs * setting.rounds)
        return [
            simulate(
                make_problem, setting, seed=seed, run=run, advance=lambda n: bar.advance(task, n)
            )
            for run in range(runs)
        ]


def rounds_progress() -> Progress:
    """A bar of rounds on the error stream."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def report(study: Study) -> None:
    """Say what a study found and what it promises."""
    best = study.best()
    action = ", ".join(f"{name} = {value:.3f}" for name, value in best.action.items())
    low, high = best.interval
    typer.echo(f"Best action: {action}")
    typer.echo(f"Its mean reward: {best.mean:.3f} (95% interval {low:.3f} to {high:.3f})")
    typer.echo(study.guarantee)


def regret_table(results: Mapping[str, Mapping[str, Any]]) -> Table:
    """Regret in all and a round, with its standard error where there are several runs."""
    table = Table("", "rounds", "runs", "regret", "a round", "features", "ms a round")
    for label, result in results.items():
        error = result["regret_sem"]
        table.add_row(
            label,
            f"{result['rounds']:,}",
            str(result["runs"]),
            f"{result['regret_mean']:.1f}" + ("" if error is None else f" ± {error:.1f}"),
            f"{result['regret_mean'] / result['rounds']:.4f}",
            "" if result["features"] is None else str(result["features"]),
            f"{1000 * result['seconds_per_round']:.2f}",
        )
    return table


def rounded_up(bound: float) -> str:
    """A bound to one digit, never less than it is.

    >>> rounded_up(0.00093305), rounded_up(0.0)
    ('0.001', '0')
    """
    if bound == 0.0:
        return "0"
    unit = 10.0 ** math.floor(math.log10(bound))
    return f"{math.ceil(bound / unit) * unit:.1g}"


def give_or_take(estimate: Estimate) -> str:
    """A number with its standard error, to the digits that the error leaves.

    >>> give_or_take(Estimate(151.34, 6.57)), give_or_take(Estimate(0.10680, 0.0495))
    ('151±7', '0.11±0.05')
    """
    if not estimate.sem:
        return f"{estimate.mean:.3g}"
    digits = max(0, -math.floor(math.log10(estimate.sem)))
    return f"{estimate.mean:.{digits}f}±{estimate.sem:.{digits}f}"
