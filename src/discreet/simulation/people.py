"""What many people bring, and what they could have had: all at once where a problem can.

A problem says what one person brings (`decision_set`) and answers (`reward`). It may also say it
for many, which is what makes long simulations fast:

- `decision_sets(count, rng)`: an array (people, candidates, coordinates), or columns by name of
  the contexts;
- `answers(x, rng)`: an answer to each row;
- `maxima_under(contexts)`: the highest mean under each context, given as columns by name.

What is missing is asked for one person after the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from discreet.agreement.plan import Decisions
from discreet.arrays import Floats, Indices, as_rows
from discreet.domain.box import Box
from discreet.domain.points import as_numbers
from discreet.errors import InvalidArgument
from discreet.learning.study import Value

#: What a user brings: candidates, one a row in natural units; a context; or nothing: the whole box.
Options = Floats | Mapping[str, Value] | None
#: Contexts of many people: a value each, by name.
Columns = Mapping[str, Sequence[Value] | NDArray[Any]]


class Problem(Protocol):
    """What a simulation needs to know of the world.

    Points are rows in natural units; a category is its position among the values. A problem may
    also have a `kernel` and, where the whole box is allowed, the `maximum` of its mean; otherwise
    a default kernel is used and the maximum is searched for. Where users bring a context it must
    have `maximum_under(context)`. What it may say of many people at once is in this module's
    docstring.
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


class People(Protocol):
    """Some people in a row, who all bring the same kind of thing."""

    def __len__(self) -> int:
        """How many."""
        ...

    def part(self, some: slice) -> "People":
        """Some of them."""
        ...

    def each(self) -> Iterator[Options]:
        """What one after the other brings, in natural units."""
        ...

    def scaled(self) -> Sequence[Floats | None]:
        """What each brings, in the unit cube."""
        ...

    def actions(self, points: Floats, positions: Indices | None) -> Floats:
        """Scaled actions, chosen at these positions of candidates, in natural units."""
        ...

    def uniform_actions(self, rng: np.random.Generator) -> Floats:
        """For each any of their options, in natural units, each as likely as the other."""
        ...

    def ceilings(self) -> Floats:
        """The highest mean that each could have had."""
        ...


def bring(
    problem: Problem, decisions: Decisions, best: float | None, count: int, rng: np.random.Generator
) -> People:
    """The next people; `best` is the maximum of the mean, where all of the box is allowed.

    >>> from discreet.simulation.problems import CAMELBACK
    >>> rng = np.random.Generator(np.random.Philox(0))
    >>> bring(CAMELBACK, "box", CAMELBACK.maximum, 2, rng).ceilings().tolist()
    [0.2063257, 0.2063257]
    """
    together = getattr(problem, "decision_sets", None)
    if decisions == "box" or not callable(together):
        brought: Any = [problem.decision_set(rng) for _ in range(count)]
        if {kind_of(each) for each in brought} != {decisions}:
            raise InvalidArgument("problem", "decision sets in every round, or in none")
    else:
        brought = together(count, rng)
    if decisions == "box":
        return Anyone(problem, best or 0.0, count)
    if decisions == "candidates":
        columns = len(problem.domain.names)
        return Choosing(problem, tuple(as_rows("candidates", each, columns) for each in brought))
    return InContext.of(problem, brought)


def answers(problem: Problem, actions: Floats, rng: np.random.Generator) -> Floats:
    """An answer to each action."""
    together = getattr(problem, "answers", None)
    if callable(together):
        values = np.asarray(together(actions, rng), dtype=np.float64)
    else:
        values = np.array([problem.reward(action, rng) for action in actions], dtype=np.float64)
    if values.shape != (len(actions),) or not np.isfinite(values).all():
        raise InvalidArgument("problem", "a finite number for every reward")
    return values


def kind_of(options: Options) -> Decisions:
    """What a plan calls users who bring this.

    >>> kind_of(None), kind_of({"age": 61}), kind_of(np.zeros((25, 2)))
    ('box', 'context', 'candidates')
    """
    if options is None:
        return "box"
    return "context" if isinstance(options, Mapping) else "candidates"


@dataclass(frozen=True, eq=False)
class Anyone:
    """People who may take any action of the box."""

    problem: Problem
    best: float
    count: int

    def __len__(self) -> int:
        return self.count

    def part(self, some: slice) -> "Anyone":
        """So many of them."""
        return Anyone(self.problem, self.best, len(range(*some.indices(self.count))))

    def each(self) -> Iterator[None]:
        """Nothing."""
        yield from (None,) * self.count

    def scaled(self) -> Sequence[None]:
        """Nothing."""
        return (None,) * self.count

    def actions(self, points: Floats, positions: Indices | None) -> Floats:
        """The points in natural units."""
        return self.problem.domain.numbers(points)

    def uniform_actions(self, rng: np.random.Generator) -> Floats:
        """Anything in the box."""
        return _uniform(self.problem.domain, self.count, rng)

    def ceilings(self) -> Floats:
        """The same for all."""
        return np.full(self.count, self.best)


@dataclass(frozen=True, eq=False)
class InContext:
    """People who bring contexts, by name and scaled."""

    problem: Problem
    contexts: Columns
    rows: Floats

    @classmethod
    def of(cls, problem: Problem, brought: Columns | Sequence[Mapping[str, Value]]) -> "InContext":
        """From columns, or from one mapping a person."""
        domain = problem.domain
        if isinstance(brought, Mapping):
            return cls(problem, brought, encode_contexts(domain, brought))
        rows = np.array([domain.encode_context(each) for each in brought])
        columns = {name: [each[name] for each in brought] for name in domain.context}
        return cls(problem, columns, rows)

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, some: slice) -> "InContext":
        """Some of them."""
        contexts = {name: values[some] for name, values in self.contexts.items()}
        return InContext(self.problem, contexts, self.rows[some])

    def each(self) -> Iterator[Mapping[str, Value]]:
        """One context after the other."""
        columns = [np.asarray(values).tolist() for values in self.contexts.values()]
        for row in zip(*columns, strict=True):
            yield dict(zip(self.contexts, row, strict=True))

    def scaled(self) -> Sequence[Floats]:
        """The scaled contexts."""
        return cast(Sequence[Floats], self.rows)

    def actions(self, points: Floats, positions: Indices | None) -> Floats:
        """The points in natural units."""
        return self.problem.domain.numbers(points)

    def uniform_actions(self, rng: np.random.Generator) -> Floats:
        """Anything that their context leaves free."""
        return _uniform(self.problem.domain, len(self.rows), rng, self.rows)

    def ceilings(self) -> Floats:
        """The highest mean under each context."""
        together = getattr(self.problem, "maxima_under", None)
        if callable(together):
            return cast(Floats, together(self.contexts))
        one = getattr(self.problem, "maximum_under", None)
        if one is None:
            raise InvalidArgument("problem", "maximum_under(context), where users bring one")
        return np.array([float(one(context)) for context in self.each()])


@dataclass(frozen=True, eq=False)
class Choosing:
    """People who bring candidates: an array of rows in natural units each."""

    problem: Problem
    sets: Sequence[Floats]

    def __len__(self) -> int:
        return len(self.sets)

    def part(self, some: slice) -> "Choosing":
        """Some of them."""
        return Choosing(self.problem, self.sets[some])

    def each(self) -> Iterator[Floats]:
        """One set after the other."""
        return iter(self.sets)

    def scaled(self) -> Sequence[Floats]:
        """The scaled candidates."""
        return np.split(self.problem.domain.encode_numbers(self._all), self._ends[:-1])

    def actions(self, points: Floats, positions: Indices | None) -> Floats:
        """The candidates at these positions, as they were brought."""
        if positions is None:
            raise InvalidArgument("positions", "one among the candidates of each")
        return self._all[self._ends - self._counts + positions]

    def uniform_actions(self, rng: np.random.Generator) -> Floats:
        """Any of their candidates."""
        return self.actions(self._all, rng.integers(self._counts))

    def ceilings(self) -> Floats:
        """The highest mean among the candidates of each."""
        return np.maximum.reduceat(self.problem.mean(self._all), self._ends - self._counts)

    @cached_property
    def _all(self) -> Floats:
        return np.concatenate(self.sets)

    @cached_property
    def _counts(self) -> Indices:
        counts = np.array([len(each) for each in self.sets], dtype=np.intp)
        if not counts.all():
            raise InvalidArgument("candidates", "a non-empty sequence of points")
        return counts

    @cached_property
    def _ends(self) -> Indices:
        return np.cumsum(self._counts)


def encode_contexts(domain: Box, contexts: Columns) -> Floats:
    """Contexts given as columns, a scaled row each.

    >>> box = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
    >>> encode_contexts(box, {"age": [36, 90]}).tolist()
    [[0.25], [1.0]]
    """
    if set(contexts) != set(domain.context):
        raise InvalidArgument("contexts", f"a column for each of {', '.join(domain.context)}")
    scaled: list[Floats] = []
    for name in domain.context:
        coordinate = domain.coordinate(name)
        numbers = as_numbers(coordinate, contexts[name])
        if not coordinate.holds(numbers).all():
            raise InvalidArgument("contexts", f"{name} to be {coordinate.expected}")
        scaled.append(coordinate.scale(numbers))
    return np.concatenate(scaled, axis=1)


def _uniform(
    domain: Box, count: int, rng: np.random.Generator, contexts: Floats | None = None
) -> Floats:
    """Uniform actions that the domain admits, under a context each where people bring one."""
    points, left = np.empty((count, domain.dimension)), np.arange(count)
    while len(left):
        fixed = None if contexts is None else contexts[left]
        found = domain.place(rng.random((len(left), len(domain.names))), context=fixed)
        admitted = domain.admits(found)
        points[left[admitted]] = found[admitted]
        left = left[~admitted]
    return domain.numbers(points)
