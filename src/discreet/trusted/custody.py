"""What a custodian knows and decides, without messages and without a journal.

A decision returns a record, and nobody else's state changes by it; `apply` changes this one by a
record that is kept. `Custodian` gives it messages and a journal of its own; a bandit keeps its
records beside those of the public side.
"""

from collections.abc import Sequence
from typing import ClassVar

from discreet.agreement.plan import Plan
from discreet.agreement.release import GENESIS, Release
from discreet.errors import BetweenEpochs, InvalidArgument, Refused, StudyEnded
from discreet.learning.epoch import Epoch
from discreet.one_copy import OneCopy
from discreet.privacy.budget import Simulation
from discreet.protocol.epochs import EpochLife
from discreet.protocol.messages import Opening
from discreet.protocol.records import Abandoned, Asked, Passed, Told, UserKey
from discreet.protocol.verifier import Verifier
from discreet.trusted.entries import Entry, Person, entries
from discreet.trusted.participants import Participants
from discreet.trusted.privatizer import Privatizer

Record = UserKey | Opening | Asked | Passed | Told | Abandoned | Release
#: Said when there are no asks left.
HORIZON = "the horizon is reached: tell what is open, then call finish()"


class Custody(OneCopy):
    """Open rounds, who took part, the sums of the open epoch, and its release."""

    PRIVATIZER: ClassVar[type[Privatizer]] = Privatizer

    def __init__(self, plan: Plan, simulation: Simulation | None = None) -> None:
        super().__init__()
        self._plan = plan
        self._privatizer = self.PRIVATIZER(plan, simulation)
        self._verifier = Verifier(plan)
        self.participants = Participants(plan, simulated=simulation is not None)
        self.session = self._privatizer.session
        self.life = EpochLife()
        self.opening: Opening | None = None
        self.release: Release | None = None

    # -- decisions

    def enter(self, people: Sequence[Person]) -> list[Entry]:
        """New rounds, as far as this epoch has asks left.

        What is raised here depends on nothing that a person brings; what a person brings that
        leads to no action makes a round without one.
        """
        number = self.session.asked
        room = self._epoch.end - number
        if room:
            self.life.check("ask")
        found = entries(self._plan, self._epoch, number, self.participants, people, room)
        if not found:  # whoever may not take part ends no epoch
            if number == self._plan.last:
                raise StudyEnded(HORIZON)
            self.life.check("ask")
        return found

    def answer(self, number: int, reward: float) -> Told:
        """What to keep of an answer to an open round."""
        self.session.find(number)
        self.life.check("answer")
        return Told(number, self._plan.clip(reward))

    def draw(self) -> Release:
        """The newest epoch's release: noise is drawn once, however often this is called."""
        if self.release is not None:
            return self.release
        if self.life.state is None:
            raise BetweenEpochs("no epoch is open yet: open the publisher's first one")
        before = self.life.state
        if before != "drawn":
            self.life.advance("draw")
        try:
            return self._privatizer.release()
        except BaseException:
            if not self._privatizer.has_drawn:
                self.life.state = before
            raise

    def check_follows(self, opening: Opening) -> None:
        """Refuse an opening that does not follow from the release that was kept last."""
        if self.life.state == "over":
            raise StudyEnded("the study is finished: it has no open epoch")
        if self.life.state not in (None, "released"):
            raise Refused("another epoch is open, and its release was not handed up yet")
        previous = GENESIS if self.release is None else self.release.digest
        if opening.previous != previous or (opening.epoch is None and self.release is None):
            raise Refused("this opening does not follow from the releases so far")
        if opening.epoch is not None:
            self.check_epoch(opening.epoch, self.release)

    def check_epoch(self, epoch: Epoch, release: Release | None) -> None:
        """Refuse an epoch that is weaker than the plan, or does not follow from this release."""
        self._verifier.check(epoch, () if release is None else (release,))

    @property
    def _epoch(self) -> Epoch:
        epoch = None if self.opening is None else self.opening.epoch
        if epoch is None:
            raise BetweenEpochs("no epoch is open yet: open the publisher's first one")
        return epoch

    # -- records

    def tell(self, answers: Sequence[Told]) -> None:
        """Count answers that are kept, all at once."""
        self.life.check("answer")
        self._privatizer.tell(*answers)

    def apply(self, record: Record) -> None:
        """Change the state by a record that is kept."""
        match record:
            case Asked() | Passed():
                self.life.check("ask")
                self._privatizer.ask(record)
                self.participants.count(record.user)
                if self.session.asked == self._epoch.end:
                    self.life.advance("fill")
            case Told():
                self.tell([record])
            case Abandoned():
                self._privatizer.abandon(record)
            case Release():
                self._keep(record)
            case Opening():
                self._open(record)
            case UserKey():
                self.participants.identify(record)

    def _keep(self, release: Release) -> None:
        if self.life.state not in ("open", "full", "drawn") or release.epoch != self._epoch.digest:
            raise InvalidArgument("release", "one of the open epoch")
        if self.life.state != "drawn":  # it was drawn before this custody was resumed
            self.life.advance("draw")
        self.life.advance("release")
        self.release = release

    def _open(self, opening: Opening) -> None:
        self.check_follows(opening)
        if opening.epoch is None:
            self.life.advance("end")
        else:
            self.participants.check_identified()
            self._verifier.take(opening.epoch, () if self.release is None else (self.release,))
            self._privatizer.open(opening.epoch)
            self.life.advance("open")
            self.release = None
        self.opening = opening
