"""`discreet simulate`: play a problem many times."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from discreet.cli.choices import (
    PROBLEMS,
    AsJson,
    Changes,
    EncodingChoice,
    Features,
    Model,
    NoiseChoice,
    PlanFile,
    Protect,
    Resume,
    complete_problem,
    read_changes,
)
from discreet.cli.console import beside, blamed, regret_table, rounds_progress
from discreet.errors import InvalidArgument

if TYPE_CHECKING:  # heavy: loaded when used
    from discreet.privacy.budget import Privacy
    from discreet.simulation.play import Outcome, Setting
    from discreet.simulation.worlds import MakeProblem


def simulate_command(
    problem: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(PROBLEMS)}, or module:name of your own.",
            autocompletion=complete_problem,
        ),
    ] = "camelback",
    plan: PlanFile = None,
    changes: Changes = None,
    model: Annotated[
        Model | None,
        typer.Option(
            help="none: no privacy; joint: JointDP, with a trusted custodian; shuffled: "
            "ShuffledDP, with reports that are mixed; local: LocalDP, where each is private by "
            "itself; random: uniform play.  [the plan's, or none]"
        ),
    ] = None,
    protect: Annotated[
        Protect | None,
        typer.Option(help="What privacy covers: decision sets and rewards, or rewards."),
    ] = None,
    encoding: Annotated[
        EncodingChoice | None, typer.Option(help="How a round becomes integers.  [auto]")
    ] = None,
    features: Annotated[
        Features | None, typer.Option(help="How the kernel becomes features.  [auto]")
    ] = None,
    noise: Annotated[
        NoiseChoice | None,
        typer.Option(
            help="Independent for each epoch, or correlated: the paper's algorithm.  [independent]"
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy parameter of --model joint, shuffled and local.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Privacy parameter of --model joint, shuffled and local.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds in a run.  [the plan's horizon, or 1000]")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Independent runs.")] = 4,
    seed: Annotated[
        int, typer.Option(min=0, help="Fixes problems, answers and choices; not private.")
    ] = 0,
    resume: Resume = None,
    as_json: AsJson = False,
) -> None:
    """Play a problem many times and report the regret.

    A plan file need not be whole here. The problem brings the domain and what users bring; its
    kernel and range of rewards hold unless the file has its own. Flags go before the file.

    Example: discreet simulate --problem synthetic --model joint --epsilon 1 --delta 0.1

    Example: discreet simulate --plan docs/examples/settings.toml --epsilon 4
    """
    from discreet.plan_file import read_settings
    from discreet.simulation.play import summary

    flags = {"encoding": encoding, "features": features, "noise": noise, "horizon": rounds}
    given = {name: value for name, value in flags.items() if value is not None}
    settings = read_settings(plan, read_changes(changes) | given)
    privacy = chosen_privacy(settings.pop("privacy", None), model, epsilon, delta, protect)
    setting = setting_of(settings, privacy, is_random=model == "random")
    played = outcomes(problem, beside(problem), setting, runs=runs, seed=seed, resume=resume)
    result: dict[str, Any] = {
        "problem": problem,
        "plan": None if plan is None else str(plan),
        "model": setting.model,
        "protect": privacy.protect or "decisions",
        "epsilon": getattr(privacy, "epsilon", None),
        "delta": getattr(privacy, "delta", None),
        "seed": seed,
        **summary(played),
    }
    if as_json:
        typer.echo(json.dumps(result))
    else:
        Console().print(regret_table({f"{problem}, {setting.model}": result}))


def outcomes(
    label: str,
    make_problem: "MakeProblem",
    setting: "Setting",
    *,
    runs: int,
    seed: int,
    resume: Path | None,
) -> "list[Outcome]":
    """What runs came to, one after the other; a finished one that the file has is not played."""
    from discreet.simulation.campaign import Campaign
    from discreet.simulation.play import Outcome, simulate

    with rounds_progress() as bar, blamed(label):
        task = bar.add_task(label, total=runs * setting.rounds)
        settings = {} if resume is None else settings_of(label, make_problem, setting, seed)
        campaign = Campaign(resume, settings)

        def advance(rounds: int) -> None:
            bar.advance(task, rounds)

        def played(run: int) -> Outcome:
            name = f"run {run}"
            if campaign.has(name):
                advance(setting.rounds)

            def play() -> dict[str, Any]:
                found = simulate(
                    make_problem,
                    setting,
                    seed=seed,
                    run=run,
                    advance=lambda n: bar.advance(task, n),
                )
                return asdict(Outcome.of(found))

            return Outcome(**campaign.run(name, play))

        return [played(run) for run in range(runs)]


def settings_of(
    label: str, make_problem: "MakeProblem", setting: "Setting", seed: int
) -> dict[str, Any]:
    """What fixes every run but its number."""
    from discreet.simulation.play import plan_for
    from discreet.simulation.worlds import World

    world = World.draw(make_problem, seed=seed)
    plan = plan_for(world.problem, setting, world.decisions, "simulation")
    parts = {"problem": label, "model": setting.model, "rounds": setting.rounds, "seed": seed}
    return {"simulate": {**parts, "plan": plan.digest}}


def setting_of(settings: dict[str, Any], privacy: "Privacy", *, is_random: bool) -> "Setting":
    """How to play, from the arguments of a plan."""
    from discreet.privacy.budget import JointDP, LocalDP
    from discreet.privacy.shuffled import ShuffledDP
    from discreet.simulation.play import Setting

    models: dict[type, Model] = {JointDP: "joint", ShuffledDP: "shuffled", LocalDP: "local"}
    return Setting(
        model="random" if is_random else models.get(type(privacy), "none"),
        rounds=settings.pop("horizon", 1000),
        privacy=privacy,
        changes=settings,
    )


def chosen_privacy(
    stated: "Privacy | None",
    model: Model | None,
    epsilon: float | None,
    delta: float | None,
    protect: Protect | None,
) -> "Privacy":
    """What the plan promises, changed by flags: epsilon and delta go with models that have them."""
    from discreet.privacy.budget import JointDP, LocalDP, NonPrivate
    from discreet.privacy.shuffled import ShuffledDP

    levels: dict[str, Any] = {}
    if isinstance(stated, ShuffledDP) and model in (None, "shuffled") and protect != "rewards":
        flags = {"epsilon": epsilon, "delta": delta}
        return replace(stated, **{key: value for key, value in flags.items() if value is not None})
    if isinstance(stated, JointDP | LocalDP):
        fields = ("epsilon", "delta", "rounds_per_user", "protect")
        levels = {name: getattr(stated, name) for name in fields}
        model = model or ("local" if isinstance(stated, LocalDP) else "joint")
    model = model or "none"
    if model != "joint" and protect == "rewards":
        raise InvalidArgument("--protect", f"nothing with --model {model}", protect)
    if model not in ("joint", "shuffled", "local"):
        if epsilon is not None or delta is not None:
            raise InvalidArgument("--epsilon, --delta", f"neither with --model {model}")
        return NonPrivate()
    flags = {"epsilon": epsilon, "delta": delta, "protect": protect}
    levels |= {name: value for name, value in flags.items() if value is not None}
    known = {name for name, value in levels.items() if value is not None}
    if model != "local" and not {"epsilon", "delta"} <= known:
        raise InvalidArgument("--epsilon, --delta", f"both with --model {model}")
    if "epsilon" not in known:
        raise InvalidArgument("--epsilon", "a number with --model local")
    if model != "joint":
        levels.pop("protect", None)
        return LocalDP(**levels) if model == "local" else ShuffledDP(**levels)
    return JointDP(**levels)
