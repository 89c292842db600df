"""The custodian: it talks to people, and hands releases to a publisher.

    custodian.open(opening)                  # checks the publisher's epoch against plan and chain
    action = custodian.choose(ask)           # chooses here, out of the public epoch
    receipt = custodian.receive(answer)      # clipped, encoded, added: once
    release = custodian.release()            # drawn once, kept, then shown
    custodian.open(publisher.publish(release))

People trust it with their decision sets and answers. The publisher need not be trusted with
anything: an epoch weaker than the plan is refused before anyone acts under it, and what goes to the
publisher is one release an epoch. `Custody` does the work; this gives it messages, and a memory.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.errors import InvalidArgument, Refused, StudyEnded, UnknownTrial
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
from discreet.protocol.role import JournalPlace, Role
from discreet.storage import canonical
from discreet.trusted.custody import Custody
from discreet.trusted.entries import Person


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

    RECORDS = UserKey | Opening | Entered | Passed | Told | Abandoned | Release
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
        self._check_running()
        seal = self._custody.participants.keyed(write(ask))
        if ask.id not in self._rounds:
            self._enter(ask, seal)
        known = self._rounds[ask.id]
        if known.seal != seal:
            raise Refused("another ask had this id before: draw a fresh one for each")
        if known.outcome == "passed":
            raise Refused("this ask could not be given an action: it was a round all the same")
        point = self._custody.session.find(known.number).point
        return Action(ask.id, self.plan.domain.decode(point), known.chosen)

    @Role.guarded
    def receive(self, answer: Answer) -> Receipt:
        """Count an answer, once, in the epoch that is open; a repeat is acknowledged again."""
        self._check_running()
        known = self._known(answer.id)
        if known.outcome != "counted":
            self._commit(self._custody.answer(known.number, answer.reward))
        return Receipt(answer.id, "counted")

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

    def _enter(self, ask: Ask, seal: str) -> None:
        """Keep a new round; one without an action is refused after it is kept."""
        options = brought(self.plan, ask.candidates, ask.context)
        entry = self._custody.enter([Person(ask.user, options)])[0]
        if entry.record is None:
            raise entry.refusal or Refused("this ask could not be given an action")
        if isinstance(entry.record, Asked):
            self._commit(Entered(ask.id, seal, entry.record, entry.chosen))
            return
        self._commit(replace(entry.record, id=ask.id, seal=seal))
        raise entry.refusal or Refused("this ask could not be given an action")

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

    def _apply(
        self, record: UserKey | Opening | Entered | Passed | Told | Abandoned | Release
    ) -> None:
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

    def _know(self, id: str, known: Round) -> None:  # noqa: A002
        self._rounds[id], self._ids[known.number] = known, id

    def _close(self, number: int, outcome: Outcome) -> None:
        known = self._ids[number]
        self._rounds[known] = replace(self._rounds[known], outcome=outcome)
