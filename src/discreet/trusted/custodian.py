"""The custodian: it talks to people, and hands releases to a publisher.

    custodian.open(opening)                  # checks the publisher's epoch against plan and chain
    action = custodian.choose(ask)           # chooses here, out of the public epoch
    receipt = custodian.receive(answer)      # clipped, encoded, added: once
    release = custodian.release()            # drawn once, kept, then shown
    custodian.open(publisher.publish(release))

People trust it with their decision sets and answers. The publisher need not be trusted with
anything: an epoch weaker than the plan is refused before anyone acts under it, and what goes to the
publisher is one release an epoch. `Privatizer` does the sums; this gives it messages, and a memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from discreet.agreement.plan import Plan
from discreet.agreement.release import GENESIS, Release
from discreet.errors import BetweenEpochs, InvalidArgument, Refused, StudyEnded, UnknownTrial
from discreet.learning.epoch import Epoch
from discreet.privacy.budget import Simulation
from discreet.protocol.decisions import decide, decision_set
from discreet.protocol.epochs import EpochLife
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
from discreet.protocol.records import Abandoned, Asked, Entered, Told, UserKey
from discreet.protocol.role import JournalPlace, Role
from discreet.protocol.rounds import Session
from discreet.protocol.verifier import Verifier, is_inside
from discreet.storage import canonical
from discreet.trusted.participants import Participants
from discreet.trusted.privatizer import Privatizer


@dataclass(frozen=True)
class Round:
    """What is needed to answer a message that comes again."""

    number: int
    seal: str
    chosen: int | None = field(repr=False)
    outcome: Outcome | None = None


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

    RECORDS = UserKey | Opening | Entered | Told | Abandoned | Release

    def __init__(
        self,
        plan: Plan,
        journal: JournalPlace = None,
        *,
        simulation: Simulation | None = None,
        embedded: bool = False,
    ) -> None:
        if plan.is_local:
            raise InvalidArgument("plan", "one of the joint model: LocalDP has a Client")
        super().__init__(plan, journal, embedded=embedded)
        self._participants = Participants(self.plan, simulated=simulation is not None)
        self._privatizer = Privatizer(self.plan, simulation)
        self._verifier = Verifier(self.plan)
        self._life = EpochLife()
        self._opening: Opening | None = None
        self._release: Release | None = None
        self._rounds: dict[str, Round] = {}
        self._ids: dict[int, str] = {}
        self._start()

    # -- with people

    def choose(self, ask: Ask) -> Action:
        """The action for this ask. An ask that comes again gets the same one, and no other round.

        It depends on the plan, the releases, the index of the ask and what this person brings.
        """
        with self._lock:
            self._check_running()
            seal = self._participants.keyed(write(ask))
            if ask.id not in self._rounds:
                asked, chosen = self.enter(ask.candidates, ask.context, ask.user)
                self._commit(Entered(ask.id, seal, asked, chosen))
            known = self._rounds[ask.id]
            if known.seal != seal:
                raise Refused("another ask had this id before: draw a fresh one for each")
            point = self.session.find(known.number).point
            return Action(ask.id, self.plan.domain.decode(point), known.chosen)

    def receive(self, answer: Answer) -> Receipt:
        """Count an answer, once, in the epoch that is open; a repeat is acknowledged again."""
        with self._lock:
            self._check_running()
            known = self._known(answer.id)
            if known.outcome != "counted":
                self._commit(self.answer(known.number, answer.reward))
            return Receipt(answer.id, "counted")

    def decline(self, decline: Decline) -> Receipt:
        """Close a round that will not be answered; it was a round all the same."""
        with self._lock:
            self._check_running()
            known = self._known(decline.id)
            if known.outcome != "declined":
                self._commit(Abandoned(self.session.find(known.number).number))
            return Receipt(decline.id, "declined")

    # -- with the publisher

    def open(self, opening: Opening) -> None:
        """Begin the epoch that the publisher opened, if plan and chain allow it; once."""
        with self._lock:
            if not self._is_open(opening):
                self._check_follows(opening)
                self._commit(opening)

    def release(self) -> Release:
        """The release of an epoch whose asks are all given; the same one until the next is open."""
        with self._lock:
            if self._life.state == "open":
                raise Refused("this epoch has asks left: finish() would end the study with it")
            return self.finish()

    def finish(self) -> Release:
        """The open epoch's release as it is. With asks left, it is the last one of the study.

        Where every ask was given the publisher opens one more epoch: finish that one, too.
        """
        with self._lock:
            self._check_whole()
            if self._release is not None:
                return self._release
            release = self.draw()
            self._commit(release)
            return release

    @property
    def outbox(self) -> Release | None:
        """The release that the publisher has not answered yet: send it, as often as needed."""
        return None if self._life.state == "over" else self._release

    @property
    def asked(self) -> int:
        """The number of asks so far."""
        return self.session.asked

    # -- by the numbers of rounds: decisions that change nothing, for whoever keeps the records

    def enter(
        self, candidates: object, context: Mapping[str, object] | None, user: object
    ) -> tuple[Asked, int | None]:
        """A new round and, out of candidates, the position of its action; or a refusal."""
        options = decision_set(self.plan, candidates, context)
        pseudonym = self._participants.admit(user)
        is_full = self._life.state == "full"
        if not is_full:
            self._life.check("ask")
        epoch, number = self._epoch, self.asked
        # Also where it is full: who can not be given an action is no reason for a release.
        index = epoch.first if is_full else number
        point, chosen = decide(self.plan, epoch, index, options)
        if options is not None and not is_inside(self.plan, point[None, :]):
            raise Refused("this epoch's policy leads out of the domain")
        if number == self.plan.last:
            raise StudyEnded("the horizon is reached: tell what is open, then call finish()")
        self._life.check("ask")
        return Asked(number, point, pseudonym), chosen

    @property
    def session(self) -> Session:
        """Which rounds are open: not public."""
        return self._privatizer.session

    def answer(self, number: int, reward: float) -> Told:
        """What to keep of an answer to an open round."""
        self.session.find(number)
        self._life.check("answer")
        return Told(number, self.plan.clip(reward))

    def draw(self) -> Release:
        """The open epoch's release: drawn once, however often it is asked for, and not kept yet."""
        if self._life.state is None:
            raise BetweenEpochs("no epoch is open yet: open the publisher's first one")
        if self._life.state in ("open", "full"):
            self._life.advance("draw")
        return self._privatizer.release()

    # -- the chain

    @property
    def _epoch(self) -> Epoch:
        epoch = None if self._opening is None else self._opening.epoch
        if epoch is None:
            raise BetweenEpochs("no epoch is open yet: open the publisher's first one")
        return epoch

    def _known(self, id: str) -> Round:  # noqa: A002
        if id not in self._rounds:
            raise UnknownTrial("no trial of this id was ever asked for in this study")
        return self._rounds[id]

    def _check_running(self) -> None:
        if self._life.state == "over":
            raise StudyEnded("the study is finished: it has no open epoch")

    def _is_open(self, opening: Opening) -> bool:
        if self._opening is None:
            return False
        return canonical.digest(opening) == canonical.digest(self._opening)

    def _check_follows(self, opening: Opening) -> None:
        self._check_running()
        if self._life.state not in (None, "released"):
            raise Refused("another epoch is open, and its release was not handed up yet")
        releases = () if self._release is None else (self._release,)
        previous = GENESIS if self._release is None else self._release.digest
        if opening.previous != previous or (opening.epoch is None and not releases):
            raise Refused("this opening does not follow from the releases so far")
        if opening.epoch is not None:
            self._verifier.take(opening.epoch, releases)

    # -- records

    def first_records(self) -> tuple[UserKey]:
        """The key of the study's pseudonyms."""
        return (self._participants.new_key(),)

    def apply(
        self, record: UserKey | Opening | Entered | Asked | Told | Abandoned | Release
    ) -> None:
        """Change the state by a record that is kept."""
        match record:
            case Entered():
                self.apply(record.asked)
                number = record.asked.number
                self._rounds[record.id] = Round(number, record.seal, record.chosen)
                self._ids[number] = record.id
            case Asked():
                self._life.check("ask")
                self._privatizer.ask(record)
                self._participants.count(record.user)
                if self.asked == self._epoch.end:
                    self._life.advance("fill")
            case Told():
                self._life.check("answer")
                self._privatizer.tell(record)
                self._close(record.number, "counted")
            case Abandoned():
                self._privatizer.abandon(record)
                self._close(record.number, "declined")
            case Release():
                self._keep(record)
            case Opening():
                self._check_follows(record)
                self._opening = record
                if record.epoch is None:
                    self._life.advance("end")
                else:
                    self._life.advance("open")
                    self._release = None
                    self._participants.check_identified()
                    self._privatizer.open(record.epoch)
            case UserKey():
                self._participants.identify(record)

    def _close(self, number: int, outcome: Outcome) -> None:
        if (id := self._ids.get(number)) is not None:  # noqa: A001
            self._rounds[id] = replace(self._rounds[id], outcome=outcome)

    def _keep(self, release: Release) -> None:
        if self._life.state not in ("open", "full", "drawn") or release.epoch != self._epoch.digest:
            raise InvalidArgument("release", "one of the open epoch")
        if self._life.state != "drawn":  # it was drawn before this role was resumed
            self._life.advance("draw")
        self._life.advance("release")
        self._release = release
