"""The server of mixed batches: it counts each once, and keeps no index and no name."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.support.journals import ListJournal, decoded
from tests.support.mixed_plans import SECRET, Crowd, mixed_plan

from discreet import ShuffleServer
from discreet.agreement.release import Release
from discreet.errors import InvalidArgument, Refused
from discreet.learning.epoch import Epoch
from discreet.protocol.messages import write
from discreet.protocol.sealing import seal, unseal

PLAN = mixed_plan()


def filled(**parts):
    people = Crowd(PLAN, **parts)
    people.come(12)
    return people, people.shuffler.batch()


def test_a_release_is_the_sum_of_the_indices_of_a_batch():
    people, batch = filled()
    epoch = people.server.turn.epoch
    release = people.server.take(batch).release
    rows = [row for row, group in enumerate(batch.groups) for _ in group]
    indices = [unseal(box, epoch.digest, SECRET) for group in batch.groups for box in group]
    expected = epoch.encoding.statistics(np.array(indices), np.array(rows))
    assert np.array_equal(release.integers, expected)
    assert (release.reports, release.asks, release.private) == (12, 12, True)


def test_a_batch_that_comes_again_gets_the_same_turn_whatever_it_says_now():
    people, batch = filled()
    turn = people.server.take(batch)
    assert write(people.server.take(batch)) == write(turn)
    assert write(people.server.take(replace(batch, groups=((),) * 4))) == write(turn)
    assert len(people.server.study.releases) == 1


def test_boxes_that_do_not_open_are_left_out_and_not_counted():
    people, batch = filled()
    epoch = people.server.turn.epoch
    size = epoch.encoding.cap.size
    wrong = (seal(size, epoch.digest, people.server.turn.key), "ab" * 84, batch.groups[0][0])
    release = people.server.take(replace(batch, groups=(wrong, *batch.groups[1:]))).release
    assert release.reports == 10
    assert release.integers.reshape(4, 3)[:, 0].tolist() == [1, 3, 3, 3]


def test_batches_that_no_honest_shuffler_hands_up_are_refused():
    people, batch = filled()
    small = ((batch.groups[0][0],), *batch.groups[1:])
    for wrong, words in (
        (replace(batch, epoch="ab" * 32), "another epoch"),
        (replace(batch, groups=small), "smaller"),
        (replace(batch, groups=batch.groups[:3]), "other groups"),
        (replace(batch, simulated=True), "simulated"),
    ):
        with pytest.raises(Refused, match=words):
            people.server.take(wrong)
    with pytest.raises(InvalidArgument, match="each box once"):
        replace(batch, groups=(batch.groups[0], *batch.groups[:3]))
    with pytest.raises(InvalidArgument, match="each ask"):
        replace(batch, asks=11)
    assert not people.server.study.releases


def test_the_journal_of_a_server_holds_plan_epochs_and_releases_alone():
    journal = ListJournal()
    people, batch = filled(journals=(None, journal))
    people.server.take(batch)
    kinds = [type(record).__name__ for record in map(partial(decoded, ShuffleServer), journal.kept)]
    assert set(kinds) <= {"Plan", "Wording", "Serving", "Epoch", "Release"}
    text = b"".join(journal.records())
    assert SECRET.encode() not in text
    for group in batch.groups:
        assert not any(box.encode() in text for box in group)


def test_a_server_resumes_with_its_secret_and_goes_on():
    journal = ListJournal()
    people, batch = filled(journals=(None, journal))
    turn = people.server.take(batch)
    resumed = ShuffleServer(PLAN, SECRET, journal)
    assert write(resumed.turn) == write(turn)
    assert [type(decoded(ShuffleServer, each)) for each in journal.kept[-2:]] == [Release, Epoch]
    people.server = resumed
    people.shuffler.open(turn)
    people.come(12)
    people.turn()
    assert len(resumed.study.releases) == 2
    with pytest.raises(Refused, match="a real study"):
        ShuffleServer(PLAN, SECRET, journal, simulated=True)
