"""The privatizer as a role of its own: it talks to people, and hands releases to a server.

    custodian.open(opening)                  # checks the server's epoch against plan and chain
    action = custodian.choose(ask)           # chooses here, out of the public epoch
    receipt = custodian.receive(answer)      # clipped, encoded, added: once
    release = custodian.release()            # drawn once, kept, then shown
    custodian.open(publisher.publish(release))

People trust it with their decision sets and answers. The server need not be trusted with anything:
an epoch weaker than the plan is refused before anyone acts under it, and what goes to the server
is one release an epoch. `Privatizer` does the sums; this gives it messages, and a memory.
"""

import os
import threading
from dataclasses import dataclass, field, replace

from discreet.agreement.plan import Plan
from discreet.agreement.release import GENESIS, Release
from discreet.errors import (
    BetweenEpochs,
    InvalidArgument,
    JournalDamaged,
    Refused,
    StudyEnded,
    UnknownTrial,
)
from discreet.learning.epoch import Epoch
from discreet.privacy.budget import JointDP, Simulation
from discreet.protocol.decisions import decision_set
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
from discreet.protocol.role import Kept, Ledger
from discreet.protocol.rounds import Abandoned, Asked, Told, UserKey
from discreet.protocol.verifier import Pin, is_inside
from discreet.storage import canonical
from discreet.storage.journal import Journal
from discreet.trusted.privatizer import Privatizer


@dataclass(frozen=True, eq=False)
class Entered:
    """A round began: the id it goes by, a keyed digest of what was asked, and the action."""

    id: str
    seal: str
    asked: Asked = field(repr=False)
    chosen: int | None = field(default=None, repr=False, metadata=canonical.OPTIONAL)


@dataclass(frozen=True)
class Round:
    """What is needed to answer a message that comes again."""

    seal: str
    chosen: int | None = field(repr=False)
    outcome: Outcome | None = None


Record = Plan | UserKey | Opening | Entered | Told | Abandoned | Release


class Custodian(Kept):
    """Give actions, count answers, let out one release an epoch.

    `journal` is the path of an SQLite file; a custodian given one resumes exactly. It is as
    sensitive as what it is told, and not to be restored from a copy. With a `simulation` noise
    comes from its seed: that is not private. Threads may share a custodian.

    `BetweenEpochs` says that the next epoch is not open yet: hand up the release, open what the
    server answers, and try again.

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

    def __init__(
        self,
        plan: Plan,
        journal: str | os.PathLike[str] | Journal | None = None,
        *,
        simulation: Simulation | None = None,
    ) -> None:
        if not isinstance(plan.privacy, JointDP):
            raise InvalidArgument("plan", "one with JointDP privacy")
        self._plan = plan
        self._privatizer = Privatizer(plan, simulation)
        self._pin = Pin(plan)
        self._opening: Opening | None = None
        self._release: Release | None = None
        self._numbers: dict[str, int] = {}
        self._rounds: list[Round] = []
        self._lock = threading.RLock()
        self._ledger = Ledger(plan, journal, Record)
        self._ledger.resume(self._apply, self._begin)

    # -- with people

    def choose(self, ask: Ask) -> Action:
        """The action for this ask. An ask that comes again gets the same one, and no other round.

        It depends on the plan, the releases, the index of the ask and what this person brings.
        """
        with self._lock:
            self._check_running()
            seal = self._privatizer.seal(write(ask))
            number = self._numbers.get(ask.id)
            if number is None:
                number = self._enter(ask, seal)
            if self._rounds[number].seal != seal:
                raise Refused("another ask had this id before: draw a fresh one for each")
            point = self._privatizer.session.find(number).point
            return Action(ask.id, self._plan.domain.decode(point), self._rounds[number].chosen)

    def receive(self, answer: Answer) -> Receipt:
        """Count an answer, once, in the epoch that is open; a repeat is acknowledged again."""
        with self._lock:
            self._check_running()
            number = self._number(answer.id)
            if self._rounds[number].outcome != "counted":
                self._privatizer.session.find(number)
                self._open_epoch()
                self._commit(self._privatizer.answer(number, answer.reward))
            return Receipt(answer.id, "counted")

    def decline(self, decline: Decline) -> Receipt:
        """Close a round that will not be answered; it was a round all the same."""
        with self._lock:
            self._check_running()
            number = self._number(decline.id)
            if self._rounds[number].outcome != "declined":
                self._privatizer.session.find(number)
                self._commit(Abandoned(number))
            return Receipt(decline.id, "declined")

    # -- with the server

    def open(self, opening: Opening) -> None:
        """Begin the epoch that the server opened, if plan and chain allow it; once."""
        with self._lock:
            if not self._is_open(opening):
                self._check_follows(opening)
                self._commit(opening)

    def release(self) -> Release:
        """The release of an epoch whose asks are all given; the same one until the next is open."""
        with self._lock:
            epoch = None if self._opening is None else self._opening.epoch
            if self._release is None and epoch is not None and self.asked < epoch.end:
                raise Refused("this epoch has asks left: finish() would end the study with it")
            return self.finish()

    def finish(self) -> Release:
        """The open epoch's release as it is. With asks left, it is the last one of the study.

        Where every ask was given the server opens one more epoch: finish that one, too.
        """
        with self._lock:
            self._ledger.check_whole()
            if self._release is not None:
                return self._release
            if self._opening is None:
                raise BetweenEpochs("no epoch is open yet: open the server's first one")
            release = self._privatizer.release()  # drawn once, even if it can not be kept now
            self._commit(release)
            return release

    @property
    def outbox(self) -> Release | None:
        """The release that the server has not answered yet: send it, as often as needed."""
        return None if self._is_over else self._release

    @property
    def asked(self) -> int:
        """The number of asks so far."""
        return self._privatizer.session.asked

    # -- rounds

    def _enter(self, ask: Ask, seal: str) -> int:
        """Choose for a new round and keep it, or refuse it before anything is changed."""
        options = decision_set(self._plan, ask.candidates, ask.context)
        pseudonym = self._privatizer.admit(ask.user)
        epoch, number = self._open_epoch(), self.asked
        is_full = number == epoch.end
        # Also where it is full: who can not be given an action is no reason for a release.
        point, chosen = self._privatizer.choose(epoch.first if is_full else number, options)
        if not is_inside(self._plan, point[None, :]):
            raise Refused("this epoch's policy leads out of the domain")
        if number == self._plan.last:
            raise StudyEnded("the horizon is reached: wait for what is open, then call finish()")
        if is_full:
            raise BetweenEpochs("every ask of this epoch is given: hand up its release first")
        self._commit(Entered(ask.id, seal, Asked(number, point, pseudonym), chosen))
        return number

    def _number(self, id: str) -> int:  # noqa: A002
        if id not in self._numbers:
            raise UnknownTrial("no trial of this id was ever asked for in this study")
        return self._numbers[id]

    def _open_epoch(self) -> Epoch:
        """The open epoch, if its release is not drawn: what came after would be in no release."""
        epoch = None if self._opening is None else self._opening.epoch
        if epoch is None or self._release is not None or self._privatizer.drawn:
            raise BetweenEpochs("the next epoch is not open yet: send this again when it is")
        return epoch

    # -- the chain

    @property
    def _is_over(self) -> bool:
        return self._opening is not None and self._opening.epoch is None

    def _check_running(self) -> None:
        if self._is_over:
            raise StudyEnded("the study is finished: it has no open epoch")

    def _is_open(self, opening: Opening) -> bool:
        if self._opening is None:
            return False
        return canonical.digest(opening) == canonical.digest(self._opening)

    def _check_follows(self, opening: Opening) -> None:
        self._check_running()
        if self._opening is not None and self._release is None:
            raise Refused("another epoch is open, and its release was not handed up yet")
        releases = () if self._release is None else (self._release,)
        previous = GENESIS if self._release is None else self._release.digest
        if opening.previous != previous or (opening.epoch is None and not releases):
            raise Refused("this opening does not follow from the releases so far")
        if opening.epoch is not None:
            self._pin.take(opening.epoch, releases)

    # -- records: commit, then apply

    def _begin(self) -> None:
        key = self._privatizer.new_key()
        self._ledger.append(self._plan, key)
        self._apply(key)

    def _commit(self, record: Record) -> None:
        with self._ledger.committed(record):
            self._apply(record)

    def _apply(self, record: Record) -> None:
        match record:
            case Entered():
                self._open_epoch()
                self._privatizer.ask(record.asked)
                self._numbers[record.id] = len(self._rounds)
                self._rounds.append(Round(record.seal, record.chosen))
            case Told():
                self._open_epoch()
                self._privatizer.tell(record)
                self._end(record.number, "counted")
            case Abandoned():
                self._privatizer.abandon(record)
                self._end(record.number, "declined")
            case Release():
                self._keep(record)
            case Opening():
                self._check_follows(record)
                self._opening = record
                if record.epoch is not None:
                    self._release = None
                    self._privatizer.open(record.epoch)
            case UserKey():
                self._privatizer.identify(record)
            case Plan():
                raise JournalDamaged("a plan in the middle of a study")

    def _end(self, number: int, outcome: Outcome) -> None:
        self._rounds[number] = replace(self._rounds[number], outcome=outcome)

    def _keep(self, release: Release) -> None:
        epoch = None if self._opening is None else self._opening.epoch
        if epoch is None or self._release is not None or release.epoch != epoch.digest:
            raise InvalidArgument("release", "one of the open epoch")
        self._release = release
