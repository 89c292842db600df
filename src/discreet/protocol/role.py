"""A role: a state that only records change, and the journal that keeps them.

Every role works alike. It decides on a record without changing anything, appends it to its journal,
and applies it after. A role that is resumed applies the records of its journal by the same steps.
A journal begins with the plan, and with what its author wrote (`wording`).
"""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from itertools import chain
from types import UnionType
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

from discreet.agreement.plan import Plan
from discreet.agreement.wording import Wording, differing
from discreet.errors import DiscreetError, JournalDamaged, JournalForeign, Malformed, Refused
from discreet.one_copy import OneCopy
from discreet.storage import canonical
from discreet.storage.journal import Journal, SQLiteJournal

#: Where a role is kept: the path of an SQLite file, a journal, or nowhere.
JournalPlace = str | os.PathLike[str] | Journal | None

P = ParamSpec("P")
R = TypeVar("R")
SomeRole = TypeVar("SomeRole", bound="Role")


class Role(OneCopy, ABC):
    """What all roles share: the plan that is agreed, a lock, and commit-then-apply.

    A role given the journal of a running study resumes it exactly, under the plan that is stored
    there. A role that is interrupted while it writes no longer knows what its journal holds: from
    then on it refuses, and must be opened again. A role stays in its process and is not copied.

    A subclass sets up its state from `self.plan` and then calls `_start`.
    """

    #: What the journal may hold after the plan.
    RECORDS: ClassVar[UnionType]

    def __init__(self, plan: Plan, journal: JournalPlace) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._broken = False
        self._journal = (
            SQLiteJournal(journal) if isinstance(journal, str | os.PathLike) else journal
        )
        try:
            self._plan, self._unread = self._stored(plan)
        except BaseException:
            self.close()
            raise

    @property
    def plan(self) -> Plan:
        """The public agreement."""
        return self._plan

    def close(self) -> None:
        """Let go of the journal; the role can be resumed from it. In a fork this does nothing."""
        if self._journal is not None and self.is_home:
            self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @staticmethod
    def guarded(
        method: Callable[Concatenate[SomeRole, P], R],
    ) -> Callable[Concatenate[SomeRole, P], R]:
        """A method for the role's own process, one thread at a time, while the role is whole.

        Every method that acts or reads the state is one. The process is checked first: in a forked
        child the lock may be held for ever.
        """

        @wraps(method)
        def guard(role: SomeRole, *arguments: P.args, **words: P.kwargs) -> R:
            role.check_process()
            with role._lock:
                role._check_whole()
                return method(role, *arguments, **words)

        return guard

    # -- what a role fills in

    @abstractmethod
    def _first_records(self) -> tuple[object, ...]:
        """What the journal of a new study holds after the plan."""

    @abstractmethod
    def _apply(self, record: Any) -> None:
        """Change the state by a record that is kept."""

    def _apply_all(self, records: Sequence[Any]) -> None:
        """Change the state by records that are kept, one after the other."""
        for record in records:
            self._apply(record)

    # -- commit, then apply

    def _check_whole(self) -> None:
        """Refuse to go on after an interruption."""
        if self._broken:
            raise Refused(
                "this role was interrupted while it wrote and does not know what was kept: open "
                "its journal again; without a journal it cannot go on"
            )

    def _commit(self, *records: object) -> None:
        """Append records, all or none, then apply them.

        A journal says by an error of ours that it kept nothing. Whatever else interrupts the two
        (a key, a timer's exception) may have come after the records were kept.
        """
        self._broken = True
        try:
            self._append(*records)
        except DiscreetError:
            self._broken = False
            raise
        self._apply_all(records)
        self._broken = False

    def _append(self, *records: object) -> None:
        if self._journal is not None:
            self._journal.append(*(canonical.encode(record) for record in records))

    # -- begin, or resume

    def _start(self) -> None:
        """Apply what the journal holds, or begin a new one; a failure lets go of it."""
        try:
            if self._unread is None:
                self._begin()
            else:
                for data in self._unread:
                    self._replay(data)
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        first = self._first_records()
        words = () if self.plan.wording is None else (self.plan.wording,)
        self._append(self.plan, *words, *first)
        for record in first:
            self._apply(record)

    def _replay(self, data: bytes) -> None:
        try:
            self._apply(canonical.decode(self.RECORDS, data))
        except Refused:
            raise
        except DiscreetError as error:
            raise JournalDamaged(f"a record does not fit the ones before it: {error}") from error

    def _stored(self, given: Plan) -> tuple[Plan, Iterator[bytes] | None]:
        """The journal's plan and its other records; the given plan, where it holds nothing yet."""
        records = iter(()) if self._journal is None else self._journal.records()
        first = next(records, None)
        if first is None:
            return given, None
        try:
            stored = canonical.decode(Plan, first)
        except Malformed as error:
            raise JournalForeign(f"the journal does not begin with a plan: {error}") from error
        wording, rest = _wording(records)
        if names := differing(stored, wording, given):
            raise JournalForeign(f"the journal belongs to another plan: {', '.join(names)}")
        return stored, rest


def _wording(records: Iterator[bytes]) -> tuple[Wording | None, Iterator[bytes]]:
    """What the plan's author wrote, if it is kept, and the records after it."""
    for data in records:
        try:
            return canonical.decode(Wording, data), records
        except Malformed:
            return None, chain((data,), records)
    return None, records
