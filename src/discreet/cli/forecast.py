"""`discreet forecast`: what a study will cost and learn, before any data."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from discreet.budget import LocalDP, NonPrivate
from discreet.cli.console import (
    beside,
    check_picture,
    check_places,
    give_or_take,
    rounded_up,
    rounds_progress,
)
from discreet.domain import Box
from discreet.errors import InvalidArgument, LargeDelta
from discreet.experiments.problems import PROBLEMS
from discreet.forecast import Forecast, Outlook, forecast
from discreet.kernels import SquaredExponential
from discreet.plan import Plan
from discreet.simulation import Setting, kind_of, plan_for


def forecast_command(
    problem: Annotated[
        str | None,
        typer.Option(help=f"Domain, kernel and range of {', '.join(PROBLEMS)}, or module:name."),
    ] = None,
    dimension: Annotated[
        int | None, typer.Option(min=1, help="Without --problem: coordinates of a box.  [2]")
    ] = None,
    lengthscale: Annotated[
        float | None,
        typer.Option(help="Without --problem: of the kernel, the box having side 1.  [0.25]"),
    ] = None,
    rewards: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="Without --problem: the range of rewards.  [0 1]"),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(min=1, help="Each user brings so many actions to choose from; else any."),
    ] = None,
    model: Annotated[
        Literal["joint", "local"],
        typer.Option(help="joint: with a trusted privatizer; local: noise on every report."),
    ] = "joint",
    epsilon: Annotated[
        list[float] | None, typer.Option(help="A level to compare; repeat it.  [0.1, 1, 10]")
    ] = None,
    delta: Annotated[float, typer.Option(help="The delta of every level.")] = 1e-5,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the study.")] = 1000,
    functions: Annotated[
        int, typer.Option(min=1, help="Functions drawn from the plan's prior, for error bars.")
    ] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Fixes functions, answers and noise.")] = 0,
    figure: Annotated[Path, typer.Option(help="Where to write the figure.")] = Path("forecast.png"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """What a study will cost and learn at each epsilon, before any data: to choose epsilon.

    Example: discreet forecast --dimension 1 --lengthscale 0.3 --epsilon 0.5 --epsilon 5
    """
    check_places(figure)
    check_picture(figure)
    plan = forecast_plan(problem, dimension, lengthscale, rewards, candidates, rounds)
    levels = set(epsilon or (0.1, 1.0, 10.0))
    if model == "local":
        plan = under_local(plan, max(levels), delta)
    with rounds_progress() as bar:
        task = bar.add_task("forecast", total=(len(levels) + 2) * functions * rounds)
        found = forecast(
            plan,
            levels,
            delta=delta,
            functions=functions,
            candidates=candidates or 25,
            seed=seed,
            advance=lambda n: bar.advance(task, n),
        )
    show_forecast(found, problem, figure, as_json=as_json)


def show_forecast(found: Forecast, problem: str | None, figure: Path, *, as_json: bool) -> None:
    """The figure, and the table with its advice or one JSON object."""
    from discreet.experiments.figures import forecast_figure  # matplotlib is slow to import

    forecast_figure(found, figure)
    if as_json:
        typer.echo(json.dumps({"problem": problem, **found.to_dict(), "figure": str(figure)}))
        return
    Console().print(forecast_table(found))
    typer.echo(found.advice)
    typer.echo(f"Figure: {figure}")


def forecast_plan(
    problem: str | None,
    dimension: int | None,
    lengthscale: float | None,
    rewards: tuple[float, float] | None,
    candidates: int | None,
    rounds: int,
) -> Plan:
    """The plan of a benchmark problem, or of a plain box."""
    if problem is None:
        names = [f"x{i + 1}" for i in range(2 if dimension is None else dimension)]
        return Plan(
            domain=Box(dict.fromkeys(names, (0.0, 1.0))),
            kernel=SquaredExponential(0.25 if lengthscale is None else lengthscale),
            rewards=rewards or (0.0, 1.0),
            privacy=NonPrivate(),
            decisions="candidates" if candidates else "box",
            horizon=rounds,
        )
    if (dimension, lengthscale, rewards) != (None, None, None):
        raise InvalidArgument(
            "--dimension, --lengthscale, --rewards", "none with --problem, which has its own"
        )
    rng = np.random.Generator(np.random.Philox(0))
    world = beside(problem)(rng)
    decisions = "candidates" if candidates else kind_of(world.decision_set(rng))
    return plan_for(world, Setting(rounds=rounds), decisions, problem)


def under_local(plan: Plan, epsilon: float, delta: float) -> Plan:
    """The same plan where nobody is trusted; its defaults follow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeDelta)  # the forecast's advice says it
        privacy = LocalDP(epsilon, delta)
        return replace(plan, privacy=privacy, schedule=None, exploration=None, encoding="auto")


def forecast_table(found: Forecast) -> Table:
    """One row a level: what is known beforehand, then what was simulated."""
    low, high = found.rewards
    delta = "" if found.delta is None else f"delta = {found.delta:g}, "
    encoding = (*found.private, found.not_private)[0].encoding
    table = Table(
        title=f"{found.rounds:,} rounds, rewards in [{low:g}, {high:g}]",
        caption=f"{delta}{encoding} encoding, {found.features} features, kernel error at most "
        f"{rounded_up(found.kernel_error)}.\nRegret is simulated on {found.functions} functions "
        "from the prior, ± one standard error.",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("epsilon")
    for heading in (
        "mu", "re-\nleases", "first\nafter", "its\nnoise", "signal\nafter", "regret",
        "of\nuniform", "a round,\nat the end", "best() falls\nshort by",
    ):  # fmt: skip
        table.add_column(heading, justify="right", no_wrap=True, overflow="fold")
    for outlook in found.outlooks:
        table.add_row(*forecast_row(found, outlook))
    return table


def forecast_row(found: Forecast, outlook: Outlook) -> tuple[str, ...]:
    """A row of the table."""
    share, known = outlook.relative_regret, ("",) * 5
    if outlook is not found.uniform:
        signal = outlook.rounds_to_signal
        known = (
            "" if outlook.mu is None else f"{outlook.mu:.2g}",
            f"{outlook.epochs}",
            f"{outlook.first_epoch:,}",
            f"{outlook.noise_std:.2g}",
            f"> {found.rounds:,}" if signal is None else f"{signal:,}",
        )
    return (
        outlook.label if outlook.epsilon is None else f"{outlook.epsilon:g}",
        *known,
        give_or_take(outlook.regret),
        f"{share.mean:.0%}" + (f"±{100 * share.sem:.0f}" if share.sem else ""),
        give_or_take(outlook.late_regret),
        "" if outlook.simple_regret is None else give_or_take(outlook.simple_regret),
    )
