"""The server of the local model: it adds what clients report, and learns from the sums.

It sees random ids and randomised increments, nothing else, and need not be trusted with them: a
report is private before it is sent. It is no more than a public calculation with a memory.
"""

from collections.abc import Iterator, Sequence

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.agreement.wording import Wording
from discreet.errors import BetweenEpochs, DiscreetError, InvalidArgument, Refused, StudyEnded
from discreet.learning.epoch import Epoch
from discreet.learning.study import Study
from discreet.protocol.messages import (
    AnyReport,
    Decline,
    IndexReport,
    Offer,
    Receipt,
    Report,
    Request,
)
from discreet.protocol.records import Offered, Serving
from discreet.protocol.replies import Replies
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

    RECORDS = Serving | Epoch | Release | Offered | Report | IndexReport | Decline

    def __init__(
        self,
        plan: Plan,
        journal: JournalPlace = None,
        *,
        simulated: bool = False,
    ) -> None:
        if not plan.is_local or plan.is_shuffled:
            raise InvalidArgument("plan", "one with LocalDP privacy: nobody reports otherwise")
        super().__init__(plan, journal)
        self._simulated = simulated
        self._tally = Tally(self.plan, simulated=simulated)
        self._study = Study(self.plan, simulated=simulated or None)
        self._start()

    @Role.guarded
    def offer(self, request: Request) -> Offer:
        """The next ask; the first after an epoch's last closes it. A repeat gets the same offer."""
        return self.offer_many([request]).only()

    @Role.guarded
    def offer_many(self, requests: Sequence[Request]) -> Replies[Offer]:
        """The next asks, each epoch's in one write: what as many single calls would give.

        With more than `asks_left` of them the open epoch is closed on the way, and a report of one
        that came before is too late: a batch that is to be counted stays below.
        """
        self._study.check_running()
        outcomes: list[Offer | Exception] = []
        while len(outcomes) < len(requests):
            newest, turns = self._offers(requests[len(outcomes) :])
            outcomes += newest
            if turns:
                self._commit(*self._study.followed_by(self._tally.release()))
        return Replies[Offer].of(outcomes)

    def _offers(self, requests: Sequence[Request]) -> tuple[list[Offer | Exception], bool]:
        """What these get, as far as the open epoch goes; whether the next one turns it over."""
        offered: dict[str, Offered] = {}
        outcomes: list[Offer | Exception] = []
        turns = False
        for request in requests:
            try:
                outcomes.append(self._offer(request, offered))
            except BetweenEpochs:
                turns = True
                break
            except DiscreetError as error:
                outcomes.append(error)
        if offered:
            self._commit(*offered.values())
        return outcomes, turns

    def _offer(self, request: Request, offered: dict[str, Offered]) -> Offer:
        """The offer to this request; a new one joins those that are to be kept."""
        epoch, releases = self._study.open_epoch, self._study.releases
        number = self._tally.number_for(request.id)
        if request.id in offered:
            number = offered[request.id].number
        elif number == self._tally.asked:
            if request.known > len(releases):
                raise InvalidArgument("known", "at most the number of releases", request.known)
            number += len(offered)
            if number == self.plan.last:
                raise StudyEnded(
                    "the horizon is reached: wait for what is open, then call finish()"
                )
            if number == epoch.end:
                raise BetweenEpochs("every ask of this epoch is given")
            offered[request.id] = Offered(number, request.id)
        return Offer(request.id, number, epoch, releases[request.known :])

    @Role.guarded
    def receive(self, report: AnyReport) -> Receipt:
        """Count a report, once, and acknowledge it; a repeat is acknowledged again."""
        return self.receive_many([report]).only()

    @Role.guarded
    def receive_many(self, reports: Sequence[AnyReport]) -> Replies[Receipt]:
        """Count reports in one write, each once; one that is refused does not stop the others."""
        self._study.check_running()
        counted: dict[str, AnyReport] = {}
        outcomes: list[Receipt | Exception] = []
        for report in reports:
            try:
                if self._tally.is_new(report):
                    counted.setdefault(report.id, report)
                outcomes.append(Receipt(report.id, "counted"))
            except DiscreetError as error:
                outcomes.append(error)
        if counted:
            self._commit(*counted.values())
        return Replies[Receipt].of(outcomes)

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
    def asks_left(self) -> int:
        """How many asks the open epoch has left; the next one after them closes it."""
        return self._study.open_epoch.end - self._tally.asked

    @property
    @Role.guarded
    def reports(self) -> int:
        """How many reports of the open epoch were counted."""
        return self._tally.reports

    def _first_records(self) -> tuple[Serving, Epoch]:
        return Serving(self._simulated), self._study.next_epoch()

    def _apply(self, record: Serving | Epoch | Release | Offered | AnyReport | Decline) -> None:
        if isinstance(record, Offered | AnyReport | Decline):
            self._study.check_running()  # a round needs one
        match record:
            case Serving():
                if record.simulated != self._simulated:
                    kind = "a simulation" if record.simulated else "a real study"
                    raise Refused(f"the journal is that of {kind}: it cannot go on as the other")
            case Offered():
                self._tally.offer(record.number, record.id)
            case Report() | IndexReport():
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
            canonical.decode(Plan | Wording | Server.RECORDS, data), Offered | AnyReport | Decline
        ):
            kept.append(data)
        else:
            kept.clear()  # before a release: its epoch is closed
            yield data
    yield from kept
