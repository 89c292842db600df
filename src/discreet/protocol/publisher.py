"""The publisher, server of the joint model: it opens the next epoch from each release.

It never sees a decision set, an action, an answer or an id: it is given one release an epoch,
which is private already, and need not be trusted with it. It is no more than a public calculation
with a memory.
"""

from discreet.agreement.plan import Plan
from discreet.agreement.release import GENESIS, Release
from discreet.errors import InvalidArgument
from discreet.learning.epoch import Epoch
from discreet.learning.study import Study
from discreet.protocol.messages import Opening
from discreet.protocol.role import JournalPlace, Role


class Publisher(Role):
    """Take the open epoch's release, once, and open the next epoch.

    `journal` is the path of an SQLite file; a publisher given one resumes exactly, with the same
    epochs. Threads may share a publisher. A release of another epoch, of another size, of more
    asks than the epoch has, or one that does not name the release before it is refused.
    """

    RECORDS = Epoch | Release

    def __init__(self, plan: Plan, journal: JournalPlace = None) -> None:
        if plan.is_local:
            raise InvalidArgument("plan", "one of the joint model: LocalDP has a Server")
        super().__init__(plan, journal)
        self._study = Study(self.plan)
        self._start()

    @Role.guarded
    def publish(self, release: Release) -> Opening:
        """What follows this release; the last one, if it comes again, gets the same reply.

        A release of fewer asks than its epoch has ends the study, and so does the horizon.
        """
        if self._last != release.digest:
            self._commit(*self._study.followed_by(release))
        return self.opening

    @property
    @Role.guarded
    def opening(self) -> Opening:
        """The open epoch, or that there is none any more: for a custodian that asks."""
        return Opening(self._last, self._study.epochs[-1] if self._study.is_running else None)

    @property
    @Role.guarded
    def study(self) -> Study:
        """The public record so far."""
        return self._study

    @property
    def _last(self) -> str:
        return self._study.releases[-1].digest if self._study.releases else GENESIS

    def _first_records(self) -> tuple[Epoch]:
        return (self._study.next_epoch(),)

    def _apply(self, record: Epoch | Release) -> None:
        opened = isinstance(record, Epoch)
        self._study = self._study.opened(record) if opened else self._study.released(record)
