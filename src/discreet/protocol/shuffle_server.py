"""The server of the shuffled model: it opens mixed batches, and learns from their sums.

It talks to the shuffler alone. Of people it sees one batch of indices an epoch, in random order:
no id, no ask, no time. What it is handed is private for everyone in the crowd (`blanket`), and it
need not be trusted with it, unless it works together with the shuffler.
"""

import numpy as np

from discreet import checks
from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Integers
from discreet.errors import InvalidArgument, Refused
from discreet.learning.epoch import Epoch
from discreet.learning.study import Study
from discreet.protocol.batches import Batch, Turn
from discreet.protocol.records import Serving
from discreet.protocol.role import JournalPlace, Role
from discreet.protocol.sealing import public_key, unseal


class ShuffleServer(Role):
    """Take the open epoch's batch, once, add it up and open the next epoch.

    `secret` is the key that boxes are opened with, 64 hexadecimal digits; it is not kept. `journal`
    is the path of an SQLite file; a server given one, and the same secret, resumes exactly. It
    keeps releases and epochs: no box and no index. A box that does not open, or holds no index of
    the epoch, is left out and not counted.
    """

    RECORDS = Serving | Epoch | Release

    def __init__(
        self, plan: Plan, secret: str, journal: JournalPlace = None, *, simulated: bool = False
    ) -> None:
        if not plan.is_shuffled:
            raise InvalidArgument("plan", "one with ShuffledDP privacy")
        checks.hexadecimal("secret", secret, 64)
        self._secret, self._key = secret, public_key(secret)
        super().__init__(plan, journal)
        self._simulated = simulated
        self._study = Study(self.plan, simulated=simulated or None)
        self._start()

    @Role.guarded
    def take(self, batch: Batch) -> Turn:
        """What follows this batch; one of the epoch before, if it comes again, changes nothing.

        A batch of fewer asks than its epoch has ends the study, and so does the horizon.
        """
        releases = self._study.releases
        if not releases or releases[-1].epoch != batch.epoch:
            self._commit(*self._study.followed_by(self._release(batch)))
        return self.turn

    @property
    @Role.guarded
    def turn(self) -> Turn:
        """The newest release and the open epoch: for a shuffler that asks."""
        release = self._study.releases[-1] if self._study.releases else None
        epoch = self._study.epochs[-1] if self._study.is_running else None
        return Turn(self._key, release, epoch)

    @property
    @Role.guarded
    def study(self) -> Study:
        """The public record so far."""
        return self._study

    def _release(self, batch: Batch) -> Release:
        """The sums of a batch, which follow from it: nothing is drawn."""
        epoch, promise = self._study.open_epoch, self.plan.shuffled
        if batch.epoch != epoch.digest:
            raise Refused("this batch is for another epoch than the open one")
        if bool(batch.simulated) != self._simulated:
            raise Refused("simulated reports and real ones do not go together")
        if len(batch.groups) != len(epoch.groups):
            raise Refused("this batch has other groups than its epoch")
        if any(map(promise.drops, map(len, batch.groups), epoch.groups)):
            raise Refused("this batch is smaller than any that an honest shuffler hands up")
        indices, rows = self._opened(batch, epoch)
        return Release(
            epoch=epoch.digest,
            previous=epoch.previous,
            asks=batch.asks,
            reports=len(indices),
            integers=epoch.indexed.statistics(indices, rows),
            private=not self._simulated,
        )

    def _opened(self, batch: Batch, epoch: Epoch) -> tuple[Integers, Integers]:
        """The indices of the boxes that open, and the groups they are of."""
        size = epoch.indexed.cap.size
        found: list[tuple[int, int]] = []
        for row, group in enumerate(batch.groups):
            opened = (unseal(box, epoch.digest, self._secret) for box in group)
            found += [(each, row) for each in opened if each is not None and each < size]
        indices, rows = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return indices, rows

    def _first_records(self) -> tuple[Serving, Epoch]:
        return Serving(self._simulated), self._study.next_epoch()

    def _apply(self, record: Serving | Epoch | Release) -> None:
        match record:
            case Serving():
                if record.simulated != self._simulated:
                    kind = "a simulation" if record.simulated else "a real study"
                    raise Refused(f"the journal is that of {kind}: it cannot go on as the other")
            case Release():
                self._study = self._study.released(record)
            case Epoch():
                self._study = self._study.opened(record)
