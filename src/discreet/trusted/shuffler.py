"""The shuffler: it stands between clients and server, mixes an epoch's reports and forgets whose.

    shuffler.open(server.turn)                     # checks the epoch against plan and chain
    offer = shuffler.offer(client.request())       # the next ask, under the open epoch
    receipt = shuffler.receive(client.report(0.7)) # a box that it cannot open, once
    batch = shuffler.batch()                       # mixed once, kept, then handed up
    shuffler.open(server.take(batch))

People trust it to mix, to strip and to count each of them once; not with what they say, for boxes
are sealed for the server. What goes up is a batch of boxes in random order: no id, no ask, no
time. People whose public action is the same are mixed with each other; where actions are private,
all are. A group, or a batch, of fewer reports than the plan promises is not handed up: the server
learns that, and the reports are lost. What shuffler and server could see together is a report with
a name on it, private at its own level epsilon_0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.agreement.wording import Wording
from discreet.errors import (
    BetweenEpochs,
    DiscreetError,
    InvalidArgument,
    Refused,
    StudyEnded,
    TrialClosed,
    UnknownTrial,
)
from discreet.learning.epoch import Epoch
from discreet.protocol.batches import Batch, Sealed, Turn
from discreet.protocol.epochs import EpochLife
from discreet.protocol.messages import Decline, Offer, Receipt, Request
from discreet.protocol.records import Offered, Serving
from discreet.protocol.replies import Replies
from discreet.protocol.role import JournalPlace, Role
from discreet.protocol.rounds import OPEN, Event, State, advance, is_repeat
from discreet.protocol.verifier import Verifier
from discreet.storage import canonical
from discreet.storage.journal import Journal
from discreet.trusted.randomness import mixed

Record = Serving | Turn | Offered | Sealed | Decline | Batch


class Shuffler(Role):
    """Offer rounds, take sealed reports, hand up one mixed batch an epoch.

    `journal` is the path of an SQLite file; a shuffler given one resumes exactly, and hands up the
    same batch. It says who took part when: keep it from the server, and compact it (`compacted`).
    `BetweenEpochs` says that the next epoch is not open yet: hand up the batch, open what the
    server answers, and try again. Threads may share a shuffler.
    """

    RECORDS = Record

    def __init__(
        self, plan: Plan, journal: JournalPlace = None, *, simulated: bool = False
    ) -> None:
        if not plan.is_shuffled:
            raise InvalidArgument("plan", "one with ShuffledDP privacy")
        super().__init__(plan, journal)
        self._simulated = simulated
        self._verifier = Verifier(self.plan)
        self._life = EpochLife()
        self._turn: Turn | None = None
        self._releases: tuple[Release, ...] = ()
        self._batch: Batch | None = None
        self._asked = 0
        self._start()

    # -- with clients

    @Role.guarded
    def offer(self, request: Request) -> Offer:
        """The next ask of the open epoch; a request that comes again gets the same one."""
        return self.offer_many([request]).only()

    @Role.guarded
    def offer_many(self, requests: Sequence[Request]) -> Replies[Offer]:
        """The next asks, in one write; who comes after an epoch's last is refused."""
        new: dict[str, Offered] = {}
        outcomes: list[Offer | Exception] = []
        for request in requests:
            try:
                outcomes.append(self._offer(request, new))
            except DiscreetError as error:
                outcomes.append(error)
        if new:
            self._commit(*new.values())
        return Replies[Offer].of(outcomes)

    @Role.guarded
    def receive(self, report: Sealed) -> Receipt:
        """Take a report, once; a repeat is acknowledged again."""
        return self.receive_many([report]).only()

    @Role.guarded
    def receive_many(self, reports: Sequence[Sealed]) -> Replies[Receipt]:
        """Take reports in one write, each once; one that is refused does not stop the others."""
        new: dict[str, Sealed] = {}
        outcomes: list[Receipt | Exception] = []
        for report in reports:
            try:
                if self._is_new(report, new):
                    new[report.id] = report
                outcomes.append(Receipt(report.id, "counted"))
            except DiscreetError as error:
                outcomes.append(error)
        if new:
            self._commit(*new.values())
        return Replies[Receipt].of(outcomes)

    @Role.guarded
    def decline(self, decline: Decline) -> Receipt:
        """Close a round that will not be answered."""
        ticket = self._ticket(decline.id)
        if not is_repeat(ticket[1], "abandon"):
            self._life.check("answer")
            advance("server", ticket[1], "abandon", trial=ticket[0])
            self._commit(decline)
        return Receipt(decline.id, "declined")

    # -- with the server

    @Role.guarded
    def open(self, turn: Turn) -> None:
        """Begin the epoch that the server opened, if plan and chain allow it; once."""
        if self._turn is None or canonical.digest(turn) != canonical.digest(self._turn):
            self._check_follows(turn)
            self._commit(turn)

    @Role.guarded
    def batch(self) -> Batch:
        """The batch of an epoch whose asks are all given; the same one until the next is open."""
        if self._life.state == "open":
            raise Refused("this epoch has asks left: finish() would end the study with it")
        return self.finish()

    @Role.guarded
    def finish(self) -> Batch:
        """The open epoch's batch as it is. With asks left, it is the last one of the study."""
        if self._batch is None:
            self._commit(self._mixed(self._epoch))
        return self._kept

    @property
    @Role.guarded
    def outbox(self) -> Batch | None:
        """The batch that the server has not answered yet: send it, as often as needed."""
        return None if self._life.state == "over" else self._batch

    @property
    @Role.guarded
    def asked(self) -> int:
        """The number of asks so far."""
        return self._asked

    @property
    @Role.guarded
    def asks_left(self) -> int:
        """How many asks the open epoch has left: none before one is open."""
        return self._epoch.end - self._asked if self._life.state == "open" else 0

    # -- decisions

    def _offer(self, request: Request, new: dict[str, Offered]) -> Offer:
        """The offer to this request; a new one joins those that are to be kept."""
        epoch, ticket = self._epoch, self._tickets.get(request.id)
        if request.id in new:
            number = new[request.id].number
        elif ticket is not None:
            if not is_repeat(ticket[1], "offer"):
                advance("server", ticket[1], "offer", trial=ticket[0])
            number = ticket[0]
        else:
            if request.known > len(self._releases):
                raise InvalidArgument("known", "at most the number of releases", request.known)
            number = self._asked + len(new)
            if number == self.plan.last:
                raise StudyEnded("the horizon is reached: wait for what is open, call finish()")
            self._life.check("ask")
            if number == epoch.end:
                raise BetweenEpochs("every ask of this epoch is given: its batch comes first")
            new[request.id] = Offered(number, request.id)
        releases = self._releases[request.known :]
        return Offer(request.id, number, epoch, releases, key=self._opened.key)

    def _is_new(self, report: Sealed, new: dict[str, Sealed]) -> bool:
        """Whether a report would be taken now: False for one that was; errors for others."""
        if report.epoch != self._epoch.digest:
            raise TrialClosed("this report is for another epoch than the open one: it has expired")
        if report.key != self._opened.key:
            raise Refused("this report is sealed for another key than the server's")
        if bool(report.simulated) != self._simulated:
            raise Refused("simulated reports and real ones do not go together")
        number, state = self._ticket(report.id)
        if is_repeat(state, "report") or report.id in new:
            return False
        self._life.check("answer")
        advance("server", state, "report", trial=number)
        if report.box in self._boxes or any(report.box == each.box for each in new.values()):
            raise Refused("this report was sent before, for another round: it was not taken")
        return True

    def _mixed(self, epoch: Epoch) -> Batch:
        """The batch: each group in random order, none where there are too few."""
        groups: list[list[str]] = [[] for _ in epoch.groups]
        for box, number in self._boxes.items():
            groups[epoch.group_of(number)].append(box)
        promise = self.plan.shuffled
        if len(self._boxes) < promise.minimum:
            groups = [[] for _ in groups]
        kept = (
            () if promise.drops(len(group), asks) else tuple(mixed(group))
            for group, asks in zip(groups, epoch.groups, strict=True)
        )
        simulated = True if self._simulated else None
        return Batch(epoch.digest, self._asked - epoch.first, tuple(kept), simulated=simulated)

    def _check_follows(self, turn: Turn) -> None:
        """Refuse a turn that does not follow from the batch that was kept last."""
        if self._life.state == "over":
            raise StudyEnded("the study is finished: it has no open epoch")
        if self._life.state not in (None, "released"):
            raise Refused("another epoch is open, and its batch was not handed up yet")
        if self._turn is not None and turn.key != self._turn.key:
            raise Refused("this turn has another key than the first one had")
        batch, release = self._batch, turn.release
        if (batch is None) != (release is None):
            raise Refused("this turn does not follow from the batches so far")
        if batch is not None and release is not None:
            named = (release.epoch, release.asks) == (batch.epoch, batch.asks)
            if not named or (release.reports or 0) > batch.size:
                raise Refused("this turn's release is not of the batch that was handed up")
        if turn.epoch is not None:
            self._verifier.check(turn.epoch, () if release is None else (release,))

    # -- records

    def _first_records(self) -> tuple[Serving]:
        return (Serving(self._simulated),)

    def _apply(self, record: Record) -> None:
        match record:
            case Serving():
                if record.simulated != self._simulated:
                    kind = "a simulation" if record.simulated else "a real study"
                    raise Refused(f"the journal is that of {kind}: it cannot go on as the other")
            case Turn():
                self._open(record)
            case Offered():
                self._enter(record)
            case Sealed():
                self._step(record.id, "report")
                self._boxes[record.box] = self._ticket(record.id)[0]
            case Decline():
                self._step(record.id, "abandon")
            case Batch():
                self._life.advance("draw")
                self._life.advance("release")
                self._batch = record

    def _open(self, turn: Turn) -> None:
        if turn.release is not None:
            self._releases += (turn.release,)
        self._turn, self._batch = turn, None
        self._tickets: dict[str, tuple[int, State]] = {}
        self._ids: list[str] = []
        self._boxes: dict[str, int] = {}  # each with its ask, which the batch forgets
        if turn.epoch is None:
            self._life.advance("end")
        else:
            self._asked = turn.epoch.first
            self._verifier.take(turn.epoch, () if turn.release is None else (turn.release,))
            self._life.advance("open")

    def _enter(self, record: Offered) -> None:
        epoch = self._epoch
        if record.number != self._asked or record.id in self._tickets:
            raise UnknownTrial(f"the next trial is {self._asked}, and has an id of its own")
        self._tickets[record.id] = record.number, advance("server", None, "offer")
        self._ids.append(record.id)
        self._asked += 1
        late = len(self._ids) - 1 - self.plan.expire_after
        if late >= 0 and self._tickets[self._ids[late]][1] in OPEN:
            self._step(self._ids[late], "expire")
        if self._asked == epoch.end:
            self._life.advance("fill")

    def _step(self, id: str, event: Event) -> None:  # noqa: A002
        number, state = self._ticket(id)
        self._tickets[id] = number, advance("server", state, event, trial=number)

    def _ticket(self, id: str) -> tuple[int, State]:  # noqa: A002
        if self._turn is None or id not in self._tickets:
            raise UnknownTrial("no trial of this id was offered in the open epoch")
        return self._tickets[id]

    @property
    def _opened(self) -> Turn:
        if self._turn is None:
            raise BetweenEpochs("no epoch is open yet: open the server's first one")
        return self._turn

    @property
    def _epoch(self) -> Epoch:
        epoch = self._opened.epoch
        if epoch is None:
            raise StudyEnded("the study is finished: it has no open epoch")
        return epoch

    @property
    def _kept(self) -> Batch:
        if self._batch is None:
            raise BetweenEpochs("no batch is mixed yet")
        return self._batch


def compacted(journal: Journal) -> Iterator[bytes]:
    """A shuffler's records without the ids and boxes of closed epochs, which it needs no more."""
    kept: list[bytes] = []
    batch: Batch | None = None
    for data in journal.records():
        record = canonical.decode(Plan | Wording | Record, data)
        if isinstance(record, Batch):
            batch = record
        if isinstance(record, Offered | Sealed | Decline | Batch):
            kept.append(data)
            continue
        if isinstance(record, Turn) and batch is not None:
            yield canonical.encode(replace(batch, groups=()))  # answered: that it was is enough
        kept.clear()
        batch = None
        yield data
    yield from kept
