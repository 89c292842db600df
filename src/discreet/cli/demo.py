"""`discreet demo`: one private study from beginning to end."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from discreet.cli.choices import AsJson
from discreet.cli.console import check_picture, check_places, play, regret_table, report
from discreet.cli.inspect import best_row

if TYPE_CHECKING:  # heavy: loaded when used
    from discreet.simulation.play import Run

PRIVATE = "private, epsilon = 1"


def demo_command(
    rounds: Annotated[int, typer.Option(min=100, help="Rounds to play.")] = 4000,
    figure: Annotated[Path, typer.Option(help="Where to write the figure.")] = Path("demo.png"),
    export: Annotated[
        Path, typer.Option(help="Where to write the public record of the private study.")
    ] = Path("demo.json"),
    seed: Annotated[int, typer.Option(min=0, help="Fixes answers, choices and noise.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Optimise the camelback function under privacy, and draw what was learnt.

    Example: discreet demo --figure demo.png
    """
    check_picture(figure)
    check_places(export)
    runs = play_demo(rounds, seed)
    study = runs[PRIVATE].study
    if study is not None:
        study.save(export)
    from discreet.cli.figures import demo_figure

    demo_figure(runs, figure)
    show_demo(runs, figure, export, as_json=as_json)


def play_demo(rounds: int, seed: int) -> "dict[str, Run]":
    """Uniform play, learning without privacy, and with."""
    from discreet.privacy.budget import JointDP
    from discreet.simulation.play import Setting
    from discreet.simulation.problems import find_problem

    private = JointDP(epsilon=1.0, delta=1e-6)
    settings = {
        "uniform play": Setting(model="random", rounds=rounds),
        "not private": Setting(model="none", rounds=rounds),
        PRIVATE: Setting(model="joint", rounds=rounds, privacy=private),
    }
    make_problem = find_problem("camelback")
    return {
        label: play(label, make_problem, setting, runs=1, seed=seed)[0]
        for label, setting in settings.items()
    }


def show_demo(runs: "dict[str, Run]", figure: Path, export: Path, *, as_json: bool) -> None:
    """The table and what was learnt, or one JSON object."""
    from discreet.simulation.play import summary

    results = {label: summary([run]) for label, run in runs.items()}
    study = runs[PRIVATE].study
    if as_json:
        learnt = {} if study is None else {**best_row(study, None), "guarantee": study.guarantee}
        files = {"figure": str(figure), "export": str(export)}
        typer.echo(json.dumps({"runs": results, "best": learnt, **files}))
        return
    Console().print(regret_table(results))
    if study is not None:
        report(study)
        typer.echo(f"Public record: {export} (made with a seed: a simulation, not private)")
    typer.echo(f"Figure: {figure}")
