"""`discreet demo`: one private study from beginning to end."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from discreet.budget import JointDP
from discreet.cli.console import check_places, play, regret_table, report
from discreet.experiments.problems import find_problem
from discreet.simulation import Setting, summary


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
