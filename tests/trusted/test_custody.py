"""What a custodian decides: it draws once, and refuses an epoch before it is kept."""

from dataclasses import replace

import pytest
from tests.support.journals import ListJournal

from discreet import Bandit, Box, Custodian, JointDP, NonPrivate, Plan, Publisher, Schedule, Server
from discreet.errors import (
    BetweenEpochs,
    InvalidArgument,
    JournalFailed,
    Refused,
    StudyEnded,
)
from discreet.learning.study import Study
from discreet.privacy.clipping import Residual
from discreet.protocol.messages import Ask, Opening
from discreet.trusted import mechanism
from discreet.trusted.custody import Custody
from discreet.trusted.entries import Person

PLAN = Plan(
    domain=Box({"dose": (0, 10)}),
    privacy=JointDP(4.0, 1e-3),
    schedule=Schedule(first=3, growth=2.0),
    horizon=12,
)


def opened(plan=PLAN):
    custody = Custody(plan)
    custody.apply(custody.participants.new_key())
    epoch = Study(plan).next_epoch()
    custody.apply(Opening(epoch.previous, epoch))
    return custody


def test_a_release_that_is_kept_is_never_drawn_again():
    custody = opened()
    release = custody.draw()
    assert custody.draw() is release
    custody.apply(release)
    assert custody.draw() is release
    resumed = opened()
    resumed.apply(release)  # as a journal would
    assert resumed.draw() is release


def test_before_the_first_epoch_there_is_nothing_to_draw():
    with pytest.raises(BetweenEpochs, match="no epoch is open yet"):
        Custody(PLAN).draw()


def test_a_draw_that_fails_leaves_the_epoch_as_it_was(monkeypatch):
    custody = opened()

    def fail(*arguments, **words):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(mechanism, "release", fail)
        with pytest.raises(MemoryError):
            custody.draw()
    assert custody.life.state == "open"
    custody.apply(custody.enter([Person("ann")])[0].record)
    assert custody.draw().asks == 1


def test_a_bandit_checks_an_epoch_before_it_is_kept(monkeypatch):
    journal = ListJournal()
    bandit = Bandit(PLAN, journal)
    for number in range(3):
        bandit.tell(bandit.ask(user=f"person {number}"), 0.5)
    real, kept = Study.next_epoch, list(journal.kept)

    def weaker(study):
        epoch = real(study)
        noise = replace(epoch.encoding.noise, cross=epoch.encoding.noise.cross / 2)
        return replace(epoch, encoding=replace(epoch.encoding, noise=noise))

    with monkeypatch.context() as patch:
        patch.setattr(Study, "next_epoch", weaker)
        with pytest.raises(Refused, match="weaker than the plan promises"):
            bandit.ask(user="someone")
    assert journal.kept == kept
    bandit.ask(user="someone")
    with monkeypatch.context() as patch:
        patch.setattr(Study, "next_epoch", weaker)
        fresh = ListJournal()
        with pytest.raises(Refused, match="weaker than the plan promises"):
            Bandit(PLAN, fresh)
    assert fresh.kept == []


def test_without_privacy_an_epoch_still_has_to_fit():
    plan = replace(PLAN, privacy=NonPrivate(), looks=None, schedule=None, encoding="auto")
    custodian, publisher = Custodian(plan), Publisher(plan)
    epoch = publisher.opening.epoch
    encodings = (
        replace(epoch.encoding, bits=62),
        replace(epoch.encoding, residual=Residual(epoch.encoding.residual.prediction[1:], 1.0)),
        replace(epoch.encoding, residual=replace(epoch.encoding.residual, width=2.0)),
    )
    for encoding in encodings:
        with pytest.raises(Refused):
            custodian.open(Opening(epoch.previous, replace(epoch, encoding=encoding)))
    custodian.open(publisher.opening)
    assert custodian.choose(Ask("ab" * 16)).action


def test_at_the_horizon_an_ask_ends_nothing():
    journal = ListJournal()
    bandit = Bandit(PLAN, journal)
    for number in range(12):
        bandit.tell(bandit.ask(user=f"person {number}"), 0.5)
    journal.failing = True
    with pytest.raises(JournalFailed):
        bandit.finish()
    journal.failing = False
    kept = list(journal.kept)
    with pytest.raises(StudyEnded, match="horizon is reached"):
        bandit.ask(user="someone")
    assert journal.kept == kept
    bandit.finish()
    assert not bandit.study.is_running


def test_a_role_that_refuses_its_plan_leaves_no_file(tmp_path):
    with pytest.raises(InvalidArgument, match="LocalDP"):
        Server(PLAN, tmp_path / "server.db")
    assert list(tmp_path.iterdir()) == []
