"""What people bring to a study, one or many at a time, and the trials they get."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, overload

import numpy as np

from discreet import checks, frames
from discreet.agreement.plan import Plan
from discreet.domain.box import Box
from discreet.errors import InvalidArgument
from discreet.learning.study import Value
from discreet.protocol.decisions import brought
from discreet.protocol.records import Asked
from discreet.trusted.entries import Entry, Person


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
    """Everyone of a batch, by what the plan's people bring."""
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
    options = _options(plan, n, candidates, contexts)
    ids = [None] * len(options) if users is None else frames.column("users", users, len(options))
    return [Person(user, each) for user, each in zip(ids, options, strict=True)]


def _options(plan: Plan, n: int | None, candidates: object, contexts: object) -> list[Any]:
    if n is not None:
        return [None] * checks.count("n", n)
    if candidates is not None:
        if isinstance(candidates, str | bytes | Mapping) or not hasattr(candidates, "__len__"):
            raise InvalidArgument(
                "candidates", "a sequence with a set of candidates for each person"
            )
        return [brought(plan, each, None) for each in cast(Sequence[object], candidates)]
    domain = plan.domain
    rows = frames.rows_of("contexts", contexts, domain.context)
    return [brought(plan, None, cast(Mapping[str, object], row)) for row in rows]
