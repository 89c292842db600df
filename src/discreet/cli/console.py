"""What commands share: places to write to, progress, tables and numbers in words."""

import math
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from discreet.errors import DiscreetError, InvalidArgument

if TYPE_CHECKING:  # heavy: loaded when used
    from discreet.learning.study import Study
    from discreet.simulation.forecast_report import Estimate
    from discreet.simulation.play import Run, Setting
    from discreet.simulation.worlds import MakeProblem

# -- places


def check_picture(path: Path) -> None:
    """Refuse a figure that cannot be drawn or written before anything is played."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidArgument("figure", "a writable .png, .svg or .pdf", str(path))
    check_places(path)


def check_places(*paths: Path) -> None:
    """Refuse places that cannot be written before any work is done."""
    for path in paths:
        folder = path.absolute().parent
        if not folder.is_dir():
            raise InvalidArgument("path", "a file in a folder that exists", str(path))
        if path.is_dir():
            raise InvalidArgument("path", "a file and not a folder", str(path))
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise InvalidArgument("path", "a place that can be written", str(path))


# -- problems and progress


def beside(problem: str) -> "MakeProblem":
    """A problem by name; module:name finds what lies beside the user."""
    from discreet.simulation.problems import find_problem

    if ":" in problem:
        sys.path.insert(0, str(Path.cwd()))
    with blamed(problem):
        return find_problem(problem)


@contextmanager
def blamed(problem: str) -> Generator[None]:
    """Whatever a user's own problem raises is said in one line."""
    try:
        yield
    except DiscreetError:
        raise
    except (Exception, SystemExit) as error:
        if ":" not in problem:
            raise
        words = f"a problem that can be played ({type(error).__name__}: {error})"
        raise InvalidArgument("problem", words, problem) from error


def play(
    label: str, make_problem: "MakeProblem", setting: "Setting", *, runs: int, seed: int
) -> "list[Run]":
    """Simulate runs one after the other under a progress bar on the error stream."""
    from discreet.simulation.play import simulate

    with rounds_progress() as bar, blamed(label):
        task = bar.add_task(label, total=runs * setting.rounds)
        return [
            simulate(
                make_problem, setting, seed=seed, run=run, advance=lambda n: bar.advance(task, n)
            )
            for run in range(runs)
        ]


@contextmanager
def rounds_progress(units: str = "rounds") -> Generator[Progress]:
    """A bar of rounds, or of something else, on the error stream."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(units),
        TimeRemainingColumn(),
    )
    with shown(Progress(*columns, console=Console(stderr=True))) as bar:
        yield bar


@contextmanager
def shown(bar: Progress) -> Generator[Progress]:
    """A bar that leaves nothing behind when the work fails: then the error says it all."""
    bar.start()
    try:
        yield bar
    except BaseException:
        bar.live.transient = True
        bar.live.stop()
        raise
    bar.stop()


# -- words and tables


def report(study: "Study") -> None:
    """Say what a study found and what it promises."""
    best = study.best()
    low, high = best.interval
    typer.echo(f"Best action: {in_words(best.action)}")
    typer.echo(f"Its mean reward: {best.mean:.3f} (95% interval {low:.3f} to {high:.3f})")
    typer.echo(study.guarantee)


def in_words(action: Mapping[str, float | int | str]) -> str:
    """An action on one line.

    >>> in_words({"dose": 2.50001, "pills": 3, "arm": "b"})
    'dose = 2.500, pills = 3, arm = b'
    """
    values = (f"{value:.3f}" if isinstance(value, float) else value for value in action.values())
    return ", ".join(f"{name} = {value}" for name, value in zip(action, values, strict=True))


def print_whole(table: Table) -> None:
    """Print a table as wide as it is: numbers that do not fit a narrow terminal are not cut."""
    console = Console()
    needed = Measurement.get(console, console.options.update(max_width=1000), table).maximum
    Console(width=max(console.width, needed)).print(table)


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


def rounded_up(bound: float, digits: int = 1) -> str:
    """A bound to so many digits, never less than it is.

    >>> rounded_up(0.00093305), rounded_up(0.0), rounded_up(6.1301, 3), rounded_up(0.1, 3)
    ('0.001', '0', '6.14', '0.1')
    """
    up = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(bound)))
    return f"{float(up):.{digits}g}"


def give_or_take(estimate: "Estimate") -> str:
    """A number with its standard error, to the digits that the error leaves.

    >>> from discreet.simulation.forecast_report import Estimate
    >>> give_or_take(Estimate(151.34, 6.57)), give_or_take(Estimate(0.10680, 0.0495))
    ('151±7', '0.11±0.05')
    """
    if not estimate.sem:
        return f"{estimate.mean:.3g}"
    digits = max(0, -math.floor(math.log10(estimate.sem)))
    return f"{estimate.mean:.{digits}f}±{estimate.sem:.{digits}f}"
