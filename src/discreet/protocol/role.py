"""A role's own journal: commit records first, change the state after; replay them to resume."""

import json
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType, UnionType
from typing import Any, Self

from discreet.agreement.plan import Plan
from discreet.errors import (
    DiscreetError,
    JournalDamaged,
    JournalForeign,
    Malformed,
    Refused,
)
from discreet.storage import canonical
from discreet.storage.journal import Journal, SQLiteJournal


class Ledger:
    """The records of one role under one plan, `kind` being the union of what they may be.

    `journal` is the path of an SQLite file, a journal, or None for a role that is not kept. A
    role that is interrupted while it writes no longer knows what its journal holds: from then
    on it refuses, and must be opened again.
    """

    def __init__(
        self, plan: Plan, journal: str | os.PathLike[str] | Journal | None, kind: UnionType
    ) -> None:
        self._plan, self._kind = plan, kind
        self._broken = False
        self.journal = (
            SQLiteJournal(journal) if isinstance(journal, (str, os.PathLike)) else journal
        )

    def check_whole(self) -> None:
        """Refuse to go on after an interruption."""
        if self._broken:
            raise Refused("this role was interrupted while it wrote: open its journal again")

    def append(self, *records: object) -> None:
        """Keep records without changing any state: for the first ones of a study."""
        if self.journal is not None:
            self.journal.append(*(canonical.encode(record) for record in records))

    @contextmanager
    def committed(self, *records: object) -> Generator[None]:
        """Append the records, then apply them in the body.

        An append that fails has written nothing. Whatever interrupts the two otherwise leaves a
        role that no longer knows what its journal holds.
        """
        self.check_whole()
        try:
            self.append(*records)
        except Exception:
            raise
        except BaseException:
            self._broken = True
            raise
        self._broken = True
        yield
        self._broken = False

    def resume(self, apply: Callable[[Any], None], begin: Callable[[], None]) -> None:
        """Apply what the journal holds, or begin a new one; a failure lets go of it."""
        try:
            if not self._replayed(apply):
                begin()
        except BaseException:
            self.close()
            raise

    def _replayed(self, apply: Callable[[Any], None]) -> bool:
        """Apply what the journal holds after its plan; False where it holds nothing yet."""
        if self.journal is None:
            return False
        records = self.journal.records()
        first = next(records, None)
        if first is None:
            return False
        try:
            stored = canonical.decode(Plan, first)
        except Malformed as error:
            raise JournalForeign(f"the journal does not begin with a plan: {error}") from error
        if stored.digest != self._plan.digest:
            raise JournalForeign(
                f"the journal belongs to another plan: {difference(stored, self._plan)}"
            )
        for data in records:
            try:
                apply(canonical.decode(self._kind, data))
            except Refused:
                raise
            except DiscreetError as error:
                raise JournalDamaged(
                    f"a record does not fit the ones before it: {error}"
                ) from error
        return True

    def close(self) -> None:
        """Let go of the journal."""
        if self.journal is not None:
            self.journal.close()


class Kept:
    """A role whose records a ledger keeps; as a context it lets go of them at the end."""

    _ledger: Ledger

    def close(self) -> None:
        """Let go of the journal; the role can be resumed from it."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def difference(stored: Plan, given: Plan) -> str:
    """Which fields of two plans differ, for an error message."""
    here, there = (json.loads(canonical.encode(plan)) for plan in (stored, given))
    return ", ".join(sorted(n for n in here | there if here.get(n) != there.get(n)))
