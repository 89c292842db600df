"""The command line: the only place where everything is wired.

Exit codes: 0 done, 1 the work failed, 2 the request was wrong (one line says what to do).
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

from discreet.budget import JointDP, NonPrivate, Privacy, Protect
from discreet.encodings import EncodingChoice
from discreet.errors import DiscreetError, InvalidArgument
from discreet.experiments.problems import PROBLEMS, find_problem
from discreet.features import Method
from discreet.simulation import MakeProblem, Model, Run, Setting, simulate, summary
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
        Model, typer.Option(help="none: no privacy; joint: JointDP; random: uniform play.")
    ] = "none",
    protect: Annotated[
        Protect, typer.Option(help="What privacy covers: decision sets and rewards, or rewards.")
    ] = "decisions",
    encoding: Annotated[
        EncodingChoice, typer.Option(help="How a round becomes integers.")
    ] = "auto",
    features: Annotated[Method, typer.Option(help="How the kernel becomes features.")] = "grid",
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy parameter of --model joint.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="Privacy parameter of --model joint.")] = None,
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
    if ":" in problem:
        sys.path.insert(0, str(Path.cwd()))  # module:name finds what lies beside the user
    setting = Setting(
        model=model,
        rounds=rounds,
        encoding=encoding,
        features=features,
        privacy=chosen_privacy(model, epsilon, delta, protect),
    )
    played = play(problem, find_problem(problem), setting, runs=runs, seed=seed)
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
    for path in (figure, export):
        if not path.absolute().parent.is_dir():
            raise InvalidArgument("path", "a file in a folder that exists", str(path))
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


def chosen_privacy(
    model: Model, epsilon: float | None, delta: float | None, protect: Protect
) -> Privacy:
    """What the flags promise: epsilon and delta go with `joint`, and with nothing else here."""
    if model == "local":
        raise InvalidArgument("--model", "none, joint or random: local is not in this version")
    if model != "joint":
        if protect != "decisions":
            raise InvalidArgument("--protect", f"nothing with --model {model}", protect)
        if epsilon is not None or delta is not None:
            raise InvalidArgument("--epsilon, --delta", f"neither with --model {model}")
        return NonPrivate()
    if epsilon is None or delta is None:
        raise InvalidArgument("--epsilon, --delta", "both with --model joint")
    return JointDP(epsilon, delta, protect)


def play(
    label: str, make_problem: MakeProblem, setting: Setting, *, runs: int, seed: int
) -> list[Run]:
    """Simulate runs one after the other under a progress bar on the error stream."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(label, total=runs * setting.rounds)
        return [
            simulate(
                make_problem, setting, seed=seed, run=run, advance=lambda n: bar.advance(task, n)
            )
            for run in range(runs)
        ]


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
