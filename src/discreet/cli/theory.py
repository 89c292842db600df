"""`discreet theory`: what is proven about a plan, before any data."""

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from discreet.cli.choices import AsJson, Changes, PlanFile, read_changes
from discreet.cli.console import print_whole, rounded_up
from discreet.errors import InvalidArgument

if TYPE_CHECKING:  # heavy: loaded when used
    from discreet.learning.theory_report import TheoryReport

#: Bounds are shown at these T, unless others are given.
ROUNDS = (10_000, 100_000, 1_000_000)


def theory_command(
    plan: PlanFile = None,
    changes: Changes = None,
    rounds: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Bounds after so many rounds; repeat it.  [1e4, 1e5, 1e6]"),
    ] = None,
    norm: Annotated[
        float | None,
        typer.Option(help="What every theorem rests on: a bound on f's norm.  [the plan's]"),
    ] = None,
    uniform: Annotated[
        float | None,
        typer.Option(help="What uniform play costs a round.  [half of the spread of f]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What is proven about a plan's regret, before any data, by every theorem that fits it.

    Prints features and kernel error, the widths of elimination's phases, the paper's spectral
    bounds and width, the bounds on regret, and the T from which each beats uniform play.

    Example: discreet theory --plan docs/examples/elimination.toml

    Example: discreet theory --plan docs/examples/settings.toml --norm 1 --rounds 5000
    """
    import warnings

    from discreet.errors import LargeDelta
    from discreet.learning.theory_report import theory_report
    from discreet.plan_file import read_plan

    if plan is None:
        raise InvalidArgument("--plan", "a plan in a TOML file")
    for name, value in (("--norm", norm), ("--uniform", uniform)):
        if value is not None and not (math.isfinite(value) and value > 0.0):
            raise InvalidArgument(name, "a positive number", value)
    with warnings.catch_warnings(action="ignore", category=LargeDelta):
        found = theory_report(
            read_plan(plan, read_changes(changes)),
            sorted(set(rounds or ROUNDS)),
            norm=norm,
            uniform=uniform,
        )
    if as_json:
        typer.echo(json.dumps(_finite(asdict(found))))
        return
    show(found)


def show(found: "TheoryReport") -> None:
    """The report in words and tables."""
    typer.echo(f"This plan plays {found.runs}.")
    typer.echo(
        f"{found.features} features, kernel error at most {rounded_up(found.kernel_error)}; a "
        f"round costs mu = {found.mu:.4g}. Assumed: norm {found.norm:g}, rewards "
        f"{found.noise_std:g}-sub-Gaussian. Uniform play costs {found.uniform:g} a round."
    )
    if found.arms is not None:
        typer.echo(
            f"Elimination: {found.arms:,} arms, misfit at most {found.misfit:.2g}, the net misses "
            f"at most {found.net_error:.2g}."
        )
        print_whole(phase_table(found))
    print_whole(prefix_table(found))
    print_whole(bound_table(found))


def phase_table(found: "TheoryReport") -> Table:
    """Elimination's phases."""
    table = _table("Elimination's phases", "phase", "asks", "rank", "clipped at", "noise", "width")
    for number, each in enumerate(found.phases, start=1):
        asks = f"{each.first:,} to {each.first + each.asks - 1:,}"
        width = "no bound" if math.isinf(each.width) else f"{each.width:.3g}"
        numbers = (f"±{each.clip:.3g}", f"{each.noise:.3g}", width)
        table.add_row(str(number), asks, str(each.rank), *numbers)
    return table


def prefix_table(found: "TheoryReport") -> Table:
    """The paper's spectral bounds and width, at the last T."""
    title = f"Theorem 1 at T = {found.rounds[-1]:,}, rewards divided by their larger end"
    names = ("noise", "each", "shift", "lambda_min", "lambda_max", "kappa", "width")
    table = _table(title, *names)
    for each in found.prefix:
        values = (each.noise, each.shift, each.smallest, each.largest, each.kappa, each.width)
        table.add_row(each.name, *(f"{value:.4g}" for value in values))
    return table


def bound_table(found: "TheoryReport") -> Table:
    """Regret bounds, and from when they say anything."""
    columns = [f"T = {rounds:,}" for rounds in found.rounds]
    table = _table("Regret is at most", "theorem", "with", *columns, "beats uniform play from")
    for each in found.bounds:
        since = each.beats_uniform_from
        table.add_row(
            each.name,
            f"{1.0 - each.failure:g}",
            *(f"{regret:,.0f}" for regret in each.regret),
            "never: the kernel error" if since is None else f"{since:.2g}",
        )
    uniform = (f"{found.uniform * rounds:,.0f}" for rounds in found.rounds)
    table.add_row("uniform play", "", *uniform, "")
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    return table


def _finite(found: Any) -> Any:
    """JSON has no infinity: what has no bound is null."""
    if isinstance(found, dict):
        return {key: _finite(value) for key, value in cast(dict[str, Any], found).items()}
    if isinstance(found, list | tuple):
        return [_finite(each) for each in cast(list[Any], found)]
    return None if isinstance(found, float) and math.isinf(found) else found
