"""plan x problem -> regret: what a plan does in a world we made up.

Everything here is seeded and therefore not private, whatever the plan says.
"""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from discreet import checks
from discreet.agreement.plan import Decisions, Plan
from discreet.arrays import Floats
from discreet.bandit import Bandit
from discreet.domain.box import Box
from discreet.errors import InvalidArgument, LargeDelta
from discreet.features.choose import Method
from discreet.features.kernels import SquaredExponential
from discreet.learning.search import spread
from discreet.learning.study import Study
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate, Privacy, Simulation
from discreet.privacy.encodings import EncodingChoice
from discreet.simulation.worlds import MakeProblem, Options, Problem, World, row_of, values_of
from discreet.threads import one_thread

Model = Literal["none", "joint", "local", "random"]


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
    features: Method = "grid"
    privacy: Privacy = field(default_factory=NonPrivate)
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def __post_init__(self) -> None:
        checks.count("rounds", self.rounds)
        needed = {"joint": JointDP, "local": LocalDP}.get(self.model, NonPrivate)
        if type(self.privacy) is not needed:
            raise InvalidArgument("privacy", f"{needed.__name__} for model {self.model!r}")


@dataclass(frozen=True, eq=False)
class Run:
    """One simulated study: the regret of each round, the public record, and its CPU time."""

    problem: Problem
    regrets: Floats
    study: Study | None
    seconds: float


class BanditPlayer:
    """A bandit that asks and tells one round after the other."""

    def __init__(self, plan: Plan, simulation: Simulation) -> None:
        self.bandit = Bandit(plan, simulation=simulation)

    def act(self, options: Options) -> Floats:
        """Ask."""
        domain, user = self.bandit.plan.domain, f"user {self.bandit.asked}"
        if isinstance(options, Mapping):
            self._trial = self.bandit.ask(context=options, user=user)
        elif options is None:
            self._trial = self.bandit.ask(user=user)
        else:
            self._trial = self.bandit.ask(values_of(domain, options), user=user)
            if self._trial.chosen is not None:
                return options[self._trial.chosen]
        return row_of(domain, self._trial.action)

    def hear(self, reward: float) -> None:
        """Tell."""
        self.bandit.tell(self._trial, reward)


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
    advance: Callable[[int], None] = lambda rounds: None,
) -> Run:
    """Play one study; (seed, run) fixes the problem, the answers and the player.

    `advance` is called with the number of rounds just played, for a progress bar.
    """
    world = World.draw(make_problem, seed=seed, run=run)
    if setting.model == "random":
        uniform = UniformPlayer(world.problem.domain, world.player)
        regrets, seconds = world.play(uniform, setting.rounds, advance)
        return Run(world.problem, regrets, None, seconds)
    plan = plan_for(world.problem, setting, world.decisions, f"simulation {seed}.{run}")
    player = BanditPlayer(plan, Simulation(int(world.player.integers(2**63))))
    regrets, seconds = world.play(player, setting.rounds, advance)
    player.bandit.finish()
    return Run(world.problem, regrets, player.bandit.study, seconds)


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


def summary(runs: list[Run]) -> dict[str, object]:
    """Mean, standard error and thinned curve of the regret over runs, as plain data."""
    totals = np.array([float(run.regrets.sum()) for run in runs])
    rounds = len(runs[0].regrets)
    plan = None if runs[0].study is None else runs[0].study.plan
    return {
        "rounds": rounds,
        "runs": len(runs),
        "regret_mean": float(totals.mean()),
        "regret_sem": standard_error(totals),
        "regrets": totals.tolist(),
        "regret_curve": asdict(regret_curve(np.array([run.regrets for run in runs]))),
        "features": None if plan is None else plan.map.dimension,
        "kernel_error": None if plan is None else plan.map.error_bound,
        "encoding": None if plan is None else plan.encoding,
        "noise_std": None if runs[0].study is None else first_noise(runs[0].study),
        "seconds_per_round": sum(run.seconds for run in runs) / (rounds * len(runs)),
        "private": False,
    }


@dataclass(frozen=True)
class Curve:
    """Regret so far after some of the rounds: its mean over runs and its standard error."""

    round: list[int]
    mean: list[float]
    sem: list[float | None]


def regret_curve(regrets: Floats) -> Curve:
    """At most 100 rounds, evenly spaced in orders of magnitude, of regrets (runs, rounds).

    >>> regret_curve(np.ones((2, 3)))
    Curve(round=[1, 2, 3], mean=[1.0, 2.0, 3.0], sem=[0.0, 0.0, 0.0])
    """
    curves = np.cumsum(regrets, axis=1)
    powers = np.linspace(0.0, math.log10(curves.shape[1]), 100)
    shown = np.unique((10**powers).astype(np.int64))
    return Curve(
        round=shown.tolist(),
        mean=curves[:, shown - 1].mean(axis=0).tolist(),
        sem=[standard_error(curves[:, t - 1]) for t in shown],
    )


def first_noise(study: Study) -> float:
    """The noise on a coordinate of the first release's cross vector, in half-widths of rewards."""
    first = study.epochs[0]
    return study.plan.noise_of_sum(first.encoding, first.length).noise.cross


def standard_error(values: Floats) -> float | None:
    """The standard error of the mean; None for a single value, which has none.

    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    if len(values) < 2:
        return None
    return float(values.std(ddof=1) / np.sqrt(len(values)))
