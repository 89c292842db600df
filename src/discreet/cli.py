"""The command line: the only place where everything is wired.

Exit codes: 0 done, 1 the work failed, 2 the request was wrong (one line says what to do).
"""

import json
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

from discreet.budget import JointDP, LocalDP, NonPrivate, Privacy, Protect
from discreet.domain import Box
from discreet.encodings import EncodingChoice
from discreet.errors import DiscreetError, InvalidArgument, LargeDelta
from discreet.experiments.problems import PROBLEMS, find_problem
from discreet.features import Method
from discreet.forecast import Estimate, Forecast, Outlook, forecast
from discreet.kernels import SquaredExponential
from discreet.plan import Plan
from discreet.simulation import (
    MakeProblem,
    Model,
    Run,
    Setting,
    kind_of,
    plan_for,
    simulate,
    summary,
)
from discreet.study import Study

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=True
)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"discreet {version('discreet')}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Private Gaussian-process bandits: choose the best action again and again."""


@app.command("simulate")
def simulate_command(
    problem: Annotated[
        str, typer.Option(help=f"{', '.join(PROBLEMS)}, or module:name of your own.")
    ] = "camelback",
    model: Annotated[
        Model,
        typer.Option(
            help="none: no privacy; joint: JointDP, with a trusted privatizer; local: LocalDP, "
            "with noise on every report; random: uniform play."
        ),
    ] = "none",
    protect: Annotated[
        Protect, typer.Option(help="What privacy covers: decision sets and rewards, or rewards.")
    ] = "decisions",
    encoding: Annotated[
        EncodingChoice, typer.Option(help="How a round becomes integers.")
    ] = "auto",
    features: Annotated[Method, typer.Option(help="How the kernel becomes features.")] = "grid",
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy parameter of --model joint and local.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Privacy parameter of --model joint and local.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in a run.")] = 1000,
    runs: Annotated[int, typer.Option(min=1, help="Independent runs.")] = 4,
    seed: Annotated[
        int, typer.Option(min=0, help="Fixes problems, answers and choices; not private.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play a problem many times and report the regret.

    Example: discreet simulate --problem synthetic --model joint --epsilon 1 --delta 0.1
    """
    setting = Setting(
        model=model,
        rounds=rounds,
        encoding=encoding,
        features=features,
        privacy=chosen_privacy(model, epsilon, delta, protect),
    )
    played = play(problem, beside(problem), setting, runs=runs, seed=seed)
    result: dict[str, Any] = {
        "problem": problem,
        "model": model,
        "protect": protect,
        "epsilon": epsilon,
        "delta": delta,
        "seed": seed,
        **summary(played),
    }
    if as_json:
        typer.echo(json.dumps(result))
    else:
        Console().print(regret_table({f"{problem}, {model}": result}))


@app.command("audit")
def audit_command(
    draws: Annotated[
        int, typer.Option(min=30_000, help="Releases drawn in each world of each game.")
    ] = 100_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play the distinguishing game against every mechanism, and against broken ones.

    Fails (exit code 1) when a mechanism leaks more than it claims, when the audit sees less than
    0.85 of a claim, or when a control is not caught.

    Example: discreet audit --json
    """
    from discreet.audit import audit, verdict

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("audit", total=None)
        findings = audit(draws, advance=lambda name: bar.update(task, description=name))
    passed = verdict(findings)
    if as_json:
        rows = [{**asdict(finding), "passed": finding.passed} for finding in findings]
        typer.echo(json.dumps({"passed": passed, "draws": draws, "findings": rows}))
    else:
        table = Table("game", "claimed mu", "shown mu", "", title="mu shown is a lower bound")
        for finding in findings:
            word = (
                ("caught" if finding.passed else "MISSED")
                if finding.control
                else ("passed" if finding.passed else "FAILED")
            )
            row = (finding.name, f"{finding.claim:.3f}", f"{finding.lower_bound:.3f}", word)
            table.add_row(*row)
        Console().print(table)
    if not passed:
        raise typer.Exit(1)


@app.command("demo")
def demo_command(
    rounds: Annotated[int, typer.Option(min=100, help="Rounds to play.")] = 4000,
    figure: Annotated[Path, typer.Option(help="Where to write the figure.")] = Path("demo.png"),
    export: Annotated[
        Path, typer.Option(help="Where to write the public record of the private study.")
    ] = Path("demo.json"),
    seed: Annotated[int, typer.Option(min=0, help="Fixes answers, choices and noise.")] = 0,
) -> None:
    """Optimise the camelback function under privacy, and draw what was learnt.

    Example: discreet demo --figure demo.png
    """
    check_places(figure, export)
    private = JointDP(epsilon=1.0, delta=1e-6)
    settings = {
        "uniform play": Setting(model="random", rounds=rounds),
        "not private": Setting(model="none", rounds=rounds),
        "private, epsilon = 1": Setting(model="joint", rounds=rounds, privacy=private),
    }
    make_problem = find_problem("camelback")
    runs = {
        label: play(label, make_problem, setting, runs=1, seed=seed)[0]
        for label, setting in settings.items()
    }
    Console().print(regret_table({label: summary([run]) for label, run in runs.items()}))
    if (study := runs["private, epsilon = 1"].study) is not None:
        report(study)
        study.save(export)
        typer.echo(f"Public record: {export} (made with a seed: a simulation, not private)")
    from discreet.experiments.figures import demo_figure  # matplotlib is slow to import

    demo_figure(runs, figure)
    typer.echo(f"Figure: {figure}")


@app.command("forecast")
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


def chosen_privacy(
    model: Model, epsilon: float | None, delta: float | None, protect: Protect
) -> Privacy:
    """What the flags promise: epsilon and delta go with `joint` and `local` alone."""
    if model != "joint" and protect != "decisions":
        raise InvalidArgument("--protect", f"nothing with --model {model}", protect)
    if model not in ("joint", "local"):
        if epsilon is not None or delta is not None:
            raise InvalidArgument("--epsilon, --delta", f"neither with --model {model}")
        return NonPrivate()
    if epsilon is None or delta is None:
        raise InvalidArgument("--epsilon, --delta", f"both with --model {model}")
    if model == "local":
        return LocalDP(epsilon, delta)
    return JointDP(epsilon, delta, protect)


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; our own errors become one line and an exit code."""
    try:
        with threadpool_limits(1):
            app(arguments, standalone_mode=True)
    except DiscreetError as error:
        typer.echo(f"discreet: {error}", err=True)
        sys.exit(2 if error.fault == "caller" else 1)


if __name__ == "__main__":
    main()
