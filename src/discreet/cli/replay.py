"""`discreet replay`: a plan on a team's own past experiment."""

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from discreet.cli.choices import AsJson, Changes, read_changes
from discreet.cli.console import give_or_take, print_whole, rounds_progress
from discreet.errors import LargeDelta

if TYPE_CHECKING:  # heavy: loaded when used
    from discreet.simulation.replay import Replay


def replay_command(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="A CSV file: the coordinates of the plan by name, propensity and reward.",
        ),
    ],
    plan: Annotated[
        Path, typer.Option("--plan", metavar="FILE", help="A plan in TOML, by the names of Plan.")
    ],
    changes: Changes = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rounds of a run.  [the plan's horizon, or as many as fit twice into the log]",
        ),
    ] = None,
    shuffles: Annotated[
        int, typer.Option(min=1, help="Random orders of the log, each cut into runs.")
    ] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Fixes orders and noise; not private.")] = 0,
    as_json: AsJson = False,
) -> None:
    """What a plan would have brought in an experiment that is over, from its log.

    A row is one person: context, logged action, the probability that it was given, and the reward.
    Rows on which the plan agrees with the log become its rounds, so that what it earns is unbiased.
    Actions must be integers or categories. Nothing that is printed is private.

    Example: discreet replay --plan docs/examples/replay.toml log.csv
    """
    from discreet.plan_file import read_plan
    from discreet.simulation.replay import replay

    with warnings.catch_warnings(action="ignore", category=LargeDelta):  # nobody is asked anything
        study = read_plan(plan, read_changes(changes))
    with rounds_progress("shuffles") as bar:
        task = bar.add_task("replay", total=shuffles)
        found = replay(
            study,
            log,
            rounds=rounds,
            shuffles=shuffles,
            seed=seed,
            advance=lambda n: bar.advance(task, n),
        )
    if as_json:
        typer.echo(json.dumps({"plan_file": str(plan), "log": str(log), **found.to_dict()}))
        return
    print_whole(replay_table(found))
    typer.echo(found.advice)


def replay_table(found: "Replay") -> Table:
    """The plan beside the log."""
    of_all = "" if found.horizon is None else f" of {found.horizon:,}"
    runs = sum(found.runs) / len(found.runs)
    table = Table(
        "",
        Column("reward a round", justify="right"),
        title=f"{found.rounds:,}{of_all} rounds on a log of {found.rows:,} rows",
        caption=f"{len(found.runs)} shuffles, {runs:.1f} complete runs in each; "
        f"least propensity {found.least_propensity:.2g}",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_row("the plan", give_or_take(found.plan))
    table.add_row("the log", give_or_take(found.logged))
    table.add_row("the plan minus the log", give_or_take(found.gain))
    return table
