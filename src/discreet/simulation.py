"""plan x problem -> regret: what a plan does in a world we made up.

Regret is pseudo-regret, by true means: sum over rounds of max over D_t of f, minus f(x_t).
Everything here is seeded and therefore not private, whatever the plan says.
"""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from discreet import checks
from discreet.bandit import Bandit
from discreet.budget import JointDP, NonPrivate, Privacy, Simulation
from discreet.domain import Box, Categorical
from discreet.encodings import EncodingChoice
from discreet.errors import InvalidArgument, LargeDelta, Refused
from discreet.features import Method
from discreet.kernels import Kernel, SquaredExponential
from discreet.plan import Plan
from discreet.search import latin_hypercube, spread
from discreet.study import Study

Floats = NDArray[np.float64]
Model = Literal["none", "joint", "local", "random"]


class Problem(Protocol):
    """What a simulation needs to know of the world.

    A problem may also have a `kernel` and, where the whole box is allowed, the `maximum` of its
    mean; otherwise a default kernel is used and the maximum is searched for.
    """

    @property
    def domain(self) -> Box:
        """Where actions live; numbers only, and no context."""
        ...

    @property
    def rewards(self) -> tuple[float, float]:
        """The clipping range."""
        ...

    def decision_set(self, rng: np.random.Generator) -> Floats | None:
        """This round's points, one a row in natural units; None for the whole box."""
        ...

    def mean(self, x: Floats) -> Floats:
        """The true mean reward at each row."""
        ...

    def reward(self, x: Floats, rng: np.random.Generator) -> float:
        """One user's answer to the action x."""
        ...


MakeProblem = Callable[[np.random.Generator], Problem]


@dataclass(frozen=True)
class Setting:
    """How to play: the model of privacy, and the parts of a plan that simulations vary.

    >>> Setting(model="none", rounds=100).encoding
    'auto'
    """

    model: Model = "none"
    rounds: int = 1000
    encoding: EncodingChoice = "auto"
    features: Method = "grid"
    privacy: Privacy = field(default_factory=NonPrivate)

    def __post_init__(self) -> None:
        checks.count("rounds", self.rounds)
        if self.model == "local":
            raise Refused("model 'local' is not in this version: use 'joint', 'none' or 'random'")
        if (self.model == "joint") != isinstance(self.privacy, JointDP):
            raise InvalidArgument("privacy", "JointDP for model 'joint', and for no other")


@dataclass(frozen=True, eq=False)
class Run:
    """One simulated study: the regret of each round, the public record, and its CPU time."""

    problem: Problem
    regrets: Floats
    study: Study | None
    seconds: float


class Player(Protocol):
    """Chooses actions in natural units and hears what they brought."""

    def act(self, options: Floats | None) -> Floats:
        """The action of this round."""
        ...

    def hear(self, reward: float) -> None:
        """The reward of the action just given."""
        ...


class BanditPlayer:
    """A bandit that asks and tells one round after the other."""

    def __init__(self, plan: Plan, simulation: Simulation) -> None:
        self.bandit = Bandit(plan, simulation=simulation)

    def act(self, options: Floats | None) -> Floats:
        """Ask."""
        self._trial = self.bandit.ask(options, user=f"user {self.bandit.asked}")
        if options is not None and self._trial.chosen is not None:
            return options[self._trial.chosen]
        return np.array([float(value) for value in self._trial.action.values()])

    def hear(self, reward: float) -> None:
        """Tell."""
        self.bandit.tell(self._trial, reward)


class UniformPlayer:
    """Plays uniformly at random and learns nothing: the yardstick."""

    def __init__(self, domain: Box, rng: np.random.Generator) -> None:
        self._domain, self._rng = domain, rng

    def act(self, options: Floats | None) -> Floats:
        """Any option, each as likely as the other."""
        if options is not None:
            return options[self._rng.integers(len(options))]
        point = spread(self._domain, 1, self._rng)[0]
        return np.array([float(value) for value in self._domain.decode(point).values()])

    def hear(self, reward: float) -> None:
        """Nothing is learnt."""


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
    streams = np.random.SeedSequence([seed, run]).spawn(3)
    draw, world, own = (np.random.Generator(np.random.Philox(stream)) for stream in streams)
    problem = make_problem(draw)
    _check_numbers_only(problem.domain)
    whole_box = problem.decision_set(draw) is None
    best = best_mean(problem) if whole_box else None
    if setting.model == "random":
        player: BanditPlayer | UniformPlayer = UniformPlayer(problem.domain, own)
    else:
        plan = plan_for(problem, setting, whole_box, f"simulation {seed}.{run}")
        player = BanditPlayer(plan, Simulation(int(own.integers(2**63))))
    regrets = np.empty(setting.rounds)
    begun = time.process_time()
    for t in range(setting.rounds):
        options = problem.decision_set(world)
        action = player.act(options)
        player.hear(problem.reward(action, world))
        ceiling = best if options is None else float(problem.mean(options).max())
        if ceiling is None:
            raise InvalidArgument("problem", "decision sets in every round, or in none")
        regrets[t] = ceiling - float(problem.mean(action[None, :])[0])
        advance(1)
    seconds = time.process_time() - begun
    if isinstance(player, UniformPlayer):
        return Run(problem, regrets, None, seconds)
    player.bandit.finish()
    return Run(problem, regrets, player.bandit.study, seconds)


def plan_for(problem: Problem, setting: Setting, whole_box: bool, name: str) -> Plan:
    """The plan of a simulated study: defaults, but for what the problem and setting say."""
    default: Kernel = SquaredExponential()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeDelta)  # nobody is real here
        return Plan(
            domain=problem.domain,
            privacy=setting.privacy,
            kernel=getattr(problem, "kernel", default),
            rewards=problem.rewards,
            horizon=setting.rounds,
            name=name,
            decisions="box" if whole_box else "candidates",
            public_decisions=setting.privacy.protect == "rewards",
            features=setting.features,
            encoding=setting.encoding,
        )


def best_mean(problem: Problem) -> float:
    """The maximum of the mean over the box: stated by the problem, or searched for."""
    stated = getattr(problem, "maximum", None)
    if stated is not None:
        return float(stated)
    domain = problem.domain
    if domain.has_context:
        raise InvalidArgument("problem", "a domain without context, or decision sets")
    rng = np.random.Generator(np.random.Philox(0))
    points = domain.spread(latin_hypercube(20_000, len(domain.names), rng))
    values = problem.mean(_natural(domain, points))
    refined = [
        minimize(
            lambda point: -float(problem.mean(_natural(domain, domain.snap(point[None, :])))[0]),
            points[start],
            method="Nelder-Mead",
        )
        for start in np.argsort(values)[-8:]
    ]
    inside = [-float(found.fun) for found in refined if domain.admits(domain.snap([found.x]))[0]]
    return max([float(values.max()), *inside])


def summary(runs: list[Run]) -> dict[str, object]:
    """Mean, standard error and thinned curve of the regret over runs, as plain data."""
    totals = np.array([float(run.regrets.sum()) for run in runs])
    curves = np.cumsum([run.regrets for run in runs], axis=1)
    rounds = curves.shape[1]
    shown = np.unique((10 ** np.linspace(0.0, math.log10(rounds), 100)).astype(np.int64))
    plan = None if runs[0].study is None else runs[0].study.plan
    return {
        "rounds": rounds,
        "runs": len(runs),
        "regret_mean": float(totals.mean()),
        "regret_sem": standard_error(totals),
        "regrets": totals.tolist(),
        "regret_curve": {
            "round": shown.tolist(),
            "mean": curves[:, shown - 1].mean(axis=0).tolist(),
            "sem": [standard_error(curves[:, t - 1]) for t in shown],
        },
        "features": None if plan is None else plan.map.dimension,
        "kernel_error": None if plan is None else plan.map.error_bound,
        "encoding": None if plan is None else plan.encoding,
        "noise_std": None if runs[0].study is None else first_noise(runs[0].study),
        "seconds_per_round": sum(run.seconds for run in runs) / (rounds * len(runs)),
        "private": False,
    }


def first_noise(study: Study) -> float:
    """The noise on a coordinate of the first release's cross vector, in half-widths of rewards."""
    return study.epochs[0].encoding.noise.cross


def standard_error(values: Floats) -> float | None:
    """The standard error of the mean; None for a single value, which has none.

    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    if len(values) < 2:
        return None
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _check_numbers_only(domain: Box) -> None:
    if any(isinstance(domain.coordinate(name), Categorical) for name in domain.names):
        raise InvalidArgument("problem", "a domain of numbers: no categorical coordinates")


def _natural(domain: Box, points: Floats) -> Floats:
    return np.array([[float(v) for v in domain.decode(point).values()] for point in points])
