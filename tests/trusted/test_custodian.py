"""The joint model over messages: what a bandit does in one process, with no one trusted twice."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.support.journals import ListJournal

from discreet import (
    Bandit,
    Box,
    Custodian,
    JointDP,
    LocalDP,
    Plan,
    Publisher,
    Schedule,
    Simulation,
    SquaredExponential,
)
from discreet.agreement.release import GENESIS, Release
from discreet.errors import (
    BetweenEpochs,
    InvalidArgument,
    JournalDamaged,
    JournalFailed,
    JournalForeign,
    Refused,
    StudyEnded,
    TrialClosed,
    UnknownTrial,
)
from discreet.privacy.clipping import Noise, Residual
from discreet.privacy.looks import FOUR_LOOKS
from discreet.protocol.messages import Answer, Ask, Decline, Opening, Receipt, read, write
from discreet.protocol.verifier import check_epoch
from discreet.trusted import mechanism

PRIVACY = {
    "decisions": JointDP(epsilon=2.0, delta=1e-2),
    "rewards": JointDP(epsilon=2.0, delta=1e-2, protect="rewards"),
}
CELLS = [
    ("box", "decisions", "reward"),
    ("box", "decisions", "fourier"),
    ("context", "decisions", "fourier"),
    ("candidates", "decisions", "gram"),
    ("candidates", "rewards", "announced"),
]


@cache
def make_plan(kind="box", protect="decisions", encoding="reward", **parts):
    defaults = {
        "domain": Box({"dose": (0, 10), "age": (18, 90)}, context=["age"] * (kind == "context")),
        "privacy": PRIVACY[protect],
        "kernel": SquaredExponential(0.6),
        "kernel_error": 0.05,
        "decisions": kind,
        "public_decisions": protect == "rewards",
        "encoding": encoding,
        "schedule": Schedule(first=4, growth=2.0),
        "expire_after": 6,
    }
    return Plan(**(defaults | parts))


PLAN = make_plan()


def id_of(number):
    return f"{2**100 + number:032x}"


def brought(kind, number):
    """What person `number` brings to an ask."""
    rng = np.random.Generator(np.random.Philox(number))
    if kind == "context":
        return {"context": {"age": float(rng.uniform(18, 90))}}
    if kind == "candidates":
        rows = rng.uniform((0, 18), (10, 90), (5, 2)).tolist()
        return {"candidates": [{"dose": dose, "age": age} for dose, age in rows]}
    return {}


def reward(number):
    return (number * 0.6180339887498949) % 1.0


def ask_of(number, kind="box"):
    return Ask(id_of(number), f"user {number}", **brought(kind, number))


def sent(message):
    """A message, over the wire."""
    return read(type(message), write(message))


class Wired:
    """Both roles, with every message over the wire; what the server is sent and keeps is kept."""

    def __init__(self, plan, journal=None, simulation=None):
        self.plan, self.seen, self.journal = plan, [], ListJournal()
        self.publisher = Publisher(plan, self.journal)
        self.custodian = Custodian(plan, journal, simulation=simulation)
        self.custodian.open(sent(self.publisher.opening))

    def hand_up(self, release):
        self.seen.append(write(release))
        self.custodian.open(sent(self.publisher.publish(sent(release))))

    def choose(self, ask):
        try:
            return sent(self.custodian.choose(sent(ask)))
        except BetweenEpochs:
            self.hand_up(self.custodian.release())
            return sent(self.custodian.choose(sent(ask)))

    def play(self, numbers, answered=lambda number: True):
        for number in numbers:
            self.choose(ask_of(number, self.plan.decisions))
            if answered(number):
                self.custodian.receive(sent(Answer(id_of(number), reward(number))))

    def finish(self):
        while self.publisher.study.is_running:
            self.hand_up(self.custodian.finish())


# -- the same study


def assert_the_same_study(plan, rounds):
    """Late answers, declined and expired rounds included; every action, epoch and release."""
    kind = plan.decisions
    wired, bandit = Wired(plan, simulation=Simulation(5)), Bandit(plan, simulation=Simulation(5))
    late = {2: 6, 9: 11, 10: rounds + 8}  # told when that many have asked; 10 has expired by then
    late |= {n: n + 4 for n in range(21, rounds, 10)}
    for number in range(rounds):
        trial = bandit.ask(**brought(kind, number), user=f"user {number}")
        action = wired.choose(ask_of(number, kind))
        assert (action.action, action.chosen) == (trial.action, trial.chosen)
        if number % 5 == 3:
            bandit.abandon(trial)
            wired.custodian.decline(Decline(id_of(number)))
        elif number not in late:
            bandit.tell(trial, reward(number))
            wired.custodian.receive(Answer(id_of(number), reward(number)))
        for other in [n for n, when in late.items() if when == number]:
            bandit.tell(other, reward(other))
            wired.custodian.receive(Answer(id_of(other), reward(other)))
    with pytest.raises(TrialClosed, match="trials expire after 6"):
        wired.custodian.receive(Answer(id_of(10), 0.5))
    bandit.finish()
    wired.finish()
    study = wired.publisher.study
    assert [r.digest for r in study.releases] == [r.digest for r in bandit.study.releases]
    assert [e.digest for e in study.epochs] == [e.digest for e in bandit.study.epochs]
    assert not study.is_running
    return study


@pytest.mark.parametrize(("kind", "protect", "encoding"), CELLS)
def test_a_study_over_messages_is_the_study_of_a_bandit(kind, protect, encoding):
    study = assert_the_same_study(make_plan(kind, protect, encoding), 22)
    assert len(study.releases) == 4


@pytest.mark.parametrize("looks", [(0.8, 0.6), FOUR_LOOKS], ids=len)
def test_a_study_over_messages_looks_again_as_a_bandit_does(looks):
    plan = make_plan(schedule=Schedule(first=4, growth=1.2), looks=looks)
    assert len(assert_the_same_study(plan, 60).releases) >= 8


def test_a_study_ends_at_its_horizon():
    plan = make_plan(horizon=10)
    wired = Wired(plan)
    wired.play(range(10))
    with pytest.raises(StudyEnded, match="the horizon is reached"):
        wired.choose(ask_of(10))
    wired.finish()
    assert sum(release.asks for release in wired.publisher.study.releases) == 10
    assert all(release.private for release in wired.publisher.study.releases)
    last = wired.custodian.finish()  # again: the same
    assert last.digest == wired.publisher.study.releases[-1].digest
    assert wired.custodian.outbox is None
    for again in (
        lambda: wired.custodian.choose(ask_of(11)),
        lambda: wired.custodian.receive(Answer(id_of(9), 0.5)),
        lambda: wired.custodian.decline(Decline(id_of(9))),
    ):
        with pytest.raises(StudyEnded, match="the study is finished"):
            again()


# -- once


def test_replays_count_once_and_get_the_same_reply():
    wired, other = (Wired(PLAN, simulation=Simulation(1)) for _ in range(2))
    custodian = wired.custodian
    for number in range(4):
        ask, answer = ask_of(number), Answer(id_of(number), reward(number))
        assert len({write(custodian.choose(ask)) for _ in range(50)}) == 1
        receipts = {custodian.receive(answer) for _ in range(50)}
        assert receipts == {Receipt(id_of(number), "counted")}
        assert custodian.receive(Answer(id_of(number), 0.123)) in receipts  # the first counts
    assert custodian.asked == 4
    other.play(range(4))
    assert custodian.release().digest == other.custodian.release().digest


def test_an_answer_of_an_earlier_epoch_is_not_counted_in_a_later_one_again():
    wired, other = (Wired(PLAN, simulation=Simulation(1)) for _ in range(2))
    for each in (wired, other):
        each.play(range(8))
        if each is wired:
            for number in range(8):
                each.custodian.receive(Answer(id_of(number), reward(number)))
    assert wired.custodian.finish().digest == other.custodian.finish().digest


def test_a_round_ends_once():
    custodian = Wired(PLAN).custodian
    for number in range(2):
        custodian.choose(ask_of(number))
    custodian.receive(Answer(id_of(0), 0.5))
    for _ in range(2):
        assert custodian.decline(Decline(id_of(1))) == Receipt(id_of(1), "declined")
    with pytest.raises(TrialClosed):
        custodian.decline(Decline(id_of(0)))
    with pytest.raises(TrialClosed):
        custodian.receive(Answer(id_of(1), 0.5))
    with pytest.raises(TrialClosed):
        custodian.choose(ask_of(0))
    for unknown in (Answer(id_of(9), 0.5), Decline(id_of(9))):
        act = custodian.receive if isinstance(unknown, Answer) else custodian.decline
        with pytest.raises(UnknownTrial, match="no trial of this id"):
            act(unknown)


def test_an_id_is_for_one_ask_alone():
    plan = make_plan("context", "decisions", "fourier")
    custodian = Wired(plan).custodian
    ask = ask_of(0, "context")
    custodian.choose(ask)
    for other in (replace(ask, user="another"), replace(ask, context={"age": 61.5})):
        with pytest.raises(Refused, match="another ask had this id") as refused:
            custodian.choose(other)
        assert "61.5" not in str(refused.value)
    assert custodian.asked == 1


def test_nobody_takes_part_more_often_than_the_guarantee_allows():
    journal = ListJournal()
    custodian = Wired(PLAN, journal).custodian
    custodian.choose(ask_of(0))
    for each in (custodian, Custodian(PLAN, journal)):
        with pytest.raises(Refused, match="has taken part in 1 of 1 rounds"):
            each.choose(replace(ask_of(0), id=id_of(1)))
        with pytest.raises(InvalidArgument, match="user: expected an id"):
            each.choose(Ask(id_of(1)))
        each.choose(ask_of(0))  # what comes again is no other round


def test_an_ask_that_the_plan_does_not_allow_is_a_round_without_an_action():
    plan = make_plan("context", "decisions", "fourier")
    journal = ListJournal()
    wired, spared = Wired(plan, journal), Wired(plan)
    for each in (wired, spared):
        each.play(range(4))
    bads = ({}, {"candidates": ({"dose": 1.0, "age": 987.5},)}, {"context": {"age": 987.5}})
    for number, bad in enumerate(bads, start=4):
        ask = Ask(id_of(100 + number), f"someone {number}", **bad)
        for again in range(3):  # the first time with its reason; a repeat changes nothing
            with pytest.raises((Refused, InvalidArgument)) as refused:
                wired.choose(ask)
            assert "987.5" not in str(refused.value)
            assert "someone" not in str(refused.value)
            assert again == 0 or "a round all the same" in str(refused.value)
        with pytest.raises(TrialClosed):
            wired.custodian.receive(Answer(ask.id, 0.5))
        spared.choose(ask_of(200 + number, "context"))
        spared.custodian.decline(Decline(id_of(200 + number)))
    assert wired.custodian.asked == spared.custodian.asked == 7
    resumed = Custodian(plan, journal)
    assert resumed.asked == 7
    with pytest.raises(Refused, match="a round all the same"):
        resumed.choose(ask)


# -- a draw happens once


def test_a_release_is_repeated_byte_for_byte_until_the_next_epoch_is_open():
    wired = Wired(PLAN)
    custodian = wired.custodian
    wired.play(range(4))
    with pytest.raises(BetweenEpochs, match="its release comes first"):
        custodian.choose(ask_of(4))
    assert custodian.outbox is None
    releases = {write(custodian.release()) for _ in range(20)} | {write(custodian.finish())}
    assert releases == {write(custodian.outbox)}
    openings = {write(wired.publisher.publish(custodian.outbox)) for _ in range(20)}
    assert len(openings) == 1
    for _ in range(3):
        custodian.open(read(Opening, *openings))
    assert custodian.outbox is None
    assert len(wired.publisher.study.releases) == 1


def test_a_crash_between_draw_and_hand_over_repeats_the_same_release():
    journal = ListJournal()
    wired = Wired(PLAN, journal)
    wired.play(range(4))
    drawn = write(wired.custodian.release())
    for _ in range(3):
        wired.custodian = Custodian(PLAN, ListJournal(journal.kept))
        assert write(wired.custodian.outbox) == write(wired.custodian.release()) == drawn
    wired.choose(ask_of(4))
    assert [write(release) for release in wired.publisher.study.releases] == [drawn]


def test_a_release_that_could_not_be_kept_is_not_shown_and_not_drawn_again(monkeypatch):
    draws, real = [], mechanism.release
    monkeypatch.setattr(mechanism, "release", lambda *a, **k: draws.append(1) or real(*a, **k))
    journal = ListJournal()
    wired = Wired(PLAN, journal)
    wired.play(range(4), answered=lambda number: number < 3)
    journal.failing = True
    for _ in range(3):
        with pytest.raises(JournalFailed):
            wired.custodian.release()
        assert wired.custodian.outbox is None
    journal.failing = False
    with pytest.raises(BetweenEpochs):  # it would be in no release
        wired.custodian.receive(Answer(id_of(3), 0.5))
    wired.custodian.release()
    assert draws == [1]


def test_what_comes_between_epochs_waits_for_the_next_one():
    wired = Wired(PLAN, simulation=Simulation(1))
    wired.play(range(4), answered=lambda number: number < 2)
    release = wired.custodian.release()
    with pytest.raises(BetweenEpochs, match="send this again"):
        wired.custodian.receive(Answer(id_of(2), 0.9))
    with pytest.raises(BetweenEpochs, match="send this again"):
        wired.custodian.choose(ask_of(4))
    assert wired.custodian.receive(Answer(id_of(1), reward(1))).outcome == "counted"  # a repeat
    wired.custodian.decline(Decline(id_of(3)))
    wired.hand_up(release)
    wired.custodian.receive(Answer(id_of(2), 0.9))


def test_an_epoch_with_asks_left_is_not_released_by_accident():
    wired = Wired(PLAN)
    wired.play(range(3))
    with pytest.raises(Refused, match="has asks left"):
        wired.custodian.release()
    assert wired.custodian.finish().asks == 3


@pytest.mark.parametrize(("kind", "protect", "encoding"), CELLS)
def test_a_custodian_that_restarts_before_every_message_goes_on_the_same(kind, protect, encoding):
    plan, journal = make_plan(kind, protect, encoding), ListJournal()
    one = Wired(plan, simulation=Simulation(2))
    two = Wired(plan, journal, simulation=Simulation(2))
    for number in range(9):
        one.play([number])
        for message in (ask_of(number, kind), Answer(id_of(number), reward(number))):
            for _ in range(2):
                two.custodian = Custodian(plan, journal, simulation=Simulation(2))
                if isinstance(message, Answer):
                    two.custodian.receive(message)
                else:
                    two.choose(message)
        two.publisher = Publisher(plan, two.journal)
    for each in (one, two):
        each.finish()
    studies = one.publisher.study, two.publisher.study
    assert len({study.releases[-1].digest for study in studies}) == 1
    assert [len(study.releases) for study in studies] == [3, 3]


def test_a_custodian_keeps_its_file_to_itself_and_its_plan(tmp_path):
    path = tmp_path / "custodian.db"
    publisher = Publisher(PLAN, tmp_path / "publisher.db")
    with Custodian(PLAN, path) as custodian, publisher:
        custodian.open(publisher.opening)
        action = custodian.choose(ask_of(0))
    with Custodian(PLAN, path) as custodian, Publisher(PLAN, tmp_path / "publisher.db") as again:
        assert write(custodian.choose(ask_of(0))) == write(action)
        custodian.open(again.opening)  # known already
    with pytest.raises(JournalForeign, match="another plan"):
        Custodian(make_plan(horizon=9), path)
    with pytest.raises(Refused, match="that of a real study"):
        Custodian(PLAN, path, simulation=Simulation(1))


@pytest.mark.parametrize("cut", [2, 3, 4, 12])
def test_a_damaged_journal_is_not_used(cut):
    journal = ListJournal()
    Wired(PLAN, journal).play(range(5))
    del journal.kept[cut]  # the key, the epoch, the first round, the release
    with pytest.raises((JournalDamaged, Refused)):
        Custodian(PLAN, journal)


# -- a server that is not honest


def weakened(epoch, **parts):
    return replace(epoch, encoding=replace(epoch.encoding, **parts))


def tampered(plan, epoch):
    """Epochs that are worth less privacy, could wrap around, or are of another study."""
    encoding = epoch.encoding
    noise, residual = encoding.noise, encoding.residual
    yield weakened(epoch, noise=Noise(noise.gram * 0.999, noise.cross * 0.999))
    yield weakened(epoch, noise=Noise(noise.gram, noise.cross * 0.99))
    for each in (Noise.none(), Noise(1e300, 1e300), Noise(1e-300, 1e-300), Noise(1e300, 1e-300)):
        yield weakened(epoch, noise=each)
    yield weakened(epoch, noise=Noise(-noise.gram, -noise.cross))
    yield weakened(epoch, residual=Residual(residual.prediction, residual.width * 1.01))
    yield weakened(epoch, residual=Residual(np.full(plan.map.dimension, 1e10), residual.width))
    for bits in (-1, 0, 3, 62, 63, 10**9):
        yield weakened(epoch, bits=bits)
    yield replace(epoch, plan="ab" * 32)
    yield replace(epoch, length=epoch.length + 1)
    yield replace(epoch, first=1)
    yield replace(epoch, number=7)
    empty = np.zeros((0, plan.domain.dimension))
    policy = replace(epoch.policy, menu=empty, tilts=np.zeros((0, plan.map.dimension)))
    yield replace(epoch, policy=policy)
    outside = replace(epoch.policy, menu=epoch.policy.menu + 2.0)
    if plan.decisions == "box":
        yield replace(epoch, policy=outside)


@pytest.mark.parametrize(("kind", "protect", "encoding"), CELLS)
@pytest.mark.parametrize("asks", [0, 4])
def test_a_weaker_epoch_is_refused_and_nobody_acts_under_it(kind, protect, encoding, asks):
    plan, journal = make_plan(kind, protect, encoding), ListJournal()
    wired = Wired(plan, journal)
    wired.play(range(asks))
    if asks:
        opening = wired.publisher.publish(wired.custodian.release())
    else:
        opening, wired.custodian = (
            wired.publisher.opening,
            Custodian(plan, journal := ListJournal()),
        )
    kept, refused = list(journal.kept), 0
    for epoch in tampered(plan, opening.epoch):
        with pytest.raises(Refused):
            wired.custodian.open(Opening(opening.previous, epoch))
        with pytest.raises(BetweenEpochs):
            wired.custodian.choose(ask_of(asks, kind))
        refused += 1
    assert refused >= 19
    assert journal.kept == kept
    wired.custodian.open(opening)  # refusing has changed nothing
    wired.custodian.choose(ask_of(asks, kind))


def test_an_epoch_with_more_directions_than_the_plan_pays_for_is_refused():
    """Its noise is as strong as ever; finite precision of so many integers was not paid for."""
    plan = make_plan(directions=3)
    opening = Publisher(plan).opening
    custodian = Custodian(plan, journal := ListJournal())
    kept, m = list(journal.kept), plan.map.dimension
    assert len(opening.epoch.encoding.directions) == 3 < m
    for count in (4, m):
        epoch = weakened(opening.epoch, directions=np.eye(count, m))
        assert epoch.encoding.bound(plan.map) <= plan.mu * (1 + 1e-11)
        assert not plan.allows(epoch.encoding)
        with pytest.raises(Refused):
            check_epoch(plan, epoch)
        with pytest.raises(Refused):
            custodian.open(Opening(opening.previous, epoch))
    assert journal.kept == kept
    custodian.open(opening)
    custodian.choose(ask_of(0, "box"))


def test_an_epochs_integers_leave_room_for_the_late_answers_of_others():
    """Its own few asks could never wrap around, but two to the 33 open rounds may be answered."""
    plan = make_plan(expire_after=1 << 33)
    epoch = Publisher(plan).opening.epoch
    narrow = {
        "residual": replace(epoch.encoding.residual, width=1 / 64),
        "noise": replace(epoch.encoding.noise, cross=2.001 / 64 / plan.mu),
    }
    check_epoch(plan, weakened(epoch, **narrow, bits=28))
    with pytest.raises(Refused, match="could wrap around"):
        check_epoch(plan, weakened(epoch, **narrow, bits=29))


def test_an_epoch_that_does_not_follow_is_refused():
    wired, other = Wired(PLAN), Wired(PLAN)
    first = wired.publisher.opening
    for each in (wired, other):
        each.play(range(4))
    foreign = other.publisher.publish(other.custodian.release())
    with pytest.raises(Refused, match="was not handed up yet"):
        wired.custodian.open(foreign)
    release = wired.custodian.release()
    for opening in (
        foreign,
        Opening(release.digest, replace(foreign.epoch, previous=release.digest, number=0)),
        Opening(GENESIS, replace(first.epoch, length=3)),
        Opening("ab" * 32),
    ):
        with pytest.raises(Refused):
            wired.custodian.open(opening)
    wired.hand_up(release)
    wired.play([4])
    with pytest.raises(Refused):
        wired.custodian.open(first)


def test_after_a_last_release_no_epoch_is_taken():
    wired = Wired(PLAN)
    wired.play(range(3))
    release = wired.custodian.finish()
    following = replace(wired.publisher.opening.epoch, number=1, first=3, previous=release.digest)
    with pytest.raises(Refused, match="do not follow"):
        wired.custodian.open(Opening(release.digest, following))
    wired.hand_up(release)
    with pytest.raises(StudyEnded):
        wired.custodian.open(Opening(release.digest, following))


def test_nothing_is_given_out_before_there_is_an_epoch():
    custodian = Custodian(PLAN)
    with pytest.raises(BetweenEpochs):
        custodian.choose(ask_of(0))
    for act in (custodian.release, custodian.finish):
        with pytest.raises(BetweenEpochs, match="no epoch is open yet"):
            act()
    with pytest.raises(Refused, match="does not follow"):
        custodian.open(Opening(GENESIS))


@pytest.mark.parametrize(("kind", "protect", "encoding"), CELLS)
def test_the_honest_epochs_of_a_joint_study_pass_every_check(kind, protect, encoding):
    plan = make_plan(kind, protect, encoding)
    wired = Wired(plan)
    wired.play(range(9))
    for epoch in wired.publisher.study.epochs:
        check_epoch(plan, epoch)
    assert len(wired.publisher.study.epochs) == 3


# -- who sees what


@pytest.mark.parametrize(("kind", "protect", "encoding"), CELLS)
def test_the_server_sees_releases_and_nothing_else(kind, protect, encoding):
    plan = make_plan(kind, protect, encoding)
    wired = Wired(plan)
    wired.play(range(9))
    wired.finish()
    assert len(wired.seen) == 3
    for data in wired.seen:
        assert set(vars(read(Release, data))) <= {
            "epoch", "previous", "asks", "integers", "private", "reports", "digest",
        }  # fmt: skip
        assert read(Release, data).private
    text = b"".join((*wired.seen, *wired.journal.kept[1:]))
    for number in range(9):
        ask = ask_of(number, kind)
        values = [v for row in (ask.candidates or [ask.context or {}]) for v in row.values()]
        secrets = [id_of(number), f"user {number}", *map(repr, [*values, reward(number)])]
        assert not [s for s in secrets if len(s) > 3 and s.encode() in text]
    assert not {b"Entered", b"Told", b"Ask", b"Answer"} & {
        record[record.rfind(b'"type":"') + 8 : -2] for record in wired.journal.kept
    }


def test_one_persons_answer_reaches_the_server_through_noise_alone():
    """Two worlds that differ in an answer differ in the release's integers and digests alone."""
    releases = []
    for own in (0.0, 1.0):
        wired = Wired(PLAN, simulation=Simulation(1))
        wired.play(range(4), answered=lambda number: number != 2)
        wired.custodian.receive(Answer(id_of(2), own))
        releases.append(wired.custodian.release())
    one, two = releases
    assert (one.integers != two.integers).any()
    assert replace(one, integers=two.integers).digest == two.digest


def test_nothing_private_shows_itself():
    journal = ListJournal()
    plan = make_plan("candidates", "decisions", "gram", rewards=(0.0, 1000.0))
    custodian = Wired(plan, journal).custodian
    ask = Ask(id_of(0), "somebody", candidates=[{"dose": 6.174, "age": 61.74}])
    action = custodian.choose(ask)
    custodian.receive(Answer(id_of(0), 617.40625))
    words = f"{ask} {action} {Answer(id_of(0), 617.40625)} {custodian._rounds} {custodian}"
    assert not [word for word in ("6.174", "61.74", "617.4", "somebody") if word in words]
    assert "somebody" not in b"".join(journal.kept).decode()  # a pseudonym is


@pytest.mark.parametrize("role", [Custodian, Publisher])
def test_the_roles_are_not_for_local_privacy(role):
    with pytest.raises(InvalidArgument, match="plan: expected one of the joint model"):
        role(Plan(domain=Box({"dose": (0, 10)}), privacy=LocalDP(4.0, 1e-2)))
