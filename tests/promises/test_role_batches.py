"""Roles answer a batch of messages as they answer one after the other, whatever happens between."""

import random

import numpy as np
import pytest
from tests.promises.test_batches import BAD, KINDS, PEOPLE, make_plan, reward
from tests.support.journals import ListJournal

from discreet import Client, Custodian, Publisher, Server, Simulation
from discreet.errors import (
    BetweenEpochs,
    DiscreetError,
    JournalFailed,
    Refused,
    StudyEnded,
    TrialClosed,
    UnknownTrial,
)
from discreet.protocol.messages import Answer, Ask, Request

JOINT = ("none", "joint", "rewards")
SIMULATION = Simulation(3)


def make_id(number):
    return f"{number:032x}"


def make_ask(kind, number):
    rng = np.random.Generator(np.random.Philox(number))
    ages = [500.0 if number in BAD else age for age in rng.uniform(18, 90, 1 + number % 4)]
    own = {
        "box": {},
        "context": {"context": {"age": ages[0]}},
        "candidates": {"candidates": [{"dose": rng.uniform(0, 10), "age": age} for age in ages]},
    }[kind]
    return Ask(make_id(number), f"u{number}", **own)


def make_answer(number):
    return Answer(make_id(number), reward(number))


class Custody:
    """A custodian that may be resumed, and its publisher."""

    def __init__(self, plan):
        self.plan, self.journal, self.publisher = plan, ListJournal(), Publisher(plan)
        self.resume()
        self.custodian.open(self.publisher.opening)

    def resume(self):
        self.custodian = Custodian(self.plan, self.journal, simulation=SIMULATION)

    def turn(self):
        self.custodian.open(self.publisher.publish(self.custodian.release()))

    def releases(self):
        self.publisher.publish(self.custodian.finish())
        return [release.integers.tolist() for release in self.publisher.study.releases]


def one_by_one(custody):
    actions = {}
    for number in range(PEOPLE):
        ask = make_ask(custody.plan.decisions, number)
        try:
            actions[number] = custody.custodian.choose(ask)
        except BetweenEpochs:
            custody.turn()
            actions[number] = custody.custodian.choose(ask)
        except DiscreetError:
            continue
        custody.custodian.receive(make_answer(number))
    return actions


def in_batches(custody, seed):
    rng, actions, queue = random.Random(seed), {}, list(range(PEOPLE))
    while queue:
        size = rng.randint(1, 12)
        some, queue = queue[:size], queue[size:]
        asks = [make_ask(custody.plan.decisions, number) for number in some]
        room = custody.custodian.asks_left
        if rng.random() < 0.3 and room:
            fail(custody, lambda asks=asks: custody.custodian.choose_many(asks))
        replies = custody.custodian.choose_many(asks)
        if rng.random() < 0.3:  # whoever asks again hears the same
            again = custody.custodian.choose_many(asks[:room])
            assert written(again) == written(replies)
        told = [some[row] for row in replies.rows]
        actions |= dict(zip(told, replies, strict=True))
        late = [i for i, why in replies.refusals.items() if isinstance(why, BetweenEpochs)]
        assert late == list(range(room, len(some)))
        if rng.random() < 0.5:
            custody.resume()
        answer(custody, told, rng)
        queue = [some[row] for row in late] + queue
        if late:
            custody.turn()
    return actions


def fail(custody, act):
    """The disk is full, and nobody has a round."""
    custody.journal.failing, before = True, custody.custodian.asked
    with pytest.raises(JournalFailed):
        act()
    custody.journal.failing = False
    assert custody.custodian.asked == before


def answer(custody, numbers, rng):
    """In any order and pieces, some more than once."""
    numbers = rng.sample(numbers, len(numbers))
    some = rng.randint(0, len(numbers))
    for piece in (numbers[:some], numbers[max(0, some - 2) :] + numbers[-1:]):
        receipts = custody.custodian.receive_many([make_answer(number) for number in piece])
        assert [each.id for each in receipts] == [make_id(number) for number in piece]


def written(replies):
    return [(each.id, dict(each.action), each.chosen) for each in replies]


@pytest.mark.parametrize("privacy", JOINT)
@pytest.mark.parametrize("kind", KINDS)
def test_a_custodian_gives_a_batch_what_single_asks_get(kind, privacy):
    plan = make_plan(kind, privacy)
    single = Custody(plan)
    expected = one_by_one(single)
    kept = single.releases()
    assert len(kept) > 2
    for seed in range(3):
        custody = Custody(plan)
        actions = in_batches(custody, seed)
        assert sorted(actions) == sorted(expected)
        for number, action in actions.items():
            assert written([action]) == written([expected[number]])
        assert custody.releases() == kept


def test_a_batch_beyond_an_epoch_says_who_has_to_ask_again():
    custody = Custody(make_plan("box", "joint"))
    room = custody.custodian.asks_left
    asks = [make_ask("box", number) for number in range(room + 3)]
    replies = custody.custodian.choose_many(asks)
    assert replies.rows == tuple(range(room))
    assert {type(why) for why in replies.refusals.values()} == {BetweenEpochs}
    assert (custody.custodian.asked, custody.custodian.asks_left) == (room, 0)
    custody.turn()
    assert len(custody.custodian.choose_many(asks[room:])) == 3


def test_a_row_that_fails_takes_its_index_and_the_others_go_through():
    custody = Custody(make_plan("context", "joint"))
    asks = [make_ask("context", number) for number in (4, 5, 6)]
    replies = custody.custodian.choose_many(asks)
    assert (replies.rows, list(replies.refusals)) == ((0, 2), [1])
    assert custody.custodian.asked == 3
    again = custody.custodian.choose_many(asks)
    assert isinstance(again.refusals[1], Refused)
    assert custody.custodian.asked == 3


def test_who_may_not_take_part_has_no_index():
    custody = Custody(make_plan("box", "joint"))
    asks = [Ask(make_id(0), "a"), Ask(make_id(1), "a"), Ask(make_id(2), 17), Ask(make_id(3), "17")]
    replies = custody.custodian.choose_many(asks)
    assert (replies.rows, custody.custodian.asked) == ((0, 2), 2)


def test_two_asks_of_one_id_in_a_batch_are_one_round_or_refused():
    custody = Custody(make_plan("context", "joint"))
    one, other = make_ask("context", 1), Ask(make_id(1), "u9", context={"age": 30.0})
    replies = custody.custodian.choose_many([one, one, other])
    assert replies.rows == (0, 1)
    assert replies[0].action == replies[1].action
    assert "another ask had this id" in str(replies.refusals[2])


def test_a_wrong_answer_does_not_stop_the_others():
    custody = Custody(make_plan("box", "joint"))
    custody.custodian.choose_many([make_ask("box", number) for number in range(3)])
    found = custody.custodian.receive_many([make_answer(0), make_answer(9), make_answer(2)])
    assert (found.rows, type(found.refusals[1])) == ((0, 2), UnknownTrial)
    assert custody.custodian.receive(make_answer(1)).outcome == "counted"


# -- the local model


def make_clients(plan, numbers):
    return {number: Client(plan, simulation=SIMULATION) for number in numbers}


def choose(kind, client, offer):
    own = make_ask(kind, 30 if offer.ask in BAD else offer.ask)
    return client.choose(offer, own.candidates, context=own.context)


def serve(plan, sizes, seed):
    """Choices and releases of a study whose server hears so many at a time."""
    rng, journal, choices = random.Random(seed), ListJournal(), {}
    server, clients = Server(plan, journal, simulated=True), make_clients(plan, range(PEOPLE))
    number = 0
    while number < PEOPLE:
        size = min(sizes(rng), PEOPLE - number, server.asks_left or 1)
        some = range(number, number + size)
        requests = [clients[each].request(make_id(each)) for each in some]
        offers = server.offer_many(requests)
        assert len(server.offer_many(requests[:1])) == 1  # a repeat
        for each, offer in zip(some, offers, strict=True):
            choices[each] = choose(plan.decisions, clients[each], offer)
        if rng.random() < 0.5:
            server = Server(plan, journal, simulated=True)
        reports = [clients[each].report(reward(each)) for each in rng.sample(some, size)]
        assert len(server.receive_many([*reports, reports[0]])) == size + 1
        number += size
    server.finish()
    return choices, [release.integers.tolist() for release in server.study.releases]


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_gives_a_batch_what_single_requests_get(kind):
    plan = make_plan(kind, "local")
    choices, kept = serve(plan, lambda rng: 1, seed=0)
    assert len(kept) > 2
    for seed in range(2):
        assert serve(plan, lambda rng: rng.randint(1, 12), seed) == (choices, kept)


def test_a_server_turns_over_within_a_batch_and_then_what_came_before_is_late():
    plan = make_plan("box", "local")
    server, clients = Server(plan, simulated=True), make_clients(plan, range(10))
    room = server.asks_left
    offers = server.offer_many([clients[each].request(make_id(each)) for each in range(10)])
    assert [offer.ask for offer in offers] == list(range(10))
    assert [offer.epoch.number for offer in offers] == [int(each >= room) for each in range(10)]
    for each, offer in enumerate(offers):
        clients[each].choose(offer)
    found = server.receive_many([clients[each].report(0.5) for each in range(10)])
    assert found.rows == tuple(range(room, 10))
    assert {type(why) for why in found.refusals.values()} == {TrialClosed}


def test_a_servers_batch_ends_with_the_horizon():
    from dataclasses import replace

    plan = replace(make_plan("box", "local"), horizon=10)
    replies = Server(plan).offer_many([Request(make_id(each)) for each in range(13)])
    assert len(replies) == 10
    assert {type(why) for why in replies.refusals.values()} == {StudyEnded}
