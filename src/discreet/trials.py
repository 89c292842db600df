"""What people bring to a study, one or many at a time, and the trials they get."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from discreet import checks
from discreet.agreement.plan import Plan
from discreet.arrays import Floats
from discreet.domain.box import Box
from discreet.errors import InvalidArgument
from discreet.frames.reading import column, columns, is_table
from discreet.frames.table import Table
from discreet.learning.study import Value
from discreet.protocol.decisions import brought
from discreet.protocol.records import Asked
from discreet.trusted.entries import Entry, Person

#: What one person brings, scaled, or what is wrong with it.
Options = Floats | Exception | None


@dataclass(frozen=True)
class Trial:
    """An action to try: tell its reward, or abandon it.

    `chosen` is the position among the candidates, where candidates were given.
    """

    number: int
    action: dict[str, Value]
    chosen: int | None = None


@dataclass(frozen=True, eq=False)
class Trials(Sequence[Trial]):
    """The trials of a batch, and why a row has none.

    `rows` are the places of those that went through, `actions` their columns by name; `refusals`
    has the others' errors by row.
    """

    rows: tuple[int, ...]
    numbers: tuple[int, ...]
    actions: Mapping[str, list[Value]]
    chosen: tuple[int, ...] | None = None
    refusals: Mapping[int, Exception] = field(default_factory=dict[int, Exception], repr=False)

    @classmethod
    def of(cls, domain: Box, entries: Sequence[Entry]) -> "Trials":
        """Of entries whose records are kept."""
        kept = [(row, each) for row, each in enumerate(entries) if isinstance(each.record, Asked)]
        records = [cast(Asked, each.record) for _, each in kept]
        points = np.array([record.point for record in records]).reshape(-1, domain.dimension)
        with_positions = bool(kept) and kept[0][1].chosen is not None
        return cls(
            tuple(row for row, _ in kept),
            tuple(record.number for record in records),
            domain.decode_all(points),
            tuple(cast(int, each.chosen) for _, each in kept) if with_positions else None,
            {row: each.refusal for row, each in enumerate(entries) if each.refusal is not None},
        )

    def to_frame(self) -> Table:
        """A row for each trial: its place in the batch, its number, its action.

        `batch row`, `trial number` and `chosen candidate` are no names of coordinates.
        """
        chosen = {} if self.chosen is None else {"chosen candidate": self.chosen}
        return Table(
            {"batch row": self.rows, "trial number": self.numbers, **self.actions, **chosen}
        )

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> Trial: ...
    @overload
    def __getitem__(self, place: slice) -> list[Trial]: ...
    def __getitem__(self, place: int | slice) -> Trial | list[Trial]:
        """One trial, or some."""
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        action = {name: values[place] for name, values in self.actions.items()}
        chosen = None if self.chosen is None else self.chosen[place]
        return Trial(self.numbers[place], action, chosen)

    def __iter__(self) -> Iterator[Trial]:
        return (self[i] for i in range(len(self)))


def people_of(
    plan: Plan, n: int | None, candidates: object, contexts: object, users: object
) -> list[Person]:
    """Everyone of a batch, by what the plan's people bring.

    What is wrong with a table as a whole is raised; what is wrong in a row is that person's.
    """
    given = [
        name
        for name, each in (("n", n), ("candidates", candidates), ("contexts", contexts))
        if each is not None
    ]
    wanted = {"box": "n", "candidates": "candidates", "context": "contexts"}[
        plan.decisions or "box"
    ]
    if given != [wanted]:
        raise InvalidArgument(
            "ask_many",
            f"{wanted}= and nothing beside it: this plan's decisions are {plan.decisions!r}",
        )
    if candidates is not None and is_table(candidates):
        return _owners(plan, candidates, users)
    if n is not None:
        options: Sequence[Options] = [None] * checks.count("n", n)
    elif candidates is not None:
        options = _sets(plan, candidates)
    else:
        options = _contexts(plan, contexts)
    ids = [None] * len(options) if users is None else column("users", users, len(options))
    return [Person(user, each) for user, each in zip(ids, options, strict=True)]


def _contexts(plan: Plan, contexts: object) -> Sequence[Options]:
    if not is_table(contexts):
        if isinstance(contexts, str | bytes) or not isinstance(contexts, Sequence):
            words = "a data frame, a mapping of names to columns, a list of mappings, or an array"
            raise InvalidArgument("contexts", words)
        rows = cast(Sequence[Mapping[str, object]], contexts)
        return [brought(plan, None, row) for row in rows]
    encoded, holds = plan.domain.encode_contexts(contexts)
    options: list[Options] = list(encoded)
    if not holds.all():
        names = plan.domain.context
        listed = [each.listed() for each in columns("contexts", contexts, names).values()]
        for row in np.flatnonzero(~holds).tolist():
            own = {name: values[row] for name, values in zip(names, listed, strict=True)}
            options[row] = brought(plan, None, own)
    return options


def _sets(plan: Plan, candidates: object) -> Sequence[Options]:
    """A set for each person; those that are arrays of one shape are read together."""
    if isinstance(candidates, str | bytes) or not hasattr(candidates, "__len__"):
        words = "a set of candidates for each person, or a table of all beside users="
        raise InvalidArgument("candidates", words)
    sets = list(cast(Sequence[object], candidates))
    if (arrays := _stacked(plan, sets)) is None:
        return [brought(plan, each, None) for each in sets]
    encoded, holds = plan.domain.encode_table(arrays.reshape(-1, arrays.shape[2]))
    own = encoded.reshape(*arrays.shape[:2], -1)
    whole = np.logical_and.reduce(holds.reshape(arrays.shape[:2]), axis=1)
    return [own[i] if whole[i] else brought(plan, sets[i], None) for i in range(len(sets))]


def _stacked(plan: Plan, sets: list[object]) -> NDArray[Any] | None:
    """Sets of numbers of one shape as one array; None for all others."""
    if not all(isinstance(each, np.ndarray) for each in sets):
        return None
    given = cast(list[NDArray[Any]], sets)
    shapes = {each.shape for each in given}
    shape = shapes.pop() if len(shapes) == 1 else ()
    if len(shape) != 2 or not shape[0] or shape[1] != len(plan.domain.names):
        return None
    arrays = np.stack(given)
    return arrays if arrays.dtype.kind in "fiu" and plan.domain.movable.all() else None


def _owners(plan: Plan, table: object, users: object) -> list[Person]:
    """People from a table of all their candidates: neighbouring rows of one user are a set."""
    if users is None:
        raise InvalidArgument("users", "whose each row of candidates is: one id a row")
    names = plan.domain.names
    encoded, holds = plan.domain.encode_table(table)
    ids = column("users", users, len(encoded))
    texts = [_id(user, row) for row, user in enumerate(ids)]
    starts = [row for row, text in enumerate(texts) if row == 0 or text != texts[row - 1]]
    listed = [each.listed() for each in columns("candidates", table, names).values()]
    people: list[Person] = []
    for start, end in zip(starts, [*starts[1:], len(texts)], strict=True):
        own: Options = encoded[start:end]
        if not holds[start:end].all():
            rows = zip(*(values[start:end] for values in listed), strict=True)
            own = brought(plan, list(rows), None)
        people.append(Person(texts[start], own))
    return people


def _id(user: object, row: int) -> str:
    try:
        return checks.user_id(checks.plain(user))
    except InvalidArgument:
        words = f"text or a whole number in every row (row {row})"
        raise InvalidArgument("users", words) from None
