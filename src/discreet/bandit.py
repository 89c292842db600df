"""The roles wired in one process: ask, tell, and everything that is safe to show.

A bandit is its journal: each call commits its records first and changes the state after, by the
same steps that a resumed bandit replays.
"""

import numbers
import os
from collections.abc import Mapping, Sequence

import numpy as np

from discreet import checks, frames
from discreet.agreement.plan import Plan
from discreet.errors import BetweenEpochs, InvalidArgument, UnknownTrial
from discreet.learning.study import Recommendation, Study
from discreet.privacy.budget import Simulation
from discreet.protocol.decisions import brought, check_ask
from discreet.protocol.records import Abandoned, Asked
from discreet.protocol.role import JournalPlace, Role
from discreet.trials import Trial, Trials, people_of
from discreet.trusted.entries import Entry, Person
from discreet.trusted.in_process import Joint, Local, Record


class Bandit(Role):
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

    RECORDS = Record

    def __init__(
        self,
        plan: Plan,
        journal: JournalPlace = None,
        *,
        simulation: Simulation | None = None,
    ) -> None:
        if simulation is not None and not isinstance(simulation, Simulation):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("simulation", "Simulation(seed), or nothing")
        super().__init__(plan, journal)
        self._sides = (Local if self.plan.is_local else Joint)(self.plan, simulation)
        self._start()

    # -- the loop

    @Role.guarded
    def ask(
        self,
        candidates: object = None,
        *,
        context: Mapping[str, object] | None = None,
        user: str | int | None = None,
    ) -> Trial:
        """The next action: over the whole box, under a context, or out of candidates.

        Candidates are a sequence of mappings from coordinate names to values, or an array with
        a column for each coordinate. An action depends on the plan, the releases so far, the
        index of the ask and what this user brings; never on another user's open round. Under
        privacy, `user` tells people apart: text or a whole number, where 17 and "17" are one
        person. The id is kept as a keyed hash alone.

        What leads to no action (a context outside the box, malformed candidates, none that the
        domain admits) is refused, but takes its index first: it was a round, and nobody else's
        action tells that it failed. `check` says beforehand whether it would.
        """
        trials = self._enter([Person(user, brought(self.plan, candidates, context))])
        for refusal in trials.refusals.values():
            raise refusal
        return trials[0]

    @Role.guarded
    def ask_many(
        self,
        n: int | None = None,
        *,
        candidates: object = None,
        contexts: object = None,
        users: object = None,
    ) -> Trials:
        """The next actions of many people, in one write: what as many single asks would give.

        Over the whole box, `n` of them. `contexts` are a table with a row for each person: a
        mapping of names to columns, a list of mappings, or an array. `candidates` are a sequence
        with a set for each person. `users` are their ids.

        A batch may cross the end of an epoch, which turns over as it would for single asks
        (`asks_left` says how many there are before that). A row that is refused is told in
        `refusals`; the others go through.
        """
        people = people_of(self.plan, n, candidates, contexts, users)
        return self._enter(people)

    @Role.guarded
    def tell_many(self, trials: Trials | Sequence[Trial | int], rewards: object) -> None:
        """Count many rewards in one write; all of them, or none where one is refused."""
        self.study.check_running()
        numbers = self._open_numbers(trials)
        values = frames.numbers("rewards", rewards, len(numbers))
        answers: list[Record] = [
            self._sides.answer(number, value) for number, value in zip(numbers, values, strict=True)
        ]
        self._commit(*answers)

    @property
    @Role.guarded
    def asks_left(self) -> int:
        """How many asks the open epoch has left; the next one after them turns it over."""
        return self.study.open_epoch.end - self.asked

    def check(
        self, candidates: object = None, *, context: Mapping[str, object] | None = None
    ) -> None:
        """Raise what an ask with this would be refused for; uses no round. Ask what passes."""
        check_ask(self.plan, candidates, context)

    @Role.guarded
    def tell(self, trial: Trial | int, reward: float) -> None:
        """Count a reward, once; it is clipped to the plan's range. True is 1, False is 0."""
        asked = self._open_round(trial)
        value = checks.reward(reward)
        self.study.check_running()  # a finished study takes no more rewards
        self._commit(self._sides.answer(asked.number, value))

    @Role.guarded
    def abandon(self, trial: Trial | int) -> None:
        """Close a trial that will not be answered; it contributes nothing.

        It was a round all the same: it counts towards `rounds_per_user`.
        """
        self.study.check_running()
        self._commit(Abandoned(self._open_round(trial).number))

    @Role.guarded
    def finish(self) -> None:
        """Release the open epoch and end the study; trials still open are not counted any more.

        A study that is finished already stays as it is.
        """
        if self.study.is_running:
            self._commit(self._sides.last())

    # -- for whoever runs the study

    @property
    @Role.guarded
    def open_trials(self) -> tuple[int, ...]:
        """The numbers of the trials that wait for a reward: not public."""
        return self._sides.session.open_rounds

    # -- what is public

    @property
    @Role.guarded
    def study(self) -> Study:
        """The public record so far: plan, epochs, releases. Nobody sees a turn half done."""
        return self._sides.study

    @property
    def guarantee(self) -> str:
        """The sentence for the review board."""
        return self.study.guarantee

    @property
    @Role.guarded
    def asked(self) -> int:
        """The number of asks so far."""
        return self._sides.session.asked

    def best(
        self, candidates: object = None, *, context: Mapping[str, object] | None = None
    ) -> Recommendation:
        """The action with the highest posterior mean; from the releases alone (`Study.best`)."""
        return self.study.best(candidates, context=context)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the public record; it holds no sample path and is as private as the plan."""
        self.study.save(path)

    # -- rounds

    def _enter(self, people: Sequence[Person]) -> Trials:
        """Rounds for these people, each epoch's in one write."""
        entries: list[Entry] = []
        while len(entries) < len(people):
            try:
                newest = self._sides.enter(people[len(entries) :])
            except BetweenEpochs:
                if self.asked < self.study.open_epoch.end:
                    raise  # finish() has drawn its release, and could not keep it
                self._commit(*self._sides.turn())
                continue
            self._commit(*(entry.record for entry in newest if entry.record is not None))
            entries += newest
        return Trials.of(self.plan.domain, entries)

    def _open_numbers(self, trials: Trials | Sequence[Trial | int]) -> list[int]:
        if isinstance(trials, Trials):
            numbers = list(trials.numbers)
            points = np.array([self._sides.session.find(number).point for number in numbers])
            if numbers and self.plan.domain.decode_all(points) != trials.actions:
                raise UnknownTrial("these are trials of another study")
        else:
            numbers = [self._open_round(trial).number for trial in trials]
        if len(set(numbers)) < len(numbers):
            raise InvalidArgument("trials", "each trial once")
        return numbers

    def _open_round(self, trial: Trial | int) -> Asked:
        number: object = trial.number if isinstance(trial, Trial) else trial
        if isinstance(number, bool) or not isinstance(number, numbers.Integral):
            raise InvalidArgument("trial", "a Trial, or its number")
        asked = self._sides.session.find(int(number))
        if isinstance(trial, Trial) and trial.action != self.plan.domain.decode(asked.point):
            raise UnknownTrial(f"trial {number} of this study is another one: wrong study?")
        return asked

    def _first_records(self) -> tuple[Record, ...]:
        return self._sides.first_records()

    def _apply(self, record: Record) -> None:
        self._sides.apply(record)

    def _apply_all(self, records: Sequence[Record]) -> None:
        self._sides.apply_all(records)
