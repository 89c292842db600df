"""The server of the joint model: it publishes releases, and opens the next epoch from them.

It never sees a decision set, an action, an answer or an id: it is given one release an epoch,
which is private already, and need not be trusted with it. It is no more than a public calculation
with a memory.
"""

import os
import threading

from discreet.agreement.plan import Plan
from discreet.agreement.release import GENESIS, Release
from discreet.errors import InvalidArgument, JournalDamaged
from discreet.learning.epoch import Epoch
from discreet.learning.study import Study
from discreet.privacy.budget import JointDP
from discreet.protocol.messages import Opening
from discreet.protocol.role import Kept, Ledger
from discreet.storage.journal import Journal

Record = Plan | Epoch | Release


class Publisher(Kept):
    """Take the open epoch's release, once, and open the next epoch.

    `journal` is the path of an SQLite file; a publisher given one resumes exactly, with the same
    epochs. Threads may share a publisher. A release of another epoch, of another size, of more
    asks than the epoch has, or one that does not name the release before it is refused.
    """

    def __init__(self, plan: Plan, journal: str | os.PathLike[str] | Journal | None = None) -> None:
        if not isinstance(plan.privacy, JointDP):
            raise InvalidArgument("plan", "one with JointDP privacy")
        self._study = Study(plan)
        self._lock = threading.RLock()
        self._ledger = Ledger(plan, journal, Record)
        self._ledger.resume(self._apply, self._begin)

    def publish(self, release: Release) -> Opening:
        """What follows this release; the last one, if it comes again, gets the same reply.

        A release of fewer asks than its epoch has ends the study, and so does the horizon.
        """
        with self._lock:
            if self._last != release.digest:
                epoch, study = self._study.open_epoch, self._study.released(release)
                is_last = release.asks < epoch.length or epoch.end == study.plan.last
                self._commit(release, *(() if is_last else (study.next_epoch(),)))
            return self.opening

    @property
    def opening(self) -> Opening:
        """The open epoch, or that there is none any more: for a privatizer that asks."""
        with self._lock:
            return Opening(self._last, self._study.epochs[-1] if self._study.is_running else None)

    @property
    def study(self) -> Study:
        """The public record so far."""
        return self._study

    @property
    def _last(self) -> str:
        return self._study.releases[-1].digest if self._study.releases else GENESIS

    # -- records: commit, then apply

    def _begin(self) -> None:
        epoch = self._study.next_epoch()
        self._ledger.append(self._study.plan, epoch)
        self._apply(epoch)

    def _commit(self, *records: Record) -> None:
        with self._ledger.committed(*records):
            for record in records:
                self._apply(record)

    def _apply(self, record: Record) -> None:
        match record:
            case Release():
                self._study = self._study.released(record)
            case Epoch():
                self._study = self._study.opened(record)
            case Plan():
                raise JournalDamaged("a plan in the middle of a study")
