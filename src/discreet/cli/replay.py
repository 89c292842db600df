"""`discreet replay`: a plan on a team's own past experiment."""

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from discreet.cli.choices import AsJson, Changes, read_changes
from discreet.cli.console import give_or_take, in_words, print_whole, progress_of
from discreet.errors import LargeDelta

if TYPE_CHECKING:  # heavy: loaded when used
    from discreet.simulation.replay_report import Replay


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
    floor: Annotated[
        float | None,
        typer.Option(help="The least propensity of the logging policy.  [the least in the log]"),
    ] = None,
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
    from discreet.simulation.log import Log
    from discreet.simulation.replay import replay_log

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeDelta)  # nobody is asked anything here
        study = read_plan(plan, read_changes(changes))
    read = Log.read(study, log, floor)
    with progress_of("rows") as bar:
        task = bar.add_task("replay", total=shuffles * len(read))
        found = replay_log(
            read,
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
    """The plan, and what stands beside it."""
    of_all = "" if found.horizon is None else f" of {found.horizon:,}"
    runs = sum(found.runs) / len(found.runs)
    table = Table(
        title=f"{found.rounds:,}{of_all} rounds on a log of {found.rows:,} rows",
        caption=f"{found.shuffles} shuffles, {runs:.1f} complete runs in each; least propensity "
        f"{found.floor:.2g}.\nMean reward a round, ± one standard error.",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("")
    table.add_column("reward", justify="right", no_wrap=True)
    table.add_row("the plan", give_or_take(found.plan))
    table.add_row("the plan, last tenth of a run", give_or_take(found.late))
    if found.recommended is not None:
        table.add_row("what it recommends at the end", give_or_take(found.recommended))
    table.add_row("the log", give_or_take(found.logged))
    table.add_row("the plan minus the log", give_or_take(found.gain))
    if found.constant is not None and found.constant_action is not None:
        label = f"everyone gets {in_words(found.constant_action)}"
        table.add_row(label, give_or_take(found.constant))
    return table
