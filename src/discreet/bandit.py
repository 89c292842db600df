"""The roles wired in one process: ask, tell, and everything that is safe to show.

A bandit is its journal: each call commits its records first and changes the state after, by the
same steps that a resumed bandit replays.
"""

import numbers
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from discreet import checks
from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats
from discreet.errors import (
    InvalidArgument,
    JournalDamaged,
    JournalFailed,
    StudyEnded,
    UnknownTrial,
)
from discreet.learning.epoch import Epoch
from discreet.learning.study import Recommendation, Study, Value
from discreet.privacy.budget import Simulation
from discreet.protocol.decisions import decision_set
from discreet.protocol.messages import Report
from discreet.protocol.role import Kept, Ledger
from discreet.protocol.rounds import Abandoned, Asked, Told, UserKey
from discreet.storage.journal import Journal
from discreet.trusted.crowd import Crowd
from discreet.trusted.privatizer import Privatizer

Record = Plan | UserKey | Epoch | Release | Asked | Told | Report | Abandoned


@dataclass(frozen=True)
class Trial:
    """An action to try: tell its reward, or abandon it.

    `chosen` is the position among the candidates, where candidates were given.
    """

    number: int
    action: dict[str, Value]
    chosen: int | None = None


class Bandit(Kept):
    """Ask for an action, tell its reward; learn epoch by epoch.

    `journal` is the path of an SQLite file. A bandit given the journal of a running study
    resumes it exactly; while it is open, a second writer is refused. With a `simulation` noise
    comes from its seed and nothing the bandit makes is private. Threads may share a bandit.

    With a `LocalDP` plan each ask has a client of its own, which randomises the answer when it is
    told; what comes after its epoch has closed is refused. Actions are in the journal, rewards
    are not.

    >>> import discreet
    >>> plan = discreet.Plan(
    ...     domain=discreet.Box({"dose": (0, 10)}), privacy=discreet.NonPrivate(), horizon=40
    ... )
    >>> bandit = discreet.Bandit(plan)
    >>> for _ in range(40):
    ...     trial = bandit.ask()
    ...     bandit.tell(trial, 1 - (trial.action["dose"] - 7) ** 2 / 49)
    >>> bandit.finish()
    >>> round(bandit.best().action["dose"])
    7
    """

    def __init__(
        self,
        plan: Plan,
        journal: str | os.PathLike[str] | Journal | None = None,
        *,
        simulation: Simulation | None = None,
    ) -> None:
        if simulation is not None and not isinstance(simulation, Simulation):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("simulation", "Simulation(seed), or nothing")
        self._study = Study(plan, simulated=True if simulation else None)
        self._simulated = simulation is not None
        self._lock = threading.RLock()
        self._privatizer = (Crowd if plan.is_local else Privatizer)(plan, simulation)
        self._ledger = Ledger(plan, journal, Record)
        self._ledger.resume(self._apply, self._begin)

    # -- the loop

    def ask(
        self,
        candidates: object = None,
        *,
        context: Mapping[str, object] | None = None,
        user: str | None = None,
    ) -> Trial:
        """The next action: over the whole box, under a context, or out of candidates.

        Candidates are a sequence of mappings from coordinate names to values, or an array with
        a column for each coordinate. An action depends on the plan, the releases so far, the
        index of the ask and what this user brings; never on another user's open round. Under
        privacy, `user` tells people apart; the id is kept as a keyed hash alone.
        """
        options = decision_set(self.plan, candidates, context)
        with self._lock:
            pseudonym = self._privatizer.admit(user)
            if self._privatizer.session.asked == self._study.open_epoch.end:
                self._choose(0, options)  # no action for this context: refused before a release
                self._turn_over()
            self._check_undrawn()
            number = self._privatizer.session.asked
            point, chosen = self._choose(number - self._study.open_epoch.first, options)
            self._commit(Asked(number, point, pseudonym))
        return Trial(number, self.plan.domain.decode(point), chosen)

    def tell(self, trial: Trial | int, reward: float) -> None:
        """Count a reward, once; it is clipped to the plan's range."""
        with self._lock:
            asked = self._open_round(trial)
            value = checks.number("reward", reward, echo=False)
            self._study.check_running()  # a finished study takes no more rewards
            self._check_undrawn()
            self._commit(self._privatizer.answer(asked.number, value))

    def abandon(self, trial: Trial | int) -> None:
        """Close a trial that will not be answered; it contributes nothing.

        It was a round all the same: it counts towards `rounds_per_user`.
        """
        with self._lock:
            self._study.check_running()
            self._commit(Abandoned(self._open_round(trial).number))

    def finish(self) -> None:
        """Release the open epoch and end the study; trials still open are not counted any more.

        A study that is finished already stays as it is.
        """
        with self._lock:
            self._ledger.check_whole()
            if not self._study.is_running:
                return
            release = self._privatizer.release()
            study = self._study.released(release)
            with self._ledger.committed(release):
                self._study = study

    # -- for whoever runs the study

    @property
    def open_trials(self) -> tuple[int, ...]:
        """The numbers of the trials that wait for a reward: not public."""
        return self._privatizer.session.open_rounds

    # -- what is public

    @property
    def plan(self) -> Plan:
        """The public agreement."""
        return self._study.plan

    @property
    def study(self) -> Study:
        """The public record so far: plan, epochs, releases."""
        return self._study

    @property
    def guarantee(self) -> str:
        """The sentence for the review board."""
        return self._study.guarantee

    @property
    def asked(self) -> int:
        """The number of asks so far."""
        return self._privatizer.session.asked

    def best(self, *, context: Mapping[str, object] | None = None) -> Recommendation:
        """The action with the highest posterior mean; from the releases alone."""
        return self._study.best(context)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the public record; it holds no sample path and is as private as the plan."""
        self._study.save(path)

    # -- rounds

    def _choose(self, index: int, options: Floats | None) -> tuple[Floats, int | None]:
        return self._privatizer.choose(self._study.open_epoch.first + index, options)

    def _open_round(self, trial: Trial | int) -> Asked:
        number: object = trial.number if isinstance(trial, Trial) else trial
        if isinstance(number, bool) or not isinstance(number, numbers.Integral):
            raise InvalidArgument("trial", "a Trial, or its number")
        asked = self._privatizer.session.find(int(number))
        if isinstance(trial, Trial) and trial.action != self.plan.domain.decode(asked.point):
            raise UnknownTrial(f"trial {number} of this study is another one: wrong study?")
        return asked

    # -- records: commit, then apply

    def _check_undrawn(self) -> None:
        """An answer counted after the draw would be in no release: nothing may come in between."""
        if self._privatizer.drawn:
            raise JournalFailed(
                "this epoch's release is drawn, but could not be stored yet: "
                "ask for the next epoch's first action, or call finish(), again"
            )

    def _turn_over(self) -> None:
        self._ledger.check_whole()
        if self.asked == self.plan.last:
            raise StudyEnded("the horizon is reached: tell what is open, then call finish()")
        release = self._privatizer.release()
        study = self._study.released(release)
        epoch = study.next_epoch()
        with self._ledger.committed(release, epoch):
            self._study = study.opened(epoch)
            self._privatizer.open(epoch)

    def _commit(self, record: Record) -> None:
        with self._ledger.committed(record):
            self._apply(record)

    def _apply(self, record: Record) -> None:
        if isinstance(record, Asked | Told | Report):
            self._study.check_running()  # a round needs one
        match record:
            case Asked():
                self._privatizer.ask(record)
            case Told() | Report():
                self._privatizer.tell(record)
            case Abandoned():
                self._privatizer.abandon(record)
            case Release():
                self._study = self._study.released(record)
            case Epoch():
                self._study = self._study.opened(record)
                self._privatizer.open(record)
            case UserKey():
                self._privatizer.identify(record)
            case Plan():
                raise JournalDamaged("a plan in the middle of a study")

    def _begin(self) -> None:
        key, epoch = self._privatizer.new_key(), self._study.next_epoch()
        self._ledger.append(self.plan, key, epoch)
        self._apply(key)
        self._apply(epoch)
