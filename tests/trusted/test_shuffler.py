"""The shuffler mixes, strips, counts once, and hands up nothing that is too small."""

from dataclasses import fields, replace

import numpy as np
import pytest
from tests.support.journals import ListJournal
from tests.support.mixed_plans import SECRET, Crowd, an_id, mixed_plan

from discreet import Bandit, Client, LocalDP, Plan, ShuffledDP, Shuffler, ShuffleServer
from discreet.errors import (
    BetweenEpochs,
    InvalidArgument,
    Refused,
    StudyEnded,
    TrialClosed,
    UnknownTrial,
)
from discreet.privacy.blanket import Blanket
from discreet.privacy.budget import Simulation
from discreet.protocol.batches import Batch, Sealed, Turn
from discreet.protocol.messages import Decline, Offer, Request, read, write
from discreet.protocol.sealing import public_key, seal, unseal
from discreet.trusted.shuffler import compacted

PLAN = mixed_plan()


def crowd(**parts):
    return Crowd(PLAN, **parts)


def boxes(batch):
    return [box for group in batch.groups for box in group]


# -- what goes up


def test_a_batch_holds_every_report_of_the_epoch_and_nothing_else():
    people = crowd()
    sent = people.come(12)
    batch = people.shuffler.batch()
    assert sorted(boxes(batch)) == sorted(report.box for report in sent)
    assert {each.name for each in fields(batch)} == {"epoch", "asks", "groups", "simulated"}
    for report in sent:
        assert report.id.encode() not in write(batch)


def test_people_of_one_public_action_are_a_group():
    people = crowd()
    sent = people.come(12)
    groups = people.shuffler.batch().groups
    assert [len(group) for group in groups] == [3, 3, 3, 3]
    epoch = people.server.turn.epoch
    assert len(epoch.policy.menu) == 4
    for row, group in enumerate(groups):
        own = [report.box for n, report in enumerate(sent) if epoch.group_of(n) == row]
        assert sorted(group) == sorted(own)
        assert [tuple(epoch.policy.menu[row])] * 3 == [
            tuple(epoch.asked(12)[n]) for n in range(12) if epoch.group_of(n) == row
        ]


def test_where_actions_are_private_all_are_one_group():
    plan = mixed_plan(decisions="candidates", explore=None)
    people = Crowd(plan)
    for _ in range(12):
        client = Client(plan)
        offer = people.shuffler.offer(client.request())
        client.choose(offer, [[1.0], [9.0]])
        people.shuffler.receive(client.report(0.5))
    assert [len(group) for group in people.shuffler.batch().groups] == [12]
    assert people.server.take(people.shuffler.batch()).release.reports == 12


def test_the_order_of_a_batch_is_not_the_order_in_which_people_came():
    """Four groups of three in their old order, in all of twenty studies: 6^-80."""
    kept = 0
    for _ in range(20):
        people = crowd()
        sent = people.come(12)
        groups = people.shuffler.batch().groups
        order = [report.box for report in sent]
        kept += all(list(group) == sorted(group, key=order.index) for group in groups)
    assert kept < 20


def test_every_box_is_of_one_length_and_holds_an_index_of_the_epoch():
    people = crowd()
    sent = people.come(12)
    size = people.server.turn.epoch.encoding.cap.size
    assert len({len(report.box) for report in sent}) == 1
    for report in sent:
        assert 0 <= unseal(report.box, report.epoch, SECRET) < size


# -- what does not go up


def test_a_batch_below_the_minimum_is_not_handed_up_and_the_study_goes_on():
    people = crowd()
    people.come(5)
    people.offers(7)
    batch = people.turn()
    assert (batch.size, batch.asks) == (0, 12)
    assert people.server.study.releases[0].reports == 0
    assert not people.server.study.releases[0].integers.any()
    people.come(12)
    assert people.shuffler.batch().size == 12


def test_a_group_of_which_too_few_reported_is_left_out_and_others_are_not():
    """Every group was asked three times: two reports are enough, one is not."""
    people = crowd()
    people.come(7)
    people.offers(5)
    epoch = people.server.turn.epoch
    came = np.bincount([epoch.group_of(number) for number in range(7)], minlength=4).tolist()
    assert sorted(came) == [1, 2, 2, 2]
    batch = people.shuffler.batch()
    assert [len(group) for group in batch.groups] == [n if n > 1 else 0 for n in came]
    assert people.server.take(batch).release.reports == 6


# -- each person once


def test_a_report_that_comes_again_is_acknowledged_and_not_taken_twice():
    people = crowd()
    (report,) = people.come(1)
    assert people.shuffler.receive(report).outcome == "counted"
    people.come(11)
    assert people.shuffler.batch().size == 12


def test_another_report_of_an_id_is_not_taken():
    people = crowd()
    (report,) = people.come(1)
    second = replace(report, box=seal(3, report.epoch, report.key))
    assert people.shuffler.receive(second).outcome == "counted"
    people.come(11)
    assert second.box not in boxes(people.shuffler.batch())


def test_a_box_that_was_copied_is_refused():
    people = crowd()
    (report,) = people.come(1)
    (offer,) = people.offers(1)
    with pytest.raises(Refused, match="sent before"):
        people.shuffler.receive(replace(report, id=offer.id))
    copies = [replace(report, id=each.id, box="ab" * 84) for each in (offer, *people.offers(1))]
    replies = people.shuffler.receive_many(copies)
    assert (len(replies), list(replies.refusals)) == (1, [1])


def test_nobody_reports_who_was_not_asked_or_has_declined():
    people = crowd()
    (report,) = people.come(1)
    with pytest.raises(UnknownTrial):
        people.shuffler.receive(replace(report, id=an_id(77), box="ab" * 84))
    (offer,) = people.offers(1)
    assert people.shuffler.decline(Decline(offer.id)).outcome == "declined"
    assert people.shuffler.decline(Decline(offer.id)).outcome == "declined"
    with pytest.raises(TrialClosed):
        people.shuffler.receive(replace(report, id=offer.id, box="ab" * 84))


# -- nobody is told from the others


def test_reports_of_another_epoch_or_for_another_key_are_refused():
    people = crowd()
    (report,) = people.come(1)
    (offer,) = people.offers(1)
    with pytest.raises(TrialClosed, match="another epoch"):
        people.shuffler.receive(replace(report, id=offer.id, epoch="ab" * 32))
    with pytest.raises(Refused, match="another key"):
        people.shuffler.receive(replace(report, id=offer.id, key="ab" * 32))
    with pytest.raises(Refused, match="simulated"):
        people.shuffler.receive(replace(report, id=offer.id, simulated=True))


def test_a_client_seals_for_the_key_that_it_knows_and_no_other():
    people = crowd()
    client = Client(PLAN, key=public_key("08" * 32))
    with pytest.raises(Refused, match="another key"):
        client.choose(people.shuffler.offer(client.request()))
    assert Client(PLAN, key=public_key(SECRET)).plan is PLAN


def test_a_client_of_a_shuffled_plan_sends_nothing_in_the_clear():
    people = crowd()
    client = Client(PLAN)
    offer = people.shuffler.offer(client.request())
    with pytest.raises(Refused, match="sealed"):
        client.choose(Offer(offer.id, offer.ask, offer.epoch))
    client.choose(offer)
    report = client.report(0.7)
    assert isinstance(report, Sealed)
    assert client.report(0.1) is report
    assert client.outbox is report


def test_a_client_refuses_a_level_that_its_crowd_does_not_hide():
    people = crowd()
    client = Client(PLAN)
    offer = people.shuffler.offer(client.request())
    encoding = offer.epoch.encoding
    cap = PLAN.cap_of(type(encoding), encoding.dimension, 300)
    assert cap.share > encoding.cap.share
    weaker = replace(offer.epoch, encoding=replace(encoding, cap=cap))
    with pytest.raises(Refused, match="randomised"):
        client.choose(replace(offer, epoch=weaker))
    with pytest.raises(Refused, match="randomised"):
        Shuffler(PLAN).open(Turn(offer.key, None, weaker))


def test_reports_are_sent_at_a_level_that_the_smallest_group_hides():
    """By the accounting itself, for the honest reports of a group of three asks."""
    plan = mixed_plan(privacy=ShuffledDP(1.0, 0.05, minimum=6, answering=0.9, honest=1.0))
    epoch = Crowd(plan).server.turn.epoch
    assert epoch.smallest_group == 3
    cap = epoch.encoding.cap
    blanket = Blanket(cap.size, cap.nearest, cap.share)
    assert blanket.level > 1.05
    assert blanket.epsilon(0.05, people=3) <= 1.0
    assert plan.allows(epoch.encoding, 3)
    assert not plan.allows(epoch.encoding, 2)


# -- a batch is mixed once


def test_a_batch_that_was_mixed_stays_and_nothing_more_comes_in():
    people = crowd()
    people.come(11)
    client = Client(PLAN)
    client.choose(people.shuffler.offer(client.request()))
    late = client.report(0.5)
    batch = people.shuffler.batch()
    with pytest.raises(BetweenEpochs):
        people.shuffler.receive(late)
    with pytest.raises(BetweenEpochs):
        people.shuffler.offer(Request(an_id(50), 0))
    assert people.shuffler.batch() is batch is people.shuffler.outbox
    people.turn()
    with pytest.raises(TrialClosed):
        people.shuffler.receive(late)


def test_an_epoch_with_asks_left_is_handed_up_only_to_end_the_study():
    people = crowd()
    people.come(9)
    with pytest.raises(Refused, match="asks left"):
        people.shuffler.batch()
    batch = people.shuffler.finish()
    assert (batch.asks, batch.size) == (9, 8)  # one group has one report of three asks
    people.shuffler.open(people.server.take(batch))
    assert not people.server.study.is_running
    with pytest.raises(StudyEnded):
        people.offers(1)


def test_a_resumed_shuffler_hands_up_the_same_batch():
    journal, beside = ListJournal(), ListJournal()
    people = crowd(journals=(journal, beside))
    sent = people.come(7)
    resumed = Shuffler(PLAN, journal)
    assert resumed.asked == 7
    assert resumed.receive(sent[3]).outcome == "counted"
    people.shuffler = resumed
    people.come(5)
    batch = resumed.batch()
    again = Shuffler(PLAN, journal)
    assert write(again.batch()) == write(batch)
    turn = people.server.take(batch)
    assert write(ShuffleServer(PLAN, SECRET, beside).take(batch)) == write(turn)
    again.open(turn)
    again.open(turn)
    assert Shuffler(PLAN, journal).asked == 12


def test_a_compacted_journal_goes_on_and_holds_no_closed_epoch():
    journal = ListJournal()
    people = crowd(journals=(journal, None))
    sent = people.come(12)
    people.turn()
    people.come(4)
    smaller = ListJournal()
    smaller.append(*compacted(journal))
    text = b"".join(smaller.records())
    assert not any(report.id.encode() in text or report.box.encode() in text for report in sent)
    people.shuffler = Shuffler(PLAN, smaller)
    people.come(8)
    assert people.turn().size == 12


# -- with the server


def test_a_turn_that_does_not_follow_is_refused():
    people = crowd()
    people.come(12)
    batch = people.shuffler.batch()
    turn = people.server.take(batch)
    with pytest.raises(Refused, match="another key"):
        people.shuffler.open(Turn("ab" * 32, turn.release, turn.epoch))
    with pytest.raises(InvalidArgument, match="release before"):
        Turn(turn.key, None, turn.epoch)
    fewer = replace(turn.release, asks=11, reports=11)
    with pytest.raises(Refused, match="handed up"):
        people.shuffler.open(Turn(turn.key, fewer, replace(turn.epoch, previous=fewer.digest)))
    more = Shuffler(PLAN)
    with pytest.raises(Refused, match="follow"):
        more.open(turn)
    people.shuffler.open(turn)
    assert people.shuffler.asks_left == 12


def test_messages_between_the_roles_read_back():
    people = crowd()
    sent = people.come(12)
    batch = people.shuffler.batch()
    assert read(Sealed, write(sent[0])) == sent[0]
    assert read(Batch, write(batch)) == batch
    turn = people.server.take(batch)
    assert write(read(Turn, write(turn))) == write(turn)


def test_a_bandit_and_the_roles_apart_learn_the_same():
    rewards = [0.1 + 0.07 * (number % 11) for number in range(24)]
    apart = Crowd(PLAN, simulated=True)
    for number, reward in enumerate(rewards):
        if number == 12:
            apart.turn()
        client = Client(PLAN, simulation=Simulation(5))
        client.choose(apart.shuffler.offer(client.request(an_id(number))))
        apart.shuffler.receive(client.report(reward))
    apart.turn()
    bandit = Bandit(PLAN, simulation=Simulation(5))
    for number, reward in enumerate(rewards):
        bandit.tell(bandit.ask(user=f"u{number}").number, reward)
    bandit.ask(user="next")
    assert [each.digest for each in bandit.study.releases] == [
        each.digest for each in apart.server.study.releases
    ]


def test_a_bandit_leaves_out_what_a_shuffler_would_not_hand_up():
    bandit = Bandit(PLAN)
    for number in range(12):
        trial = bandit.ask(user=f"u{number}").number
        if number < 7:
            bandit.tell(trial, 0.5)
    bandit.ask(user="next")
    assert bandit.study.releases[0].reports == 6


@pytest.mark.parametrize("role", [Shuffler, lambda plan: ShuffleServer(plan, SECRET)])
def test_only_shuffled_plans_have_a_shuffler(role):
    with pytest.raises(InvalidArgument, match="ShuffledDP"):
        role(Plan(domain=PLAN.domain, privacy=LocalDP(1.0)))


def test_a_plan_whose_epochs_are_too_short_to_be_handed_up_is_refused():
    with pytest.raises(InvalidArgument, match="schedule"):
        mixed_plan(privacy=ShuffledDP(1.0, 1e-3, minimum=20))
