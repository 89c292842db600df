"""Worlds we made up: a problem, its people and their answers, and players who act in them.

Regret is pseudo-regret, by true means: sum over rounds of max over D_t of f, minus f(x_t).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from discreet.agreement.plan import Decisions
from discreet.arrays import Floats
from discreet.domain.box import Box
from discreet.errors import InvalidArgument
from discreet.learning.search import latin_hypercube
from discreet.learning.study import Value
from discreet.simulation.people import Options, People, Problem, answers, bring, kind_of

#: So many people come together: enough for speed, few enough for memory.
TOGETHER = 1024

MakeProblem = Callable[[np.random.Generator], Problem]


class Player(Protocol):
    """Chooses actions in natural units and hears what they brought."""

    def act(self, options: Options) -> Floats:
        """The action of this round."""
        ...

    def hear(self, reward: float) -> None:
        """The reward of the action just given."""
        ...


class Crowd:
    """The people of a run, in order, and their answers.

    They are drawn so many together, whoever plays and however long epochs are: person t brings the
    same, and answers the same action alike, in every run of a world. So players are compared in
    pairs, and all at once gives what one after the other does.
    """

    def __init__(self, world: "World", rounds: int) -> None:
        self._world, self._left = world, rounds
        self._people: People | None = None
        self._used = 0

    def next(self, most: int) -> People:
        """The next people, at most so many."""
        world = self._world
        if self._people is None or self._used == len(self._people):
            count = min(TOGETHER, self._left)
            self._left -= count
            self._people = bring(world.problem, world.decisions, world.best, count, world.people)
            self._used = 0
        some = slice(self._used, min(self._used + most, len(self._people)))
        self._used = some.stop
        return self._people if some == slice(0, len(self._people)) else self._people.part(some)

    def parts(self, count: int) -> Iterator[People]:
        """The next so many people, as many together as can be."""
        while count:
            people = self.next(count)
            count -= len(people)
            yield people

    def answers(self, actions: Floats) -> Floats:
        """What the people who come next to answer say to these actions."""
        return answers(self._world.problem, actions, self._world.answers)


@dataclass(frozen=True, eq=False)
class World:
    """A problem and its dice; (seed, run) fixes both, so that players can be compared in pairs.

    `best` is the maximum of the mean over the box, None unless all of it is allowed. People, their
    answers and the player have dice of their own: what one draws does not change the others.
    """

    problem: Problem
    decisions: Decisions
    best: float | None
    people: np.random.Generator
    answers: np.random.Generator
    player: np.random.Generator

    @classmethod
    def draw(cls, make_problem: MakeProblem, *, seed: int, run: int = 0) -> "World":
        """The world of one run, to be played once."""
        streams = np.random.SeedSequence([seed, run]).spawn(4)
        draw, answers, player, people = map(generator_of, streams)
        problem = make_problem(draw)
        decisions = kind_of(problem.decision_set(draw))
        best = best_mean(problem) if decisions == "box" else None
        return cls(problem, decisions, best, people, answers, player)

    def play(self, player: Player, rounds: int) -> tuple[Floats, float]:
        """The regret of each round of a player who acts one after the other; the CPU time of all.

        For players who learn from every round; a study is played by `epochs`.
        """
        begun, crowd, regrets = time.process_time(), Crowd(self, rounds), list[Floats]()
        for people in crowd.parts(rounds):
            actions: list[Floats] = []
            for options in people.each():
                actions.append(player.act(options))
                player.hear(float(crowd.answers(actions[-1][None, :])[0]))
            regrets.append(people.ceilings() - self.problem.mean(np.array(actions)))
        return np.concatenate(regrets), time.process_time() - begun

    def play_uniformly(self, rounds: int, advance: Callable[[int], None]) -> Floats:
        """The regret of each round of whoever plays at random and learns nothing: the yardstick."""
        regrets: list[Floats] = []
        for people in Crowd(self, rounds).parts(rounds):
            actions = people.uniform_actions(self.player)
            regrets.append(people.ceilings() - self.problem.mean(actions))
            advance(len(people))
        return np.concatenate(regrets)


def generator_of(stream: np.random.SeedSequence) -> np.random.Generator:
    """Dice of their own for each stream."""
    return np.random.Generator(np.random.Philox(stream))


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
    values = problem.mean(domain.numbers(points))
    refined = [
        minimize(
            lambda point: -float(problem.mean(domain.numbers(domain.snap(point[None, :])))[0]),
            points[start],
            method="Nelder-Mead",
        )
        for start in np.argsort(values)[-8:]
    ]
    inside = [-float(found.fun) for found in refined if domain.admits(domain.snap([found.x]))[0]]
    return max([float(values.max()), *inside])


# -- actions as rows of numbers


def row_of(domain: Box, action: Mapping[str, Value]) -> Floats:
    """An action as numbers; a category is its position.

    >>> from discreet import Categorical
    >>> row_of(Box({"dose": (0, 10), "arm": Categorical(("a", "b"))}), {"dose": 5.0, "arm": "b"})
    array([5., 1.])
    """
    return np.array([domain.coordinate(name).number(value) for name, value in action.items()])
