"""SIGKILL at any moment: no acknowledged ask or tell is lost, and none is counted twice.

Nor does an epoch ever have two releases: noise is drawn, committed, and only then shown.

One journal lives through all kills; each child resumes it. `DISCREET_KILLS=200` for more.
"""

import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest
from tests.support.crash_writer import PLAN, PRIVATE_PLAN, reward
from tests.support.journals import decoded
from tests.support.places import TESTS

from discreet import Bandit
from discreet.agreement.release import Release
from discreet.errors import JournalFailed, TrialClosed
from discreet.learning.epoch import Epoch
from discreet.storage import canonical
from discreet.storage.journal import SQLiteJournal
from discreet.trusted import mechanism

KILLS = int(os.environ.get("DISCREET_KILLS", "20"))
WRITER = TESTS / "support" / "crash_writer.py"


def killed_after(acknowledgements, journal, *mode):
    """Run a writer, kill it when it has acknowledged so much, and return all it said."""
    reading, writing = os.pipe()
    command = [sys.executable, "-W", "error", str(WRITER), str(journal), str(writing), *mode]
    child = subprocess.Popen(command, pass_fds=[writing])
    os.close(writing)
    said = []
    with os.fdopen(reading) as lines:
        for line in lines:
            said.append(line)
            if len(said) == 1 + acknowledgements:
                child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert said[0] == "s\n"
    assert all(line.endswith("\n") for line in said)
    return [line.split() for line in said[1:]]


class Ledger:
    """What was acknowledged, and what the journal shows beyond it."""

    def __init__(self):
        self.steps = []

    @property
    def asked(self):
        return sum(kind == "a" for kind, _ in self.steps)

    @property
    def open(self):
        """Rounds that wait, oldest first, by the rule of twenty further asks."""
        closed = {number for kind, number in self.steps if kind != "a"}
        return tuple(
            n for n in range(max(0, self.asked - PLAN.expire_after), self.asked) if n not in closed
        )

    def settle(self, bandit):
        """Find the one step, if any, that was committed but not acknowledged."""
        if (bandit.asked, bandit.open_trials) == (self.asked, self.open):
            return False
        if bandit.asked == self.asked + 1:
            self.steps.append(("a", self.asked))
        else:
            (number,) = set(self.open) - set(bandit.open_trials)
            self.steps.append(("x" if number % 9 == 4 else "t", number))
        assert (bandit.asked, bandit.open_trials) == (self.asked, self.open)
        return True


def replayed(steps):
    """A bandit that was never killed and had no journal."""
    bandit = Bandit(PLAN)
    for kind, number in steps:
        if kind == "a":
            assert bandit.ask().number == number
        elif kind == "t":
            bandit.tell(number, reward(number))
        else:
            bandit.abandon(number)
    bandit.finish()
    return bandit


def sums(study, steps):
    """The integers of every release, from public epochs and told rewards alone."""
    menus = {
        epoch.first + index: epoch.policy.menu[index % len(epoch.policy.menu)]
        for epoch in study.epochs
        for index in range(epoch.length)
    }
    totals = [np.zeros_like(release.integers) for release in study.releases]
    open_epoch = 0
    for kind, number in steps:
        if kind == "a" and number == study.epochs[open_epoch].end:
            open_epoch += 1
        if kind == "t":
            centred = np.array([2 * reward(number) - 1])
            encoding = study.epochs[open_epoch].encoding
            totals[open_epoch] += encoding.encode(PLAN.map, menus[number][None, :], centred)[0]
    return totals


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_study_loses_nothing_acknowledged_and_counts_nothing_twice(tmp_path):
    journal = tmp_path / "study.db"
    rng = random.Random(20)
    ledger, unacknowledged, idle = Ledger(), 0, 0
    for kill in range(KILLS):
        # Every fifth kill comes while the child starts: before or in the middle of its replay.
        said = killed_after(0 if kill % 5 == 4 else rng.randint(1, 60), journal)
        idle += not said
        ledger.steps += [(kind, int(number)) for kind, number in said]
        with Bandit(PLAN, journal) as bandit:
            unacknowledged += ledger.settle(bandit)
            before = canonical.digest(bandit.study), bandit.asked, bandit.open_trials
            for kind, number in ledger.steps[-40:]:
                if kind != "a":
                    with pytest.raises(TrialClosed):
                        bandit.tell(number, 0.5)
            assert (canonical.digest(bandit.study), bandit.asked, bandit.open_trials) == before
    told = [number for kind, number in ledger.steps if kind == "t"]
    assert len(set(told)) == len(told) > 3 * KILLS
    with Bandit(PLAN, journal) as bandit:
        bandit.finish()
        study = bandit.study
    expected = sums(study, ledger.steps)
    assert len(expected) == len(study.epochs) > 3
    for release, total in zip(study.releases, expected, strict=True):
        assert (release.integers == total).all()
    assert canonical.digest(study) == canonical.digest(replayed(ledger.steps).study)
    print(
        f"{KILLS} kills ({idle} before the first answer), {ledger.asked} asks, {len(told)} tells, "
        f"{unacknowledged} committed but not acknowledged, {len(study.epochs)} epochs"
    )


# -- around the moment of release


def releases_in(journal):
    """The digest of each epoch's release by the epoch's own; never two of one epoch."""
    epochs, releases = [], {}
    with SQLiteJournal(journal) as kept:
        for data in kept.records():
            record = decoded(Bandit, data)
            if isinstance(record, Epoch):
                epochs.append(record)
            elif isinstance(record, Release):
                assert record.private is True
                assert record.epoch not in releases
                releases[record.epoch] = record.digest
    assert [epoch.number for epoch in epochs] == list(range(len(epochs)))
    assert [epoch.digest for epoch in epochs[:-1]] == list(releases)  # the open epoch has none
    return releases


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_release_that_was_shown_is_the_only_one_its_epoch_ever_has(tmp_path):
    """Killed when a release was drawn, committed or shown. A draw that was not committed is lost,
    and nobody has seen it: only then may there be another one.

    A new journal every twenty kills: replaying a long one is slow, and shows nothing more.
    """
    rng = random.Random(21)
    drawn, shown, unseen, lost = 0, 0, 0, 0
    for kill in range(KILLS):
        if kill % 20 == 0:
            journal, before = tmp_path / f"{kill}.db", {}
        said = killed_after(0 if kill % 10 == 9 else rng.randint(1, 60), journal, "private")
        told = {kind: {e: d for k, e, d in said if k == kind} for kind in "dcr"}
        assert {(e, d) for _, e, d in said} == {pair for of in told.values() for pair in of.items()}
        kept = releases_in(journal)
        assert (told["r"] | told["c"]).items() <= kept.items()  # what was shown is what is kept
        assert before.items() <= kept.items()  # and what was kept stays
        committed = kept.items() & told["d"].items()
        assert len(told["d"]) - len(committed) in (0, 1)  # the last draw only
        drawn, shown = drawn + len(told["d"]), shown + len(told["r"])
        lost += len(told["d"]) - len(committed)
        unseen += len(kept.keys() - told["r"].keys() - before.keys())
        with Bandit(PRIVATE_PLAN, journal) as bandit:
            releases = bandit.study.releases
            assert {release.epoch: release.digest for release in releases} == kept
        before = kept
    # Enough of both to mean something; who resumes shows the last release once more.
    assert min(drawn, shown) > 2 * KILLS
    print(
        f"{KILLS} kills: {drawn} releases drawn, {shown} shown, {unseen} committed but not shown, "
        f"{lost} drawn but not committed"
    )


class FailingJournal:
    """Records in a list; fails when it is told to, after or before it has kept them."""

    def __init__(self):
        self.kept, self.failing = [], False

    def append(self, *records):
        if self.failing:
            raise JournalFailed("disk full")
        self.kept.extend(records)

    def records(self):
        return iter(tuple(self.kept))

    def close(self):
        pass


@pytest.mark.parametrize("name", ["ask", "finish"])
def test_a_release_that_could_not_be_committed_is_not_drawn_again_and_not_shown(name, monkeypatch):
    journal, draws = FailingJournal(), []
    bandit = Bandit(PRIVATE_PLAN, journal)
    for number in range(2):
        bandit.tell(bandit.ask(user=f"user {number}"), 0.5)
    arguments = {"user": "user 2"} if name == "ask" else {}
    real = mechanism.release
    monkeypatch.setattr(mechanism, "release", lambda *a, **k: draws.append(1) or real(*a, **k))
    before, records = canonical.encode(bandit.study), list(journal.kept)
    journal.failing = True
    for _ in range(3):
        with pytest.raises(JournalFailed, match="disk full"):
            getattr(bandit, name)(**arguments)
        assert canonical.encode(bandit.study) == before
        assert bandit.asked == 2
    drawn = bandit._sides._custody._privatizer.release()
    assert bandit._sides._custody._privatizer.release() is drawn
    assert journal.kept == records
    journal.failing = False
    getattr(bandit, name)(**arguments)
    assert bandit.study.releases == (drawn,)
    assert draws == [1]
    resumed = Bandit(PRIVATE_PLAN, journal)
    assert resumed.study.releases[0].digest == drawn.digest
    assert draws == [1]


def test_reading_exporting_and_resuming_never_draw(monkeypatch, tmp_path):
    journal = FailingJournal()
    bandit = Bandit(PRIVATE_PLAN, journal)
    for number in range(6):
        bandit.tell(bandit.ask(user=f"user {number}"), 0.5)

    def draw(*arguments, **words):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(mechanism, "release", draw)
    bandit.export(tmp_path / "study.json")
    bandit.best()
    resumed = Bandit(PRIVATE_PLAN, journal)
    resumed.export(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "study.json").read_bytes()
    with pytest.raises(AssertionError, match="noise was drawn"):
        resumed.finish()
