"""Worlds we made up: a problem, its people and their answers, and players who act in them.

Regret is pseudo-regret, by true means: sum over rounds of max over D_t of f, minus f(x_t).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from discreet.agreement.plan import Decisions
from discreet.arrays import Floats
from discreet.domain.box import Box, Categorical
from discreet.errors import InvalidArgument
from discreet.learning.search import latin_hypercube
from discreet.learning.study import Value

#: What a user brings: candidates, one a row in natural units; a context; or nothing: the whole box.
Options = Floats | Mapping[str, Value] | None


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


class Player(Protocol):
    """Chooses actions in natural units and hears what they brought."""

    def act(self, options: Options) -> Floats:
        """The action of this round."""
        ...

    def hear(self, reward: float) -> None:
        """The reward of the action just given."""
        ...


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


# -- actions as rows of numbers


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
