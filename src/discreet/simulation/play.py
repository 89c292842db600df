"""plan x problem -> regret: what a plan does in a world we made up.

Regret is pseudo-regret, by true means: sum over rounds of max over D_t of f, minus f(x_t).
Everything here is seeded and therefore not private, whatever the plan says.
"""

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from scipy.optimize import minimize

from discreet import checks
from discreet.agreement.plan import Decisions, Plan
from discreet.arrays import Floats
from discreet.bandit import Bandit
from discreet.domain.box import Box, Categorical
from discreet.errors import InvalidArgument, LargeDelta
from discreet.features.choose import Method
from discreet.features.kernels import SquaredExponential
from discreet.learning.search import latin_hypercube, spread
from discreet.learning.study import Study, Value
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate, Privacy, Simulation
from discreet.privacy.encodings import EncodingChoice

#: What a user brings: candidates, one a row in natural units; a context; or nothing: the whole box.
Options = Floats | Mapping[str, Value] | None
Model = Literal["none", "joint", "local", "random"]


class Problem(Protocol):
    """What a simulation needs to know of the world.

    Points are rows in natural units; a category is its position among the values. A problem may
    also have a `kernel` and, where the whole box is allowed, the `maximum` of its mean; otherwise
    a default kernel is used and the maximum is searched for. Where users bring a context it must
    have `maximum_under(context)`.
    """

    @property
    def domain(self) -> Box:
        """Where actions live."""
        ...

    @property
    def rewards(self) -> tuple[float, float]:
        """The clipping range."""
        ...

    def decision_set(self, rng: np.random.Generator) -> Options:
        """What this round's user brings."""
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


class Player(Protocol):
    """Chooses actions in natural units and hears what they brought."""

    def act(self, options: Options) -> Floats:
        """The action of this round."""
        ...

    def hear(self, reward: float) -> None:
        """The reward of the action just given."""
        ...


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


@dataclass(frozen=True, eq=False)
class World:
    """A problem and its dice; (seed, run) fixes both, so that players can be compared in pairs.

    `best` is the maximum of the mean over the box, None unless all of it is allowed. The player
    has dice of its own, so what it draws does not change what people answer.
    """

    problem: Problem
    decisions: Decisions
    best: float | None
    answers: np.random.Generator
    player: np.random.Generator

    @classmethod
    def draw(cls, make_problem: MakeProblem, *, seed: int, run: int = 0) -> "World":
        """The world of one run, to be played once."""
        streams = np.random.SeedSequence([seed, run]).spawn(3)
        draw, answers, player = (np.random.Generator(np.random.Philox(each)) for each in streams)
        problem = make_problem(draw)
        decisions = kind_of(problem.decision_set(draw))
        best = best_mean(problem) if decisions == "box" else None
        return cls(problem, decisions, best, answers, player)

    def play(
        self, player: Player, rounds: int, advance: Callable[[int], None] = lambda rounds: None
    ) -> tuple[Floats, float]:
        """The regret of each round, and the CPU time of all."""
        begun = time.process_time()
        regrets = play(
            self.problem, player, rounds, best=self.best, rng=self.answers, advance=advance
        )
        return regrets, time.process_time() - begun


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


def play(
    problem: Problem,
    player: Player,
    rounds: int,
    *,
    best: float | None,
    rng: np.random.Generator,
    advance: Callable[[int], None],
) -> Floats:
    """The regret of each round; `best` is the maximum of the mean over the box, if all of it is
    allowed. Users and their answers come from `rng`, as many draws whatever is played.
    """
    regrets = np.empty(rounds)
    for t in range(rounds):
        options = problem.decision_set(rng)
        action = player.act(options)
        player.hear(problem.reward(action, rng))
        regrets[t] = _ceiling(problem, options, best) - float(problem.mean(action[None, :])[0])
        advance(1)
    return regrets


def _ceiling(problem: Problem, options: Options, best: float | None) -> float:
    """The highest mean among the options."""
    if isinstance(options, Mapping):
        maximum_under = getattr(problem, "maximum_under", None)
        if maximum_under is None:
            raise InvalidArgument("problem", "maximum_under(context), where users bring one")
        return float(maximum_under(options))
    if options is not None:
        return float(problem.mean(options).max())
    if best is None:
        raise InvalidArgument("problem", "decision sets in every round, or in none")
    return best


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
    values = problem.mean(rows_of(domain, points))
    refined = [
        minimize(
            lambda point: -float(problem.mean(rows_of(domain, domain.snap(point[None, :])))[0]),
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


def kind_of(options: Options) -> Decisions:
    """What a plan calls users who bring this.

    >>> kind_of(None), kind_of({"age": 61}), kind_of(np.zeros((25, 2)))
    ('box', 'context', 'candidates')
    """
    if options is None:
        return "box"
    return "context" if isinstance(options, Mapping) else "candidates"


def row_of(domain: Box, action: Mapping[str, Value]) -> Floats:
    """An action as numbers; a category is its position.

    >>> row_of(Box({"dose": (0, 10), "arm": Categorical(("a", "b"))}), {"dose": 5.0, "arm": "b"})
    array([5., 1.])
    """
    return np.array([domain.coordinate(name).number(value) for name, value in action.items()])


def values_of(domain: Box, rows: Floats) -> Floats | list[list[Value]]:
    """Rows of numbers as a bandit takes them: where there are categories, by their names.

    >>> values_of(Box({"dose": (0, 10), "arm": Categorical(("a", "b"))}), np.array([[5.0, 1.0]]))
    [[5.0, 'b']]
    """
    coordinates = [domain.coordinate(name) for name in domain.names]
    if not any(isinstance(coordinate, Categorical) for coordinate in coordinates):
        return rows
    return [
        [coordinate.value(number) for coordinate, number in zip(coordinates, row, strict=True)]
        for row in rows.tolist()
    ]


def rows_of(domain: Box, points: Floats) -> Floats:
    """Scaled points as rows of numbers in natural units."""
    return np.array([row_of(domain, domain.decode(point)) for point in points])
