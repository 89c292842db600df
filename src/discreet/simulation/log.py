"""A team's past experiment: what people brought, what they got, with which chance, and the reward.

A log is read for a plan. Its columns are the coordinates of the plan's domain, by name, with
`propensity`, the probability that the logging policy gave this action to this person, and `reward`.
What it holds is private: errors name a column and a row, and never a value.
"""

import csv
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import cast

import numpy as np

from discreet import checks
from discreet.agreement.plan import Plan
from discreet.arrays import Floats, Integers, Mask
from discreet.domain.box import Box, Categorical, Continuous, Integer
from discreet.domain.coordinates import Coordinate, listing, sequence
from discreet.errors import InvalidArgument
from discreet.learning.study import Value

PROPENSITY, REWARD = "propensity", "reward"
#: More actions than this are not listed: no log has enough rows for them.
MOST_ACTIONS = 100_000
#: How often true propensities may be refused.
FALSE_ALARMS = 1e-6

#: A log as it comes: the path of a CSV file, or columns by name.
Columns = Mapping[str, Sequence[object] | Floats | Integers]
Source = str | os.PathLike[str] | Columns
#: An action by the numbers of its coordinates; a category is its position.
Key = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Log:
    """Rounds that a logging policy gave to different people, one a row.

    - `actions`: which of `options`, every action of the plan's domain; -1 where it is none of them.
    - `contexts`: what each person brought, None without contexts.
    - `propensities`: the chance of the logged action for that person.
    - `rewards`: clipped to the plan's range; `clipped` says how many were.
    - `floor`: the least chance that any option had for anyone.
    """

    plan: Plan
    options: tuple[Key, ...]
    actions: Integers
    contexts: tuple[dict[str, Value], ...] | None
    propensities: Floats
    rewards: Floats
    clipped: int
    floor: float

    @classmethod
    def read(cls, plan: Plan, source: Source, floor: float | None = None) -> "Log":
        """The log of a CSV file or of columns, checked against the plan.

        >>> from discreet import Box, Integer, NonPrivate
        >>> plan = Plan(domain=Box({"dose": Integer(1, 2)}), privacy=NonPrivate())
        >>> columns = {"dose": [1, 2, 1], "propensity": [0.5, 0.5, 0.5], "reward": [0.2, 0.9, 1.4]}
        >>> log = Log.read(plan, columns)
        >>> log.actions.tolist(), log.clipped, log.floor
        ([0, 1, 0], 1, 0.5)
        >>> Log.read(plan, columns | {"propensity": [0.5, 0.0, 0.5]})
        Traceback (most recent call last):
        discreet.errors.InvalidArgument: log: expected propensity above 0 and at most 1 (row 2)
        """
        check_replayable(plan)
        domain = plan.domain
        columns = _columns(source)
        _check_names(columns, (*domain.names, PROPENSITY, REWARD))
        numbers = {
            name: _numbers(domain.coordinate(name), name, columns[name]) for name in domain.names
        }
        for name in domain.context:
            coordinate = domain.coordinate(name)
            _check_rows(coordinate.holds(numbers[name]), f"{name} to be {coordinate.expected}")
        propensities = _plain(PROPENSITY, columns[PROPENSITY])
        _check_rows((propensities > 0) & (propensities <= 1), "propensity above 0 and at most 1")
        rewards = _plain(REWARD, columns[REWARD])
        clipped = np.clip(rewards, *plan.rewards)
        options, free = _options(domain), free_names(domain)
        place = {key: position for position, key in enumerate(options)}
        rows = zip(*(numbers[name].tolist() for name in free), strict=True)
        log = cls(
            plan=plan,
            options=options,
            actions=np.array([place.get(row, -1) for row in rows], dtype=np.int64),
            contexts=_contexts(domain, numbers),
            propensities=propensities,
            rewards=clipped,
            clipped=int(np.sum(clipped != rewards)),
            floor=_floor(propensities, floor),
        )
        log.check_support()
        return log

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def outside(self) -> int:
        """Rows whose action the plan does not allow: no plan's choice ever equals it."""
        return int(np.sum(self.actions < 0))

    @cached_property
    def everyone_may_get_all(self) -> bool:
        """Whether every option is open to everyone: no rule depends on what people bring."""
        return self.contexts is None or self.plan.domain.feasible is None

    def position(self, action: Mapping[str, Value]) -> int:
        """Which of the options an action of the plan is."""
        return self._places[key_of(self.plan.domain, action)]

    def action(self, position: int) -> dict[str, Value]:
        """An option in natural units."""
        domain = self.plan.domain
        pairs = zip(free_names(domain), self.options[position], strict=True)
        return {name: domain.coordinate(name).value(number) for name, number in pairs}

    def context(self, row: int) -> dict[str, Value] | None:
        """What the person of a row brought."""
        return None if self.contexts is None else self.contexts[row]

    def check_support(self) -> None:
        """Refuse a log that lacks an option, or whose weights say that propensities are not true.

        Whatever the logging policy, if p is its chance of the logged action and every option had
        one, then for each option a

            E[1{logged = a} / p] = 1,        Var[1{logged = a} / p] <= w - 1

        where w is 1 / the least p of a. By Bernstein's inequality a mean over n rows is off by
        more than

            b + sqrt(b^2 + 2 (w - 1) L / n),        b = w L / 3n,    L = log(2 options / 10^-6)

        for any option at most once in a million logs.
        """
        if not self.everyone_may_get_all:
            return
        inside = self.actions >= 0
        own, weights = self.actions[inside], 1.0 / self.propensities[inside]
        counts = np.bincount(own, minlength=len(self.options))
        if not counts.all():
            words = f"every action of the plan's domain in some row: {self._said(counts.argmin())}"
            raise InvalidArgument(
                "log", f"{words} is in none, so narrow the domain to what was tried"
            )
        means = np.bincount(own, weights, minlength=len(self.options)) / len(self)
        largest = np.zeros(len(self.options))
        np.maximum.at(largest, own, weights)
        level = math.log(2.0 * len(self.options) / FALSE_ALARMS)
        skew = largest * level / (3.0 * len(self))
        allowed = skew + np.sqrt(skew**2 + 2.0 * (largest - 1.0) * level / len(self))
        worst = int(np.argmax(np.abs(means - 1.0) / allowed))
        if abs(means[worst] - 1.0) > allowed[worst]:
            words = (
                "propensity to be the chance that the logging policy gave the logged action: for "
                f"{self._said(worst)} the sum of 1 / propensity is {means[worst]:.2f} times the "
                "number of rows, which chance does not explain"
            )
            raise InvalidArgument("log", words)

    def _said(self, position: int | np.intp) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.action(int(position)).items())

    @cached_property
    def _places(self) -> dict[Key, int]:
        return {key: position for position, key in enumerate(self.options)}


def check_replayable(plan: object) -> None:
    """Refuse a plan whose choices never equal logged ones, or need more than a log tells."""
    if not isinstance(plan, Plan):
        raise InvalidArgument("plan", "a Plan")
    if plan.decisions == "candidates":
        raise InvalidArgument(
            "plan", "decisions 'box' or 'context': a log does not hold everyone's candidates"
        )
    for name in free_names(plan.domain):
        if isinstance(plan.domain.coordinate(name), Continuous):
            words = (
                f"actions that can be equal, but {name} is Continuous: make it an Integer or a "
                "Categorical of bins, and bin the log alike"
            )
            raise InvalidArgument("plan", words)


def free_names(domain: Box) -> tuple[str, ...]:
    """The coordinates that are ours to choose.

    >>> free_names(Box({"dose": (0, 10), "age": (18, 90)}, context=["age"]))
    ('dose',)
    """
    return tuple(name for name in domain.names if name not in domain.context)


def key_of(domain: Box, action: Mapping[str, Value]) -> Key:
    """An action by its numbers.

    >>> box = Box({"arm": Categorical(("a", "b")), "age": (18, 90)}, context=["age"])
    >>> key_of(box, {"arm": "b", "age": 61.0})
    (1.0,)
    """
    return tuple(domain.coordinate(name).number(action[name]) for name in free_names(domain))


def _options(domain: Box) -> tuple[Key, ...]:
    """Every action; without contexts, those that the rule admits."""
    ranges: list[range] = []
    for name in free_names(domain):
        coordinate = cast(Integer | Categorical, domain.coordinate(name))
        first = coordinate.low if isinstance(coordinate, Integer) else 0
        ranges.append(range(first, first + coordinate.count))
    if math.prod(map(len, ranges)) > MOST_ACTIONS:
        raise InvalidArgument("plan", f"at most {MOST_ACTIONS:,} actions, or no log has them all")
    keys = [tuple(map(float, key)) for key in product(*ranges)]
    if domain.has_context or domain.feasible is None:
        return tuple(keys)
    scaled = [domain.coordinate(name).scale(np.array(column)) for name, column in
              zip(domain.names, zip(*keys, strict=True), strict=True)]  # fmt: skip
    admitted = domain.admits(np.concatenate(scaled, axis=1))
    return tuple(key for key, holds in zip(keys, admitted, strict=True) if holds)


def _contexts(domain: Box, numbers: Mapping[str, Floats]) -> tuple[dict[str, Value], ...] | None:
    if not domain.has_context:
        return None
    columns = [
        [domain.coordinate(name).value(number) for number in numbers[name].tolist()]
        for name in domain.context
    ]
    return tuple(dict(zip(domain.context, row, strict=True)) for row in zip(*columns, strict=True))


def _floor(propensities: Floats, given: float | None) -> float:
    least = float(propensities.min())
    if given is None:
        return least
    floor = checks.number("floor", given, above=0.0)
    if floor > least:
        raise InvalidArgument("floor", "at most the least propensity of the log", floor)
    return floor


# -- columns


def _columns(source: object) -> dict[str, Sequence[object]]:
    if isinstance(source, str | os.PathLike):
        return _read_csv(Path(cast(str, source)))
    if not isinstance(source, Mapping):
        raise InvalidArgument("log", "the path of a CSV file, or a mapping of columns")
    columns: dict[str, Sequence[object]] = {}
    for name, given in cast(Mapping[object, object], source).items():
        values = sequence(given)
        if not isinstance(name, str) or values is None:
            raise InvalidArgument("log", "a sequence of values for each name")
        columns[name] = values
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise InvalidArgument("log", "columns of the same length")
    if lengths in (set(), {0}):
        raise InvalidArgument("log", "at least one row")
    return columns


def _read_csv(path: Path) -> dict[str, Sequence[object]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file, strict=True) if row]
    except OSError as error:
        raise InvalidArgument("log", f"a readable CSV file ({error.strerror})", str(path)) from None
    except (UnicodeDecodeError, csv.Error):  # the original error may quote what is in it
        raise InvalidArgument("log", "a CSV file in UTF-8", str(path)) from None
    if len(rows) < 2:
        raise InvalidArgument("log", "a line of names and at least one row", str(path))
    names = [name.strip() for name in rows[0]]
    if len(set(names)) < len(names):
        raise InvalidArgument("log", "every column once", str(path))
    whole = np.array([len(row) == len(names) for row in rows[1:]])
    _check_rows(whole, f"{len(names)} values in every row")
    columns = zip(*rows[1:], strict=True)
    return {
        name: [value.strip() for value in column]
        for name, column in zip(names, columns, strict=True)
    }


def _check_names(columns: Mapping[str, object], expected: tuple[str, ...]) -> None:
    if len(set(expected)) < len(expected):
        words = f"a domain without coordinates called {PROPENSITY} or {REWARD}, for a log has both"
        raise InvalidArgument("plan", words)
    if missing := [name for name in expected if name not in columns]:
        raise InvalidArgument("log", f"a column for each of {listing(missing)}")
    if unknown := [name for name in columns if name not in expected]:
        words = f"no columns but {listing(expected)}; leave out {listing(unknown)}"
        raise InvalidArgument("log", words)


def _numbers(coordinate: Coordinate, name: str, column: Sequence[object]) -> Floats:
    """The numbers of a coordinate; a category that the plan does not have is -1."""
    if not isinstance(coordinate, Categorical):
        return _plain(name, column)
    _check_rows(np.array([isinstance(v, str) and v != "" for v in column]), f"{name} to be a name")
    numbers = np.array([coordinate.number(value) for value in column])
    return np.where(np.isnan(numbers), -1.0, numbers)


def _plain(name: str, column: Sequence[object]) -> Floats:
    numbers = np.array([_number(value) for value in column])
    _check_rows(np.isfinite(numbers), f"{name} to be a finite number")
    return numbers


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _check_rows(holds: Mask, expectation: str) -> None:
    """Refuse the first row that does not hold; the row below the names is row 1."""
    if not holds.all():
        raise InvalidArgument("log", f"{expectation} (row {int(holds.argmin()) + 1})")
