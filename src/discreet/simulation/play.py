"""plan x problem -> regret: what a plan does in a world we made up.

Everything here is seeded and therefore not private, whatever the plan says.
"""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from discreet import checks
from discreet.agreement.plan import Decisions, Plan
from discreet.arrays import Floats, Integers
from discreet.domain.box import Box
from discreet.errors import InvalidArgument, LargeDelta
from discreet.features.choose import FeatureChoice
from discreet.features.kernels import SquaredExponential
from discreet.learning.belief import Spending
from discreet.learning.epoch import Epoch
from discreet.learning.search import spread
from discreet.learning.study import Study
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate, Privacy
from discreet.privacy.encodings import EncodingChoice
from discreet.privacy.shuffled import ShuffledDP
from discreet.simulation.epochs import begin, play_study
from discreet.simulation.people import Options, Problem
from discreet.simulation.worlds import MakeProblem, World, row_of
from discreet.threads import one_thread

Model = Literal["none", "joint", "shuffled", "local", "random"]


@dataclass(frozen=True)
class Setting:
    """How to play: the model of privacy, and the parts of a plan that simulations vary.

    `changes` are further arguments of the plan. They go before the problem's kernel and range of
    rewards; the domain and what users bring stay its own.

    >>> Setting(model="none", rounds=100).encoding
    'auto'
    """

    model: Model = "none"
    rounds: int = 1000
    encoding: EncodingChoice = "auto"
    features: FeatureChoice = "auto"
    privacy: Privacy = field(default_factory=NonPrivate)
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def __post_init__(self) -> None:
        checks.count("rounds", self.rounds)
        needed = {"joint": JointDP, "shuffled": ShuffledDP, "local": LocalDP}.get(
            self.model, NonPrivate
        )
        if type(self.privacy) is not needed:
            raise InvalidArgument("privacy", f"{needed.__name__} for model {self.model!r}")


@dataclass(frozen=True, eq=False)
class Run:
    """One simulated study: the regret of each round, the public record, and its CPU time."""

    problem: Problem
    regrets: Floats
    study: Study | None
    seconds: float


class UniformPlayer:
    """Plays uniformly at random and learns nothing: the yardstick."""

    def __init__(self, domain: Box, rng: np.random.Generator) -> None:
        self._domain, self._rng = domain, rng

    def act(self, options: Options) -> Floats:
        """Any option, each as likely as the other."""
        domain, rng = self._domain, self._rng
        if options is None:
            return row_of(domain, domain.decode(spread(domain, 1, rng)[0]))
        if not isinstance(options, Mapping):
            return options[rng.integers(len(options))]
        fixed, found = domain.encode_context(options), np.empty((0, domain.dimension))
        while not len(found):  # a predicate may leave little
            found = domain.spread(rng.random((16, len(domain.names))), context=fixed)
        return row_of(domain, domain.decode(found[0]))

    def hear(self, reward: float) -> None:
        """Nothing is learnt."""


@one_thread
def simulate(
    make_problem: MakeProblem,
    setting: Setting,
    *,
    seed: int,
    run: int = 0,
    spending: Spending | None = None,
    advance: Callable[[int], None] = lambda rounds: None,
) -> Run:
    """Play one study; (seed, run) fixes the problem, its people, their answers and the player.

    `spending` is for experiments that take parts of the usual way away. `advance` is called with
    the number of rounds just played, for a progress bar.

    >>> from discreet.simulation.problems import find_problem
    >>> setting = Setting(model="local", rounds=50, privacy=LocalDP(8.0, 0.01))
    >>> simulate(find_problem("synthetic"), setting, seed=1).regrets.shape
    (50,)
    """
    world, begun = World.draw(make_problem, seed=seed, run=run), time.process_time()
    if setting.model == "random":
        regrets = world.play_uniformly(setting.rounds, advance)
        return Run(world.problem, regrets, None, time.process_time() - begun)
    plan = plan_for(world.problem, setting, world.decisions, f"simulation {seed}.{run}")
    regrets, study = play_study(world, begin(plan, spending), setting.rounds, advance)
    return Run(world.problem, regrets, study, time.process_time() - begun)


def plan_for(problem: Problem, setting: Setting, decisions: Decisions, name: str) -> Plan:
    """The plan of a simulated study: defaults, but for what the problem and setting say."""
    usual: dict[str, Any] = {
        "kernel": getattr(problem, "kernel", SquaredExponential()),
        "rewards": problem.rewards,
        "public_decisions": setting.privacy.protect == "rewards",
        "features": setting.features,
        "encoding": setting.encoding,
    }
    own: dict[str, Any] = {"domain": problem.domain, "decisions": decisions}
    if other := [part for part in own if setting.changes.get(part, own[part]) != own[part]]:
        raise InvalidArgument(other[0], "nothing, or what the problem has")
    own |= {"privacy": setting.privacy, "horizon": setting.rounds, "name": name}
    with warnings.catch_warnings(action="ignore", category=LargeDelta):  # nobody is real here
        return Plan(**(usual | dict(setting.changes) | own))


@dataclass(frozen=True)
class Outcome:
    """What is kept of a run: its regret in all and on the way, and how it was played."""

    rounds: int
    regret: float
    curve: list[float]
    features: int | None
    kernel_error: float | None
    encoding: str | None
    noise_std: float | None
    seconds: float

    @classmethod
    def of(cls, run: Run) -> "Outcome":
        """Of a finished run."""
        study = run.study
        plan = None if study is None else study.plan
        return cls(
            rounds=len(run.regrets),
            regret=float(run.regrets.sum()),
            curve=regrets_shown(run.regrets),
            features=None if plan is None else plan.map.dimension,
            kernel_error=None if plan is None else plan.map.error_bound,
            encoding=None if plan is None else plan.encoding,
            noise_std=None if study is None else first_noise(study),
            seconds=run.seconds,
        )


def summary(runs: Sequence[Run | Outcome]) -> dict[str, object]:
    """Mean, standard error and thinned curve of the regret over runs, as plain data."""
    found = [run if isinstance(run, Outcome) else Outcome.of(run) for run in runs]
    first, totals = found[0], np.array([each.regret for each in found])
    return {
        "rounds": first.rounds,
        "runs": len(found),
        "regret_mean": float(totals.mean()),
        "regret_sem": standard_error(totals),
        "regrets": totals.tolist(),
        "regret_curve": asdict(Curve.of(first.rounds, [each.curve for each in found])),
        "features": first.features,
        "kernel_error": first.kernel_error,
        "encoding": first.encoding,
        "noise_std": first.noise_std,
        "seconds_per_round": sum(each.seconds for each in found) / (first.rounds * len(found)),
        "private": False,
    }


@dataclass(frozen=True)
class Curve:
    """Regret so far after some of the rounds: its mean over runs and its standard error."""

    round: list[int]
    mean: list[float]
    sem: list[float | None]

    @classmethod
    def of(cls, rounds: int, curves: Sequence[Sequence[float]]) -> "Curve":
        """From what `regrets_shown` says of each run.

        >>> Curve.of(3, [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
        Curve(round=[1, 2, 3], mean=[1.0, 2.0, 3.0], sem=[0.0, 0.0, 0.0])
        """
        table = np.array(curves)
        errors = [standard_error(column) for column in table.T]
        return cls(shown_rounds(rounds).tolist(), table.mean(axis=0).tolist(), errors)


def shown_rounds(rounds: int) -> Integers:
    """At most 100 rounds, evenly spaced in orders of magnitude."""
    powers = np.linspace(0.0, math.log10(rounds), 100)
    return np.unique((10**powers).astype(np.int64))


def regrets_shown(regrets: Floats) -> list[float]:
    """Regret so far after each of `shown_rounds`.

    >>> regrets_shown(np.array([1.0, 0.5, 0.5]))
    [1.0, 1.5, 2.0]
    """
    return np.cumsum(regrets)[shown_rounds(len(regrets)) - 1].tolist()


def first_noise(study: Study) -> float:
    """The noise on a coordinate of the first release's cross vector, in half-widths of rewards."""
    return noise_of_first(study.plan, study.epochs[0])


def noise_of_first(plan: Plan, first: Epoch) -> float:
    """The noise on a coordinate of what the first release tells; of indices, on the sum of h."""
    if plan.sends_indices:
        return first.indexed.deviation * math.sqrt(first.length)
    return plan.noise_of_sum(first.additive, first.length).noise.cross


def standard_error(values: Floats) -> float | None:
    """The standard error of the mean; None for a single value, which has none.

    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    if len(values) < 2:
        return None
    return float(values.std(ddof=1) / np.sqrt(len(values)))
