"""How a study begins: first actions that somebody stands behind, and who is expected to come.

Everything here is part of a public plan. **No participant's row belongs in it**: what a sample of
public contexts tells of each coordinate is stored, and everyone may read it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from discreet import checks
from discreet.arrays import Floats
from discreet.domain.box import Box, Categorical, Continuous
from discreet.errors import InvalidArgument

#: A value of one coordinate, as people write it.
Setting = float | int | str
#: Actions, or a region of them.
FirstActions = tuple[Mapping[str, Setting], ...] | Box

#: First asks lie within this share of the range from where they are to begin.
NEAR = 0.1


@dataclass(frozen=True)
class Around:
    """A context that is a number: its mean and standard deviation among the people to come.

    >>> Around(61, 12)
    Around(mean=61.0, std=12.0)
    """

    mean: float
    std: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", checks.number("mean", self.mean))
        object.__setattr__(self, "std", checks.number("std", self.std, above=0.0))


@dataclass(frozen=True)
class Shares:
    """A context that is a category: the share of each among the people to come.

    >>> Shares({"f": 3, "m": 1}).shares
    {'f': 0.75, 'm': 0.25}
    """

    shares: Mapping[str, float]

    def __post_init__(self) -> None:
        given = {k: checks.number("shares", v, at_least=0.0) for k, v in self.shares.items()}
        total = math.fsum(given.values())
        if not total > 0.0:
            raise InvalidArgument("shares", "a positive number for some category")
        object.__setattr__(self, "shares", {k: v / total for k, v in given.items()})


ContextLaws = Mapping[str, Around | Shares]


# -- who is expected


def context_laws(given: object, domain: Box) -> ContextLaws:
    """What is said of each context: a law, a pair (mean, std), shares, or a public sample.

    >>> box = Box({"dose": (0, 1), "age": (18, 90)}, context=["age"])
    >>> context_laws({"age": (61, 12)}, box)
    {'age': Around(mean=61.0, std=12.0)}
    >>> context_laws([{"age": 50}, {"age": 70}], box)
    {'age': Around(mean=60.0, std=10.0)}
    """
    words = "laws by name of a context, or a public sample: rows, or columns by name"
    if not domain.has_context:
        raise InvalidArgument("public_contexts", "nothing: the domain has no context")
    if isinstance(given, Sequence) and not isinstance(given, str):
        rows = cast(Sequence[Any], given)
        if not all(isinstance(row, Mapping) for row in rows):
            raise InvalidArgument("public_contexts", words)
        given = {name: [row[name] for row in rows if name in row] for name in domain.context}
    if not isinstance(given, Mapping):
        raise InvalidArgument("public_contexts", words)
    laws = cast(Mapping[str, Any], given)
    unknown = [name for name in laws if name not in domain.context]
    if unknown:
        raise InvalidArgument("public_contexts", f"contexts: {', '.join(domain.context)}", unknown)
    return {name: _law(name, laws[name], domain) for name in domain.context if name in laws}


def _law(name: str, given: Any, domain: Box) -> Around | Shares:
    coordinate, argument = domain.coordinate(name), f"public_contexts.{name}"
    is_category = isinstance(coordinate, Categorical)
    if isinstance(given, tuple) and not is_category:
        pair = cast(tuple[Any, ...], given)
        if len(pair) != 2:
            raise InvalidArgument(argument, "a pair (mean, standard deviation)")
        given = Around(*pair)
    elif isinstance(given, Mapping) and is_category:
        given = Shares(cast(Mapping[str, float], given))
    elif not isinstance(given, Around | Shares):
        given = _of_sample(argument, given, coordinate)
    if isinstance(given, Shares) is not is_category:
        wanted = "Shares of its categories" if is_category else "Around(mean, std)"
        raise InvalidArgument(argument, wanted)
    if isinstance(given, Shares) and not set(given.shares) <= set(_values(coordinate)):
        raise InvalidArgument(argument, f"shares of {', '.join(_values(coordinate))}")
    return given


def _of_sample(argument: str, sample: Any, coordinate: Any) -> Around | Shares:
    numbers = np.array([coordinate.number(value) for value in sample], dtype=np.float64)
    if len(numbers) < 2 or not coordinate.holds(numbers).all():
        raise InvalidArgument(argument, f"at least two values, each {coordinate.expected}")
    if isinstance(coordinate, Categorical):
        counts = np.bincount(numbers.astype(np.intp), minlength=coordinate.count) + 1.0
        return Shares(dict(zip(coordinate.values, counts.tolist(), strict=True)))
    least = 0.01 * (coordinate.high - coordinate.low)
    return Around(float(numbers.mean()), max(float(numbers.std()), least))


def _values(coordinate: Any) -> tuple[str, ...]:
    return coordinate.values if isinstance(coordinate, Categorical) else ()


# -- first actions


def free_box(domain: Box) -> Box:
    """The coordinates that are ours to choose, by themselves."""
    return Box({name: domain.coordinate(name) for name in domain.free})


def first_actions(given: object, domain: Box) -> FirstActions:
    """A list of actions, or a region: a Box of some free coordinates, within the domain."""
    words = "a list of actions by name, or a Box within the domain"
    if isinstance(given, Box):
        if not set(given.names) <= set(domain.free):
            raise InvalidArgument("explore", f"a region of {', '.join(domain.free)}", given.names)
        for name in given.names:
            _check_within(name, given.coordinate(name), domain.coordinate(name))
        return given
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise InvalidArgument("explore", words)
    rows = cast(Sequence[Any], given)
    if not all(isinstance(row, Mapping) for row in rows):
        raise InvalidArgument("explore", words)
    free_box(domain).encode(rows, argument="explore")
    return tuple(_settled(row, domain) for row in rows)


def _check_within(name: str, part: Any, whole: Any) -> None:
    fits = type(part) is type(whole)
    if fits and isinstance(whole, Categorical):
        fits = set(part.values) <= set(whole.values)
    elif fits:
        fits = whole.low <= part.low and part.high <= whole.high
    if not fits:
        raise InvalidArgument("explore", f"{name} within its coordinate of the domain")


def start_action(given: object, domain: Box) -> Mapping[str, Setting]:
    """One action, by name."""
    if not isinstance(given, Mapping):
        raise InvalidArgument("start", "an action by name, such as {'dose': 5}")
    action = dict(cast(Mapping[str, Setting], given))
    free_box(domain).encode([action], argument="start")
    return _settled(action, domain)


def _settled(action: Mapping[str, Setting], domain: Box) -> Mapping[str, Setting]:
    """The same, however it was written: a dose of 5 is one of 5.0."""
    coordinates = {name: domain.coordinate(name) for name in action}
    return {name: each.value(each.number(action[name])) for name, each in coordinates.items()}


def design(
    domain: Box, explore: FirstActions | None, start: Mapping[str, Setting] | None, spread: Floats
) -> Floats:
    """Scaled first actions: as listed, in the region, or near the start.

    `spread` are rows that fill the domain; only the columns that are ours to choose change.

    >>> box = Box({"dose": (0, 10), "age": (0, 100)}, context=["age"])
    >>> design(box, ({"dose": 2}, {"dose": 3}), None, np.array([[0.9, 0.5]] * 3)).tolist()
    [[0.2, 0.5], [0.3, 0.5], [0.2, 0.5]]
    """
    free, columns = free_box(domain), list(domain.free_columns)
    rows = spread.copy()
    if isinstance(explore, Box):
        for name in explore.names:
            rows[:, domain.columns(name)] = _within(name, explore, domain, spread)
    elif explore is not None:
        listed = free.encode(cast(Any, explore))
        rows[:, columns] = listed[np.arange(len(rows)) % len(listed)]
    elif start is not None:
        middle = free.encode([start])[0]
        steps = NEAR * (2.0 * spread[:, columns] - 1.0) * free.movable
        rows[:, columns] = middle + steps
    return domain.snap(rows)


def _within(name: str, region: Box, domain: Box, spread: Floats) -> Floats:
    """The column's spread, put into the region."""
    part, whole = region.coordinate(name), domain.coordinate(name)
    own = spread[:, domain.columns(name)]
    if isinstance(part, Categorical):
        values = [whole.number(value) for value in part.values]
        return whole.scale(np.array(values)[np.arange(len(own)) % len(values)])
    low, high = whole.scale(np.array([part.low, part.high], dtype=np.float64))[:, 0]
    placed = low + (high - low) * own
    return placed if isinstance(part, Continuous) else whole.scale(whole.unscale(placed))
