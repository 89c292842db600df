"""The server of the local model: it adds what clients report, and learns from the sums.

It sees random ids and randomised increments, nothing else, and need not be trusted with them: a
report is private before it is sent. It is no more than a public calculation with a memory.
"""

from collections.abc import Iterator

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.agreement.wording import Wording
from discreet.errors import InvalidArgument, Refused, StudyEnded
from discreet.learning.epoch import Epoch
from discreet.learning.study import Study
from discreet.protocol.messages import Decline, Offer, Receipt, Report, Request
from discreet.protocol.records import Offered, Serving
from discreet.protocol.role import JournalPlace, Role
from discreet.protocol.tally import Tally
from discreet.storage import canonical
from discreet.storage.journal import Journal


class Server(Role):
    """Offer rounds, count reports, turn epochs over by the number of asks.

    `journal` is the path of an SQLite file; a server given one resumes exactly, with every report
    it has acknowledged. Threads may share a server. Errors: `TrialClosed` for what comes too late,
    `UnknownTrial` for what was never offered, `Refused` for what no honest client sends.
    """

    RECORDS = Serving | Epoch | Release | Offered | Report | Decline

    def __init__(
        self,
        plan: Plan,
        journal: JournalPlace = None,
        *,
        simulated: bool = False,
    ) -> None:
        if not plan.is_local:
            raise InvalidArgument("plan", "one with LocalDP privacy: nobody reports otherwise")
        super().__init__(plan, journal)
        self._simulated = simulated
        self._tally = Tally(self.plan, simulated=simulated)
        self._study = Study(self.plan, simulated=simulated or None)
        self._start()

    @Role.guarded
    def offer(self, request: Request) -> Offer:
        """The next ask; the first after an epoch's last closes it. A repeat gets the same offer."""
        self._study.check_running()
        number = self._tally.number_for(request.id)
        if number == self._tally.asked:
            if request.known > len(self._study.releases):
                raise InvalidArgument("known", "at most the number of releases", request.known)
            if number == self._study.open_epoch.end:
                if number == self.plan.last:
                    raise StudyEnded(
                        "the horizon is reached: wait for what is open, then call finish()"
                    )
                self._commit(*self._study.followed_by(self._tally.release()))
            self._commit(Offered(number, request.id))
        releases = self._study.releases[request.known :]
        return Offer(request.id, number, self._study.open_epoch, releases)

    @Role.guarded
    def receive(self, report: Report) -> Receipt:
        """Count a report, once, and acknowledge it; a repeat is acknowledged again."""
        self._study.check_running()
        if self._tally.is_new(report):
            self._commit(report)
        return Receipt(report.id, "counted")

    @Role.guarded
    def decline(self, decline: Decline) -> Receipt:
        """Close a round that will not be answered."""
        self._study.check_running()
        if self._tally.is_open(decline.id):
            self._commit(decline)
        return Receipt(decline.id, "declined")

    @Role.guarded
    def finish(self) -> None:
        """Close the open epoch and end the study; a finished study stays as it is."""
        if self._study.is_running:
            release = self._tally.release()
            self._study.released(release)  # what nobody could learn from is not kept
            self._commit(release)

    @property
    @Role.guarded
    def study(self) -> Study:
        """The public record so far."""
        return self._study

    @property
    @Role.guarded
    def asked(self) -> int:
        """The number of asks so far."""
        return self._tally.asked

    @property
    @Role.guarded
    def reports(self) -> int:
        """How many reports of the open epoch were counted."""
        return self._tally.reports

    def _first_records(self) -> tuple[Serving, Epoch]:
        return Serving(self._simulated), self._study.next_epoch()

    def _apply(self, record: Serving | Epoch | Release | Offered | Report | Decline) -> None:
        if isinstance(record, Offered | Report | Decline):
            self._study.check_running()  # a round needs one
        match record:
            case Serving():
                if record.simulated != self._simulated:
                    kind = "a simulation" if record.simulated else "a real study"
                    raise Refused(f"the journal is that of {kind}: it cannot go on as the other")
            case Offered():
                self._tally.offer(record.number, record.id)
            case Report():
                self._tally.count(record)
            case Decline():
                self._tally.decline(record.id)
            case Release():
                self._study = self._study.released(record)
            case Epoch():
                self._study = self._study.opened(record)
                self._tally.open(record)


def compacted(journal: Journal) -> Iterator[bytes]:
    """A server's records without the ids and reports of closed epochs, which it needs no more.

    Write them to a new journal and resume from that: what is kept of each person is then no more
    than an id, and a report that is private itself, until their epoch closes.
    """
    kept: list[bytes] = []
    for data in journal.records():
        if isinstance(
            canonical.decode(Plan | Wording | Server.RECORDS, data), Offered | Report | Decline
        ):
            kept.append(data)
        else:
            kept.clear()  # before a release: its epoch is closed
            yield data
    yield from kept
