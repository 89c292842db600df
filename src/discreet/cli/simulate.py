"""`discreet simulate`: play a problem many times."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from discreet.budget import JointDP, LocalDP, NonPrivate, Privacy, Protect
from discreet.cli.console import beside, play, regret_table
from discreet.encodings import EncodingChoice
from discreet.errors import InvalidArgument
from discreet.experiments.problems import PROBLEMS
from discreet.features import Method
from discreet.simulation import Model, Setting, summary


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
