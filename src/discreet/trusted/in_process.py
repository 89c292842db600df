"""Both sides of a model in one process, for one journal: what a bandit wires.

The two models answer alike. `enter`, `answers`, `turn` and `last` return the records to keep;
`apply` hands a kept record to each side that it concerns. A release and the epoch that follows are
kept in one write, so a journal never ends between them.
"""

from collections.abc import Sequence

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Integers
from discreet.errors import BetweenEpochs, InvalidArgument, StudyEnded
from discreet.learning.epoch import Epoch
from discreet.learning.study import Study
from discreet.one_copy import OneCopy
from discreet.privacy.budget import Simulation
from discreet.protocol.messages import AnyReport, IndexReport, Opening, Report
from discreet.protocol.records import Abandoned, Asked, Passed, Told, UserKey
from discreet.protocol.rounds import Session
from discreet.protocol.tally import Tally
from discreet.protocol.verifier import Verifier
from discreet.trusted import mechanism
from discreet.trusted.custody import HORIZON, Custody
from discreet.trusted.entries import Entry, Person, entries
from discreet.trusted.participants import Participants
from discreet.trusted.randomness import sources

Record = UserKey | Epoch | Release | Asked | Passed | Told | Report | IndexReport | Abandoned


class Joint(OneCopy):
    """A custodian's custody and a publisher's record. The custody checks what is opened, too."""

    def __init__(self, plan: Plan, simulation: Simulation | None) -> None:
        super().__init__()
        self._custody = Custody(plan, simulation)
        self.study = Study(plan, simulated=None if simulation is None else True)
        self.session = self._custody.session
        self.enter = self._custody.enter

    def first_records(self) -> tuple[Record, ...]:
        """A key for pseudonyms, and the first epoch."""
        epoch = self.study.next_epoch()
        self._custody.check_epoch(epoch, None)
        return self._custody.participants.new_key(), epoch

    def answers(self, numbers: Sequence[int], rewards: Sequence[float]) -> list[Told]:
        """What to keep of answers to open rounds."""
        return list(map(self._custody.answer, numbers, rewards))

    def turn(self) -> tuple[Record, ...]:
        """The full epoch's release, and the epoch that follows it."""
        records = self.study.followed_by(self._custody.draw())
        for epoch in records[1:]:
            self._custody.check_epoch(epoch, records[0])
        return records

    def last(self) -> Release:
        """The open epoch's release, to be the last one."""
        release = self._custody.draw()
        self.study.released(release)  # what nobody could learn from is not kept
        return release

    def apply_all(self, records: Sequence[Record]) -> None:
        """As `apply`, one after the other; answers are counted together."""
        told = [record for record in records if isinstance(record, Told)]
        if told and len(told) == len(records):
            self._custody.tell(told)
        else:
            for record in records:
                self.apply(record)

    def apply(self, record: Record) -> None:
        """Hand a kept record to the sides it concerns."""
        match record:
            case Release():
                self._custody.apply(record)
                self.study = self.study.released(record)
            case Epoch():
                self._custody.apply(Opening(record.previous, record))
                self.study = self.study.opened(record)
            case Report() | IndexReport():
                raise InvalidArgument("answer", "a reward: reports belong to the local model")
            case _:
                self._custody.apply(record)


class Local(OneCopy):
    """A server's tally and record, and what people's own clients do.

    One process then sees actions and answers, as on a person's own device; what the tally adds,
    and what comes out, is the randomised reports alone. A report is drawn once, and carries its
    epoch's encoding: rounds still open when their epoch closes expire.
    """

    def __init__(self, plan: Plan, simulation: Simulation | None) -> None:
        super().__init__()
        simulated = simulation is not None
        self._plan, self._simulation = plan, simulation
        self._participants = Participants(plan, simulated=simulated)
        self._tally = Tally(plan, simulated=simulated)
        self._verifier = Verifier(plan)  # one device: what one person has verified, all have
        self._drawn: dict[int, AnyReport] = {}  # not kept yet
        self.session = Session(plan.expire_after, "client")
        self.study = Study(plan, simulated=simulated or None)

    def first_records(self) -> tuple[Record, ...]:
        """A key for pseudonyms and ids, and the first epoch."""
        return self._participants.new_key(), self.study.next_epoch()

    def enter(self, people: Sequence[Person]) -> list[Entry]:
        """New rounds, as far as this epoch has asks left."""
        number, epoch = self.session.asked, self.study.open_epoch
        room = epoch.end - number
        found = entries(self._plan, epoch, number, self._participants, people, room)
        if found:  # whoever may not take part ends no epoch
            return found
        if number == self._plan.last:
            raise StudyEnded(HORIZON)
        raise BetweenEpochs("every ask of this epoch is given: its release comes first")

    def answers(self, numbers: Sequence[int], rewards: Sequence[float]) -> list[AnyReport]:
        """People's reports: each is randomised once, however often it is asked for."""
        points = [self.session.find(number).point for number in numbers]
        new = [i for i, number in enumerate(numbers) if number not in self._drawn]
        if new:
            drawing = [numbers[i] for i in new]
            draw = mechanism.indices if self._plan.sends_indices else mechanism.reports
            integers = draw(
                self._plan,
                self.study.open_epoch,
                np.array([points[i] for i in new]),
                np.array([rewards[i] for i in new]),
                bits=sources(self._simulation, drawing),
            )
            made = map(self._report, drawing, integers)
            self._drawn |= dict(zip(drawing, made, strict=True))
        return [self._drawn[number] for number in numbers]

    def turn(self) -> tuple[Record, ...]:
        """The full epoch's release, and the epoch that follows it."""
        return self.study.followed_by(self._tally.release())

    def last(self) -> Release:
        """The sum of the open epoch's reports: nothing is drawn, for every report already was."""
        release = self._tally.release()
        self.study.released(release)  # what nobody could learn from is not kept
        return release

    def apply_all(self, records: Sequence[Record]) -> None:
        """As `apply`, one after the other; reports are counted together."""
        reports = [record for record in records if isinstance(record, AnyReport)]
        if reports and len(reports) == len(records):
            self._count(reports)
        else:
            for record in records:
                self.apply(record)

    def apply(self, record: Record) -> None:
        """Hand a kept record to the sides it concerns."""
        match record:
            case Asked():
                self._ask(record)
            case Passed():
                self._tally.offer(record.number, self._id(record.number))
                self._tally.decline(self._id(record.number))
                self.session.skip(record)
                self._participants.count(record.user)
            case Report() | IndexReport():
                self._count([record])
            case Abandoned():
                self.session.close(record.number, "abandon")
                self._tally.decline(self._id(record.number))
                self._drawn.pop(record.number, None)
            case Release():
                self.study = self.study.released(record)
            case Epoch():
                self._participants.check_identified()
                self._verifier.take(record, self.study.releases[self._verifier.known :])
                self.study = self.study.opened(record)
                self._tally.open(record)
                self.session.expire_before(record.first)
                self._drawn.clear()
            case UserKey():
                self._participants.identify(record)
            case Told():
                raise InvalidArgument("answer", "a report: the local model keeps no rewards")

    def _ask(self, record: Asked) -> None:
        self.study.check_running()
        self._tally.offer(record.number, self._id(record.number))
        self.session.ask(record)
        self._participants.count(record.user)

    def _count(self, reports: Sequence[AnyReport]) -> None:
        for number in self._tally.count(*reports):
            self.session.close(number)
            self._drawn.pop(number, None)

    def _report(self, number: int, drawn: Integers) -> AnyReport:
        simulated = None if self._simulation is None else True
        epoch = self.study.open_epoch.digest
        if self._plan.sends_indices:
            return IndexReport(self._id(number), epoch, int(drawn), simulated=simulated)
        return Report(self._id(number), epoch, drawn, simulated=simulated)

    def _id(self, number: int) -> str:
        """A round's id: reproducible for a resumed study, and no one's to guess."""
        return self._participants.keyed(b"round %d" % number)
