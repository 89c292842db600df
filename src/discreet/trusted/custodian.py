"""The custodian: it talks to people, and hands releases to a publisher.

    custodian.open(opening)                  # checks the publisher's epoch against plan and chain
    action = custodian.choose(ask)           # chooses here, out of the public epoch
    receipt = custodian.receive(answer)      # clipped, encoded, added: once
    actions = custodian.choose_many(asks)    # the same for many, in one write
    release = custodian.release()            # drawn once, kept, then shown
    custodian.open(publisher.publish(release))

People trust it with their decision sets and answers. The publisher need not be trusted with
anything: an epoch weaker than the plan is refused before anyone acts under it, and what goes to the
publisher is one release an epoch. `Custody` does the work; this gives it messages, and a memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.errors import DiscreetError, InvalidArgument, Refused, StudyEnded, UnknownTrial
from discreet.privacy.budget import Simulation
from discreet.protocol.decisions import brought
from discreet.protocol.messages import (
    Action,
    Answer,
    Ask,
    Decline,
    Opening,
    Outcome,
    Receipt,
    write,
)
from discreet.protocol.records import Abandoned, Asked, Entered, Passed, Told, UserKey
from discreet.protocol.replies import Replies
from discreet.protocol.role import JournalPlace, Role
from discreet.storage import canonical
from discreet.trusted.custody import Custody
from discreet.trusted.entries import Entry, Person

#: Said when what a person brought led to no action.
NO_ACTION = "this ask could not be given an action: it was a round all the same"
Record = UserKey | Opening | Entered | Passed | Told | Abandoned | Release


@dataclass(frozen=True)
class Round:
    """What is needed to answer a message that comes again."""

    number: int
    seal: str
    chosen: int | None = field(default=None, repr=False)
    outcome: Outcome | Literal["passed"] | None = None


class Custodian(Role):
    """Give actions, count answers, let out one release an epoch.

    `journal` is the path of an SQLite file; a custodian given one resumes exactly. It is as
    sensitive as what it is told, and not to be restored from a copy. With a `simulation` noise
    comes from its seed: that is not private. Threads may share a custodian.

    `BetweenEpochs` says that the next epoch is not open yet: hand up the release, open what the
    publisher answers, and try again.

    >>> import discreet
    >>> from discreet.protocol.messages import Answer, Ask
    >>> privacy = discreet.JointDP(epsilon=1.0, delta=1e-6)
    >>> plan = discreet.Plan(domain=discreet.Box({"dose": (0, 10)}), privacy=privacy)
    >>> custodian, publisher = discreet.Custodian(plan), discreet.Publisher(plan)
    >>> custodian.open(publisher.opening)
    >>> action = custodian.choose(Ask("ab" * 16, "u-17"))
    >>> custodian.receive(Answer("ab" * 16, 0.7)).outcome
    'counted'
    """

    RECORDS = Record
    CUSTODY: ClassVar[type[Custody]] = Custody

    def __init__(
        self,
        plan: Plan,
        journal: JournalPlace = None,
        *,
        simulation: Simulation | None = None,
    ) -> None:
        if plan.is_local:
            raise InvalidArgument("plan", "one of the joint model: LocalDP has a Client")
        super().__init__(plan, journal)
        self._custody = self.CUSTODY(self.plan, simulation)
        self._rounds: dict[str, Round] = {}
        self._ids: dict[int, str] = {}
        self._start()

    # -- with people

    @Role.guarded
    def choose(self, ask: Ask) -> Action:
        """The action for this ask. An ask that comes again gets the same one, and no other round.

        It depends on the plan, the releases, the index of the ask and what this person brings.
        """
        return self.choose_many([ask]).only()

    @Role.guarded
    def choose_many(self, asks: Sequence[Ask]) -> Replies[Action]:
        """The actions for these asks, in one write: what as many single calls would give.

        An epoch has `asks_left`; whoever comes after them is refused with `BetweenEpochs` and has
        no round: open the next epoch, and let them ask again.
        """
        self._check_running()
        seals = [self._custody.participants.keyed(write(ask)) for ask in asks]
        new: dict[str, tuple[Ask, str]] = {}
        for ask, seal in zip(asks, seals, strict=True):
            if ask.id not in self._rounds:
                new.setdefault(ask.id, (ask, seal))
        outcomes = self._enter(list(new.values()))
        return Replies[Action].of(
            [self._outcome(ask, seal, outcomes) for ask, seal in zip(asks, seals, strict=True)]
        )

    @Role.guarded
    def receive(self, answer: Answer) -> Receipt:
        """Count an answer, once, in the epoch that is open; a repeat is acknowledged again."""
        return self.receive_many([answer]).only()

    @Role.guarded
    def receive_many(self, answers: Sequence[Answer]) -> Replies[Receipt]:
        """Count answers in one write, each once; one that is refused does not stop the others."""
        self._check_running()
        told: dict[str, Told] = {}
        outcomes: list[Receipt | Exception] = []
        for answer in answers:
            try:
                known = self._known(answer.id)
                if known.outcome != "counted" and answer.id not in told:
                    told[answer.id] = self._custody.answer(known.number, answer.reward)
                outcomes.append(Receipt(answer.id, "counted"))
            except DiscreetError as error:
                outcomes.append(error)
        if told:
            self._commit(*told.values())
        return Replies[Receipt].of(outcomes)

    @Role.guarded
    def decline(self, decline: Decline) -> Receipt:
        """Close a round that will not be answered; it was a round all the same."""
        self._check_running()
        known = self._known(decline.id)
        if known.outcome != "declined":
            self._commit(Abandoned(self._custody.session.find(known.number).number))
        return Receipt(decline.id, "declined")

    # -- with the publisher

    @Role.guarded
    def open(self, opening: Opening) -> None:
        """Begin the epoch that the publisher opened, if plan and chain allow it; once."""
        known = self._custody.opening
        if known is None or canonical.digest(opening) != canonical.digest(known):
            self._custody.check_follows(opening)
            self._commit(opening)

    @Role.guarded
    def release(self) -> Release:
        """The release of an epoch whose asks are all given; the same one until the next is open."""
        if self._custody.life.state == "open":
            raise Refused("this epoch has asks left: finish() would end the study with it")
        return self.finish()

    @Role.guarded
    def finish(self) -> Release:
        """The open epoch's release as it is. With asks left, it is the last one of the study.

        Where every ask was given the publisher opens one more epoch: finish that one, too.
        """
        release = self._custody.draw()
        if self._custody.release is None:
            self._commit(release)
        return release

    @property
    @Role.guarded
    def outbox(self) -> Release | None:
        """The release that the publisher has not answered yet: send it, as often as needed."""
        return None if self._custody.life.state == "over" else self._custody.release

    @property
    @Role.guarded
    def asked(self) -> int:
        """The number of asks so far."""
        return self._custody.session.asked

    @property
    @Role.guarded
    def asks_left(self) -> int:
        """How many asks the open epoch has left: none before an epoch is open."""
        return self._custody.asks_left

    def _enter(self, asks: Sequence[tuple[Ask, str]]) -> dict[str, Action | Exception]:
        """Keep new rounds, in one write; by id the action, or why there is none."""
        people = [
            Person(ask.user, brought(self.plan, ask.candidates, ask.context)) for ask, _ in asks
        ]
        found: dict[str, Action | Exception] = {}
        while len(found) < len(asks):
            left = asks[len(found) :]
            try:
                entries = self._custody.enter(people[len(found) :])
            except DiscreetError as error:  # no asks left; the next may have another reason
                found[left[0][0].id] = error
                continue
            pairs = list(zip(left, entries, strict=False))
            records = [_record(ask, seal, each) for (ask, seal), each in pairs if each.record]
            if records:
                self._commit(*records)
            found |= {ask.id: self._action(ask, each) for (ask, _), each in pairs}
        return found

    def _action(self, ask: Ask, entry: Entry) -> Action | Exception:
        if isinstance(entry.record, Asked):
            return Action(ask.id, self.plan.domain.decode(entry.record.point), entry.chosen)
        return entry.refusal or Refused(NO_ACTION)

    def _outcome(
        self, ask: Ask, seal: str, entered: dict[str, Action | Exception]
    ) -> Action | Exception:
        """What an ask gets: it is new, or comes again."""
        known = self._rounds.get(ask.id)
        if known is not None and known.seal != seal:
            return Refused("another ask had this id before: draw a fresh one for each")
        if ask.id in entered:
            return entered[ask.id]
        if known is None or known.outcome == "passed":
            return Refused(NO_ACTION)
        try:
            point = self._custody.session.find(known.number).point
        except DiscreetError as error:
            return error
        return Action(ask.id, self.plan.domain.decode(point), known.chosen)

    def _known(self, id: str) -> Round:  # noqa: A002
        if id not in self._rounds:
            raise UnknownTrial("no trial of this id was ever asked for in this study")
        return self._rounds[id]

    def _check_running(self) -> None:
        if self._custody.life.state == "over":
            raise StudyEnded("the study is finished: it has no open epoch")

    # -- records

    def _first_records(self) -> tuple[UserKey]:
        return (self._custody.participants.new_key(),)

    def _apply(self, record: Record) -> None:
        self._custody.apply(record.asked if isinstance(record, Entered) else record)
        match record:
            case Entered():
                self._know(record.id, Round(record.asked.number, record.seal, record.chosen))
            case Passed():
                known = Round(record.number, record.seal or "", outcome="passed")
                self._know(record.id or "", known)
            case Told():
                self._close(record.number, "counted")
            case Abandoned():
                self._close(record.number, "declined")
            case _:
                pass

    def _apply_all(self, records: Sequence[Record]) -> None:
        told = [record for record in records if isinstance(record, Told)]
        if told and len(told) == len(records):
            self._custody.tell(told)
            for record in told:
                self._close(record.number, "counted")
        else:
            super()._apply_all(records)

    def _know(self, id: str, known: Round) -> None:  # noqa: A002
        self._rounds[id], self._ids[known.number] = known, id

    def _close(self, number: int, outcome: Outcome) -> None:
        known = self._ids[number]
        self._rounds[known] = replace(self._rounds[known], outcome=outcome)


def _record(ask: Ask, seal: str, entry: Entry) -> Entered | Passed:
    if isinstance(entry.record, Passed):
        return replace(entry.record, id=ask.id, seal=seal)
    if entry.record is None:
        raise InvalidArgument("entry", "one that is a round")
    return Entered(ask.id, seal, entry.record, entry.chosen)
