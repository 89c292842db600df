"""A team's past experiment: what people brought, what they got, with which chance, and the reward.

A log is read for a plan. Its columns are the coordinates of the plan's domain, by name, with
`propensity`, the probability that the logging policy gave this action to this person, and `reward`;
others are not looked at. What it holds is private: errors name a column and a row, and never what
a person brought or answered. Rows count from 0.
"""

import csv
import math
import os
from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np

from discreet.agreement.plan import Plan
from discreet.arrays import Floats, Mask
from discreet.domain.box import Box, Categorical, Continuous
from discreet.domain.coordinates import listing
from discreet.domain.points import check_rows
from discreet.errors import InvalidArgument
from discreet.frames import reading
from discreet.learning.study import Value

PROPENSITY, REWARD = "propensity", "reward"
#: How often true propensities may be refused.
FALSE_ALARMS = 1e-6

#: A log as it comes: the path of a CSV file, or columns by name.
Source = str | os.PathLike[str] | Mapping[str, object]


@dataclass(frozen=True, eq=False)
class Log:
    """Rounds that a logging policy gave to different people, one a row.

    - `points`: context and action, scaled.
    - `allowed`: whether the plan's domain has this action; no choice of the plan equals another.
    - `propensities`: the chance of the logged action for that person.
    - `rewards`: clipped to the plan's range; `clipped` says how many were.
    """

    plan: Plan
    points: Floats = field(repr=False)
    allowed: Mask = field(repr=False)
    propensities: Floats = field(repr=False)
    rewards: Floats = field(repr=False)
    clipped: int

    @classmethod
    def read(cls, plan: Plan, source: Source) -> "Log":
        """The log of a CSV file or of columns, checked against the plan.

        >>> from discreet import Box, Integer, NonPrivate
        >>> plan = Plan(domain=Box({"dose": Integer(1, 2)}), privacy=NonPrivate())
        >>> columns = {"dose": [1, 2, 1], "propensity": [0.5, 0.5, 0.5], "reward": [0.2, 0.9, 1.4]}
        >>> log = Log.read(plan, columns)
        >>> log.points.ravel().tolist(), log.rewards.tolist(), log.least
        ([0.0, 1.0, 0.0], [0.2, 0.9, 1.0], 0.5)
        >>> Log.read(plan, columns | {"propensity": [0.5, 0.0, 0.5]})
        Traceback (most recent call last):
        discreet.errors.InvalidArgument: propensity: expected numbers above 0 and at most 1 (row 1)
        """
        check_replayable(plan)
        domain = plan.domain
        columns = _columns(source, (*domain.names, PROPENSITY, REWARD))
        numbers = {name: _numbers(domain, name, columns[name]) for name in domain.names}
        holds = {name: domain.coordinate(name).holds(numbers[name]) for name in domain.names}
        for name in domain.context:
            check_rows(holds[name], name, domain.coordinate(name).expected)
        allowed = np.all([holds[name] for name in domain.free], axis=0)
        if not allowed.any():
            raise InvalidArgument("log", "some rows with an action of the plan's domain")
        points = np.full((len(allowed), domain.dimension), np.nan)
        scaled = [domain.coordinate(name).scale(numbers[name][allowed]) for name in domain.names]
        points[allowed] = np.concatenate(scaled, axis=1)
        allowed[allowed] = domain.admits(points[allowed])
        propensities = _plain(PROPENSITY, columns[PROPENSITY])
        within = (propensities > 0) & (propensities <= 1)
        check_rows(within, PROPENSITY, "numbers above 0 and at most 1")
        rewards = _plain(REWARD, columns[REWARD])
        clipped = np.clip(rewards, *plan.rewards)
        log = cls(plan, points, allowed, propensities, clipped, int(np.sum(clipped != rewards)))
        if domain.feasible is None:  # a rule may keep an action from some people
            log.check_propensities()
        return log

    def __len__(self) -> int:
        return len(self.rewards)

    @cached_property
    def least(self) -> float:
        """The least propensity of an allowed action."""
        return float(self.propensities[self.allowed].min())

    @cached_property
    def actions(self) -> list[bytes]:
        """The action of each row; equal actions have equal bytes."""
        return [each.tobytes() for each in self.points[:, self.plan.domain.free_columns]]

    @cached_property
    def tried(self) -> frozenset[bytes]:
        """The actions that someone got."""
        return frozenset(self.actions)

    def values(self, row: int, names: tuple[str, ...]) -> dict[str, Value]:
        """What a row has for some of the coordinates, in natural units."""
        found = self.plan.domain.decode(self.points[row])
        return {name: found[name] for name in names}

    def check_propensities(self) -> None:
        """Refuse propensities that are not those of the policy that chose.

        Whatever that policy was, if p is its chance of the logged action and everyone could get
        the action a, then

            E[1{logged = a} / p] = 1,        Var[1{logged = a} / p] <= w - 1

        where w is 1 / the least p of a. By Bernstein's inequality a mean over n rows is off by
        more than

            b + sqrt(b^2 + 2 (w - 1) L / n),        b = w L / 3n,    L = log(2 actions / 10^-6)

        for any action at most once in a million logs.
        """
        rows = np.flatnonzero(self.allowed)
        actions = self.points[rows][:, self.plan.domain.free_columns]
        _, first, own = np.unique(actions, axis=0, return_index=True, return_inverse=True)
        own = own.ravel()
        weights = 1.0 / self.propensities[rows]
        means = np.bincount(own, weights) / len(self)
        largest = np.zeros(len(first))
        np.maximum.at(largest, own, weights)
        level = math.log(2.0 * len(first) / FALSE_ALARMS)
        skew = largest * level / (3.0 * len(self))
        margin = skew + np.sqrt(skew**2 + 2.0 * (largest - 1.0) * level / len(self))
        worst = int(np.argmax(np.abs(means - 1.0) / margin))
        if abs(means[worst] - 1.0) > margin[worst]:
            action = self.values(int(rows[first[worst]]), self.plan.domain.free)
            raise InvalidArgument(
                PROPENSITY,
                "the chance that the person got the logged action: over the rows with "
                f"{action}, 1 / propensity adds up to {means[worst]:.2f} times the number of all "
                "rows, and not to about 1",
            )


def check_replayable(plan: object) -> None:
    """Refuse a plan whose choices never equal logged ones, or need more than a log tells."""
    if not isinstance(plan, Plan):
        raise InvalidArgument("plan", "a Plan")
    domain = plan.domain
    if plan.decisions == "candidates":
        raise InvalidArgument(
            "plan", "decisions 'box' or 'context': a log does not hold everyone's candidates"
        )
    if {PROPENSITY, REWARD} & set(domain.names):
        raise InvalidArgument("plan", f"no coordinates called {PROPENSITY} or {REWARD}")
    for name in domain.free:
        if isinstance(domain.coordinate(name), Continuous):
            raise InvalidArgument(
                "plan",
                f"actions that can be equal, but {name} is Continuous: make it an Integer or a "
                "Categorical of bins, and bin the log alike",
            )


# -- columns


def _columns(source: object, names: tuple[str, ...]) -> dict[str, list[object]]:
    if isinstance(source, str | os.PathLike):
        table = _read_csv(Path(cast(str, source)))
    elif isinstance(source, Mapping):
        table = cast(Mapping[str, object], source)
    else:
        raise InvalidArgument("log", "the path of a CSV file, or a mapping of names to columns")
    if missing := [name for name in names if name not in table]:
        raise InvalidArgument("log", f"a column for each of {listing(missing)}")
    rewards = table[REWARD]
    rows = len(rewards) if isinstance(rewards, Sized) else 0
    if rows == 0:
        raise InvalidArgument("log", "at least one row")
    return {name: reading.column(name, table[name], rows) for name in names}


def _read_csv(path: Path) -> dict[str, object]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file, strict=True) if line]
    except OSError as error:
        raise InvalidArgument("log", f"a readable CSV file ({error.strerror})", str(path)) from None
    except (UnicodeDecodeError, csv.Error):  # the original error may quote what is in it
        raise InvalidArgument("log", "a CSV file in UTF-8", str(path)) from None
    if len(lines) < 2:
        raise InvalidArgument("log", "a line of names and at least one row", str(path))
    names = [name.strip() for name in lines[0]]
    if len(set(names)) < len(names):
        raise InvalidArgument("log", "every column once", str(path))
    whole = np.array([len(line) == len(names) for line in lines[1:]])
    check_rows(whole, "log", f"{len(names)} values in every row")
    columns = zip(*lines[1:], strict=True)
    pairs = zip(names, columns, strict=True)
    return {name: [value.strip() for value in column] for name, column in pairs}


def _numbers(domain: Box, name: str, column: list[object]) -> Floats:
    """The numbers of a coordinate; a category that the plan does not have is not-a-number."""
    coordinate = domain.coordinate(name)
    if isinstance(coordinate, Categorical):
        return np.array([coordinate.number(value) for value in column])
    return _plain(name, column)


def _plain(name: str, column: list[object]) -> Floats:
    return np.array(reading.numbers(name, [_read(value) for value in column], len(column)))


def _read(value: object) -> object:
    """The number that a text is, as files hold them; not-a-number for other text."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return math.nan
