"""An interrupt before any bytecode: nothing is counted twice, lost or drawn twice.

A role is struck in the middle of an act. The same role is asked again at once, then one that is
resumed from the journal. A sample of the bytecodes; `make campaigns` strikes at every one, before
its first turn and before its last.
"""

from functools import partial

import pytest
from tests.support.acts import (
    ACTS,
    IDS,
    ROLES,
    asked,
    client,
    custodian,
    joint,
    openings,
    server,
)
from tests.support.crash_writer import PRIVATE_PLAN
from tests.support.interrupts import is_struck, moments
from tests.support.journals import ListJournal
from tests.support.stages import Stage

from discreet.errors import BetweenEpochs, JournalFailed, Refused
from discreet.protocol.messages import Answer, Request
from discreet.protocol.verifier import Verifier
from discreet.storage import snapshot
from discreet.trusted.privatizer import Privatizer

#: Strikes at one act, spread over its bytecodes.
SAMPLE = 12

#: An interrupt between opening a file and holding on to it leaves the file to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <_io:pytest.PytestUnraisableExceptionWarning"
    ),
]


def some(found, sample):
    return found if sample is None else found[:: -(-len(found) // sample)]


def check_act(act, folder, sample):
    stage = Stage(act, folder)
    found = stage.watch(lambda do, role: moments(do))
    chosen = some(found, sample)
    struck = sum(stage.disturb(lambda do, role, at=at: is_struck(do, at)) for at in chosen)
    assert struck > 0.9 * len(chosen)  # noise may take another path, of fewer bytecodes
    print(f"{act}: {struck} interrupts, {len(found)} moments")


@pytest.mark.parametrize("act", ACTS, ids=str)
def test_an_interrupted_act_is_done_once_or_not_at_all(act, tmp_path):
    check_act(act, tmp_path, SAMPLE)


@pytest.mark.campaign
@pytest.mark.parametrize("act", ACTS, ids=str)
def test_no_bytecode_of_an_act_is_a_wrong_moment(act, tmp_path):
    check_act(act, tmp_path, None)


def check_beginning(begin, folder, sample):
    """Strike while a role is made, with a new journal and with one that it resumes."""

    def is_struck_in(path, at):
        return is_struck(lambda: begin(path).close(), at)

    begin(folder / "warm.db").close()
    found = moments(lambda: begin(folder / "counted.db").close())
    for at in some(found, sample):
        path = folder / f"{at}.db"
        assert is_struck_in(path, at)
        assert not path.exists() or path.stat().st_size
        begin(path).close()
        kept = snapshot.records(path)
        assert is_struck_in(path, at // 2)
        begin(path).close()
        assert snapshot.records(path) == kept
        path.unlink()
    print(f"{begin.__name__}: {len(some(found, sample))} interrupts, {len(found)} moments")


@pytest.mark.parametrize("begin", ROLES, ids=lambda begin: begin.__name__)
def test_an_interrupted_beginning_leaves_a_journal_that_opens_or_none(begin, tmp_path):
    check_beginning(begin, tmp_path, SAMPLE)


@pytest.mark.campaign
@pytest.mark.parametrize("begin", ROLES, ids=lambda begin: begin.__name__)
def test_no_bytecode_of_a_beginning_is_a_wrong_moment(begin, tmp_path):
    check_beginning(begin, tmp_path, None)


class TimeIsUp(Exception):
    """What a timer's handler raises: an ordinary exception, at any moment."""


class LateJournal(ListJournal):
    """Is interrupted when the records are kept already."""

    late = False

    def append(self, *records):
        super().append(*records)
        if self.late:
            raise TimeIsUp


def test_an_exception_that_comes_after_the_records_were_kept_does_not_write_them_twice():
    journal = LateJournal()
    bandit = joint(journal)
    number = bandit.ask(user="user 0").number
    journal.late = True
    with pytest.raises(TimeIsUp):
        bandit.tell(number, 0.7)
    journal.late = False
    with pytest.raises(Refused, match="open its journal again"):
        bandit.tell(number, 0.7)
    assert joint(journal).open_trials == ()


def test_an_answer_after_an_interrupted_draw_is_refused_or_counted(monkeypatch):
    """Drawn, and interrupted before anyone knew: what came now would be in no release."""
    role = custodian(None)
    asked(role)
    draw = Privatizer.release

    def late(privatizer):
        draw(privatizer)
        raise TimeIsUp

    monkeypatch.setattr(Privatizer, "release", late)
    with pytest.raises(TimeIsUp):
        role.finish()
    with pytest.raises(BetweenEpochs):
        role.receive(Answer(IDS[0], 0.7))


def test_an_offer_that_was_not_kept_leaves_a_client_that_can_go_on():
    """What a client has verified is what its journal holds."""
    beside, journal = server(None), ListJournal()
    for number in range(3):
        beside.offer(Request(IDS[number], 0))
    device = client(journal)
    offer = beside.offer(device.request())
    journal.failing = True
    with pytest.raises(JournalFailed):
        device.choose(offer)
    journal.failing = False
    device.expire()
    assert device.request().known == 0
    resumed = client(journal)
    resumed.choose(beside.offer(resumed.outbox))


def test_a_chain_that_was_half_seen_is_seen_again():
    """A bandit's clients share a verifier: it outlives a client that was interrupted."""
    first, release, second = openings()

    def halfway():
        verifier = Verifier(PRIVATE_PLAN)
        verifier.take(first.epoch, ())
        return partial(verifier.take, second.epoch, (release,))

    halfway()()  # with warm caches from here on
    for at in moments(halfway())[-60:]:
        take = halfway()
        assert is_struck(take, at)
        take()
        assert take.func.__self__.known == 1
