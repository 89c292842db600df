"""The server of the joint model takes each epoch's release once, and opens what follows."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support.journals import ListJournal

from discreet import Box, JointDP, Plan, Publisher, Schedule, SquaredExponential, Study
from discreet.agreement.release import GENESIS, Release
from discreet.errors import InvalidArgument, JournalDamaged, JournalFailed, StudyEnded
from discreet.protocol.messages import write
from discreet.storage import canonical

PLAN = Plan(
    domain=Box({"dose": (0, 10)}),
    privacy=JointDP(2.0, 1e-3),
    kernel=SquaredExponential(0.4),
    schedule=Schedule(first=3, growth=2.0),
    horizon=9,
)


def release_of(publisher, **parts):
    epoch = publisher.opening.epoch
    defaults = {
        "epoch": epoch.digest,
        "previous": epoch.previous,
        "asks": epoch.length,
        "integers": np.arange(epoch.encoding.size(PLAN.map)) * 1_000_000,
        "private": True,
    }
    return Release(**(defaults | parts))


def test_each_release_opens_the_next_epoch_of_the_study_until_the_horizon():
    publisher, study = Publisher(PLAN), Study(PLAN)
    assert publisher.opening.previous == GENESIS
    while publisher.opening.epoch is not None:
        anew = study.next_epoch()
        assert canonical.encode(publisher.opening.epoch) == canonical.encode(anew)
        release = release_of(publisher)
        opening = publisher.publish(release)
        assert opening.previous == release.digest
        study = study.opened(anew).released(release)
    assert canonical.encode(publisher.study) == canonical.encode(study)
    assert sum(release.asks for release in study.releases) == 9


def test_a_release_that_comes_again_gets_the_same_reply_and_counts_once():
    journal = ListJournal()
    publisher = Publisher(PLAN, journal)
    release = release_of(publisher)
    replies = {write(publisher.publish(release)) for _ in range(50)}
    replies |= {write(Publisher(PLAN, journal).publish(release))}
    assert len(replies) == 1
    assert (len(publisher.study.releases), len(journal.kept)) == (1, 5)


def test_a_release_that_does_not_fit_is_refused_and_changes_nothing():
    journal = ListJournal()
    publisher = Publisher(PLAN, journal)
    first = release_of(publisher)
    publisher.publish(first)
    honest, kept = release_of(publisher), list(journal.kept)
    size = honest.integers.size
    bad = [
        replace(honest, epoch="ab" * 32),
        replace(honest, previous="cd" * 32),
        replace(honest, previous=GENESIS),
        replace(honest, asks=honest.asks + 1),
        replace(honest, reports=1),
        *(replace(honest, integers=np.zeros(n, np.int64)) for n in (0, 1, size - 1, size + 1)),
        replace(first, integers=first.integers + 1),  # another draw of an epoch that is over
    ]
    for release in bad:
        with pytest.raises(InvalidArgument, match="release"):
            publisher.publish(release)
    assert journal.kept == kept
    assert publisher.publish(honest).epoch.number == 2


def test_a_release_of_fewer_asks_ends_the_study():
    publisher = Publisher(PLAN)
    release = release_of(publisher, asks=2)
    for _ in range(2):
        assert publisher.publish(release).epoch is None
    assert not publisher.study.is_running
    with pytest.raises(StudyEnded):
        publisher.publish(replace(release, integers=release.integers + 1))


def test_a_release_that_could_not_be_kept_opens_nothing():
    journal = ListJournal()
    publisher = Publisher(PLAN, journal)
    release, before = release_of(publisher), write(publisher.opening)
    journal.failing = True
    with pytest.raises(JournalFailed):
        publisher.publish(release)
    assert write(publisher.opening) == before
    journal.failing = False
    assert publisher.publish(release).epoch.number == 1


def test_the_wildest_release_is_no_more_than_a_bad_study():
    for value in (2**63 - 1, -(2**63)):
        publisher = Publisher(PLAN)
        size = publisher.opening.epoch.encoding.size(PLAN.map)
        opening = publisher.publish(release_of(publisher, integers=np.full(size, value)))
        assert opening.epoch.number == 1


@pytest.mark.parametrize("cut", [2, 3])
def test_a_damaged_journal_is_not_used(cut):
    journal = ListJournal()
    publisher = Publisher(PLAN, journal)
    publisher.publish(release_of(publisher))
    del journal.kept[cut]  # the first epoch, or its release
    with pytest.raises(JournalDamaged, match="does not fit the ones before it"):
        Publisher(PLAN, journal)
