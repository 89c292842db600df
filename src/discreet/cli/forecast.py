"""`discreet forecast`: what a study will cost and learn, before any data."""

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from discreet.cli.choices import (
    PROBLEMS,
    AsJson,
    Changes,
    PlanFile,
    Resume,
    complete_problem,
    read_changes,
)
from discreet.cli.console import (
    beside,
    blamed,
    check_picture,
    check_places,
    give_or_take,
    print_whole,
    rounded_up,
    rounds_progress,
)
from discreet.errors import InvalidArgument, LargeDelta, ShortHorizon

if TYPE_CHECKING:  # heavy: loaded when used
    from discreet.agreement.plan import Plan
    from discreet.privacy.budget import JointDP, LocalDP
    from discreet.privacy.shuffled import ShuffledDP
    from discreet.simulation.enough_report import Enough
    from discreet.simulation.forecast_report import Forecast, Outlook

Trust = Literal["joint", "shuffled", "local"]
LEVELS, DELTA = (0.1, 1.0, 10.0), 1e-5
#: Of a plan's own epsilon.
SHARES = (0.1, 0.3, 1.0)


def forecast_command(
    plan: PlanFile = None,
    changes: Changes = None,
    problem: Annotated[
        str | None,
        typer.Option(
            help=f"Domain, kernel and range of {', '.join(PROBLEMS)}, or module:name.",
            autocompletion=complete_problem,
        ),
    ] = None,
    dimension: Annotated[
        int | None, typer.Option(min=1, help="Of a plain box: its coordinates.  [2]")
    ] = None,
    lengthscale: Annotated[
        float | None,
        typer.Option(help="Of a plain box with side 1: that of the kernel.  [0.25]"),
    ] = None,
    rewards: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="The range of rewards.  [the plan's, or 0 1]"),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(min=1, help="Each user brings so many actions to choose from; else any."),
    ] = None,
    model: Annotated[
        Trust | None,
        typer.Option(
            help="joint: with a trusted custodian; shuffled: reports are mixed; local: every "
            "report is private by itself.  [the plan's, or joint]"
        ),
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            help="A level to compare; repeat it.  [0.1, 0.3 and all of the plan's, or 0.1, 1, 10]"
        ),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="The delta of every level.  [the plan's, or 1e-05]")
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Rounds of the study.  [the plan's horizon, or 1000]"),
    ] = None,
    functions: Annotated[
        int, typer.Option(min=1, help="Functions drawn from the plan's prior, for error bars.")
    ] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Fixes functions, answers and noise.")] = 0,
    figure: Annotated[Path, typer.Option(help="Where to write the figure.")] = Path("forecast.png"),
    resume: Resume = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Only say whether the people are enough: takes seconds."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """What a study will cost and learn at each epsilon, before any data: to choose epsilon.

    First it says whether the people are enough, to tell them apart or for one action for all; then
    it simulates what that costs. The study is that of a plan file, which flags go before; of a
    problem; or of a plain box.

    Example: discreet forecast --plan docs/examples/dosing.toml --quick

    Example: discreet forecast --plan docs/examples/dosing.toml --epsilon 1 --epsilon 8

    Example: discreet forecast --dimension 1 --lengthscale 0.3 --epsilon 0.5 --epsilon 5
    """
    check_picture(figure)
    if resume is not None:
        check_places(resume)  # before anything is said
    plain = {"--dimension": dimension, "--lengthscale": lengthscale}
    if plan is not None:
        refuse("--plan", **plain, **{"--problem": problem})
        make = partial(plan_of_file, plan, read_changes(changes), rewards, candidates)
    elif problem is not None:
        refuse("--problem", **plain, **{"--rewards": rewards, "--set": changes})
        make = partial(plan_of_problem, problem, candidates)
    else:
        refuse("a plain box", **{"--set": changes})
        make = partial(plan_of_box, dimension or 2, lengthscale, rewards, candidates)
    study, levels = compared(make, model, epsilon, delta)
    asked = Asked(
        levels=levels,
        delta=DELTA if delta is None and stated(study) is None else delta,
        rounds=rounds or study.horizon or 1000,
    )
    source = {"problem": problem, "plan": None if plan is None else str(plan)}
    with blamed(problem or ""):
        counted = count_people(study, asked)
    if not as_json:
        typer.echo("\n".join(counted.sentences))
    if quick:
        if as_json:
            typer.echo(json.dumps({**source, "enough": counted.to_dict()}))
        return
    found = simulated(
        study, asked, problem or "", functions=functions, candidates=candidates, seed=seed,
        resume=resume,
    )  # fmt: skip
    show_forecast(found, counted, source, figure, as_json=as_json)


@dataclass(frozen=True)
class Asked:
    """Which levels are compared, and for how many rounds."""

    levels: set[float]
    delta: float | None
    rounds: int


def count_people(study: "Plan", asked: Asked) -> "Enough":
    """Whether the people are enough: computed, in seconds."""
    from discreet.simulation.enough import enough

    return enough(study, asked.levels, delta=asked.delta, rounds=asked.rounds)


def simulated(
    study: "Plan",
    asked: Asked,
    problem: str,
    *,
    functions: int,
    candidates: int | None,
    seed: int,
    resume: Path | None,
) -> "Forecast":
    """What the levels cost, under a progress bar."""
    from discreet.simulation.forecast import forecast

    with rounds_progress() as bar, blamed(problem):
        total = (len(asked.levels) + 2) * functions * asked.rounds
        task = bar.add_task("forecast", total=total)
        return forecast(
            study,
            asked.levels,
            delta=asked.delta,
            functions=functions,
            rounds=asked.rounds,
            candidates=candidates or 25,
            seed=seed,
            resume=resume,
            advance=lambda n: bar.advance(task, n),
        )


def refuse(beside_what: str, **options: object) -> None:
    """Refuse options that go with something else."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InvalidArgument(", ".join(given), f"nothing with {beside_what}")


def show_forecast(
    found: "Forecast",
    counted: "Enough",
    source: dict[str, str | None],
    figure: Path,
    *,
    as_json: bool,
) -> None:
    """The figure, and the table with its advice or one JSON object."""
    from discreet.cli.figures import forecast_figure

    forecast_figure(found, figure)
    if as_json:
        whole = {**source, "enough": counted.to_dict(), **found.to_dict(), "figure": str(figure)}
        typer.echo(json.dumps(whole))
        return
    print_whole(forecast_table(found))
    typer.echo(found.advice)
    typer.echo(f"Figure: {figure}")


# -- whose study it is


def compared(
    make: "Callable[[JointDP | LocalDP | ShuffledDP | None], Plan]",
    model: Trust | None,
    epsilon: list[float] | None,
    delta: float | None,
) -> "tuple[Plan, set[float]]":
    """The plan, in the model of privacy that is wanted, and the levels to compare."""
    from discreet.privacy.budget import JointDP, LocalDP
    from discreet.privacy.shuffled import ShuffledDP

    kinds: dict[Trust, type[JointDP | LocalDP | ShuffledDP]] = {
        "joint": JointDP,
        "shuffled": ShuffledDP,
        "local": LocalDP,
    }
    with warnings.catch_warnings():
        for said in (LargeDelta, ShortHorizon):  # what the forecast says itself
            warnings.simplefilter("ignore", said)
        plan = make(None)
        promise = stated(plan)
        usual = LEVELS if promise is None else [share * promise.epsilon for share in SHARES]
        levels = set(epsilon or usual)
        if model is None or (promise is None and model == "joint"):
            return plan, levels
        kind = kinds[model]
        if isinstance(promise, kind):
            return plan, levels
        known = None if promise is None else promise.delta
        rounds = 1 if promise is None else promise.rounds_per_user
        if model == "local" and delta is None:  # reports that are an index need none
            return make(LocalDP(max(levels), rounds_per_user=rounds)), levels
        chosen = delta or known or DELTA
        return make(kind(max(levels), chosen, rounds_per_user=rounds)), levels


def stated(plan: "Plan") -> "JointDP | LocalDP | ShuffledDP | None":
    """What the plan itself promises."""
    from discreet.privacy.budget import NonPrivate

    return None if isinstance(plan.privacy, NonPrivate) else plan.privacy


def plan_of_file(
    path: Path,
    changes: dict[str, object],
    rewards: tuple[float, float] | None,
    candidates: int | None,
    privacy: "JointDP | LocalDP | ShuffledDP | None",
) -> "Plan":
    """The plan of a file, changed by flags."""
    from discreet.plan_file import read_plan

    promise = None
    if privacy is not None:
        parts = {name: value for name, value in asdict(privacy).items() if value is not None}
        promise = {"type": type(privacy).__name__, **parts}
    flags: dict[str, Any] = {
        "rewards": None if rewards is None else list(rewards),
        "decisions": None if candidates is None else "candidates",
        "privacy": promise,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    return read_plan(path, changes | given)


def plan_of_problem(
    problem: str, candidates: int | None, privacy: "JointDP | LocalDP | ShuffledDP | None"
) -> "Plan":
    """The plan that a problem is simulated with."""
    import numpy as np

    from discreet.privacy.budget import LocalDP
    from discreet.privacy.shuffled import ShuffledDP
    from discreet.simulation.people import kind_of
    from discreet.simulation.play import Setting, plan_for

    rng = np.random.Generator(np.random.Philox(0))
    model: Trust = "joint"
    if isinstance(privacy, LocalDP | ShuffledDP):
        model = "local" if isinstance(privacy, LocalDP) else "shuffled"
    setting = Setting() if privacy is None else Setting(model=model, privacy=privacy)
    make = beside(problem)
    with blamed(problem):
        world = make(rng)
        decisions = "candidates" if candidates else kind_of(world.decision_set(rng))
        return plan_for(world, setting, decisions, problem)


def plan_of_box(
    dimension: int,
    lengthscale: float | None,
    rewards: tuple[float, float] | None,
    candidates: int | None,
    privacy: "JointDP | LocalDP | ShuffledDP | None",
) -> "Plan":
    """A plan about a box with sides of 1."""
    from discreet.agreement.plan import Plan
    from discreet.domain.box import Box
    from discreet.features.kernels import SquaredExponential
    from discreet.privacy.budget import NonPrivate

    return Plan(
        domain=Box({f"x{i + 1}": (0.0, 1.0) for i in range(dimension)}),
        kernel=SquaredExponential(0.25 if lengthscale is None else lengthscale),
        rewards=rewards or (0.0, 1.0),
        privacy=privacy or NonPrivate(),
        decisions="candidates" if candidates else "box",
    )


# -- the table


def forecast_table(found: "Forecast") -> Table:
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


def forecast_row(found: "Forecast", outlook: "Outlook") -> tuple[str, ...]:
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
