"""Whoever brings something that leads to no action takes an index like anyone else.

Two worlds differ in what the third person brings: something that fits, and leaves without an
answer, or something that is refused. Noise comes from a seed, the same in both. Nobody else's
action differs, in this epoch or in a later one, and no release does.
"""

import math
from functools import cache

import numpy as np
import pytest

from discreet import (
    Bandit,
    Box,
    Client,
    Custodian,
    JointDP,
    LocalDP,
    Plan,
    Publisher,
    Schedule,
    Server,
    Simulation,
    SquaredExponential,
)
from discreet.errors import BetweenEpochs, DiscreetError
from discreet.protocol.messages import Answer, Ask, Decline

PRIVACY = {
    "decisions": JointDP(epsilon=2.0, delta=1e-3),
    "rewards": JointDP(epsilon=2.0, delta=1e-3, protect="rewards"),
    "local": LocalDP(epsilon=4.0, delta=1e-3),
}
KINDS = ("context", "candidates")
#: No dose is admissible below an age of 20.
BAD = {
    "context": {
        "nothing admissible": {"context": {"age": 19.0}},
        "outside the box": {"context": {"age": 191.0}},
        "no number": {"context": {"age": "old"}},
        "another coordinate": {"context": {"weight": 70.0}},
        "candidates": {"candidates": ({"dose": 1.0, "age": 40.0},)},
        "nothing": {},
    },
    "candidates": {
        "nothing admissible": {"candidates": ({"dose": 9.0, "age": 19.0},)},
        "outside the box": {"candidates": ({"dose": 1.0, "age": 191.0},)},
        "no number": {"candidates": ({"dose": 1.0, "age": "old"},)},
        "a coordinate missing": {"candidates": ({"dose": 1.0},)},
        "a context": {"context": {"age": 40.0}},
        "nothing": {},
    },
}
#: What no message can hold.
UNSPEAKABLE = {
    "context": {"no number": {"context": {"age": math.nan}}},
    "candidates": {
        "no number": {"candidates": np.full((2, 2), np.inf)},
        "none at all": {"candidates": ()},
    },
}
CASES = [(kind, name) for kind in KINDS for name in BAD[kind]]
PERSON, FIRST, PEOPLE = 2, 4, 10


@cache
def make_plan(kind, protect):
    return Plan(
        domain=Box(
            {"dose": (0, 10), "age": (18, 90)},
            context=["age"] if kind == "context" else [],
            feasible="dose <= 0.1 * age - 2",
        ),
        privacy=PRIVACY[protect],
        kernel=SquaredExponential(0.8),
        kernel_error=0.1,
        decisions=kind,
        public_decisions=protect == "rewards",
        schedule=Schedule(first=FIRST, growth=1.0),
    )


def fits(kind, number):
    age = 40.0 + 3 * number
    if kind == "context":
        return {"context": {"age": age}}
    return {"candidates": tuple({"dose": dose, "age": age} for dose in (0.5, 1.0, 1.5))}


def answer(number):
    return (number * 0.6180339887498949) % 1.0


def refused(call):
    with pytest.raises(DiscreetError):
        call()


def through_a_bandit(plan, brought):
    """Everyone else's actions, and all releases."""
    bandit, actions = Bandit(plan, simulation=Simulation(5)), []
    for number in range(PEOPLE):
        ask = {"user": f"user {number}"}
        if number == PERSON and brought is not None:
            refused(lambda ask=ask: bandit.ask(**brought, **ask))
            continue
        trial = bandit.ask(**fits(plan.decisions, number), **ask)
        if number == PERSON:
            bandit.abandon(trial)
        else:
            actions.append(trial.action)
            bandit.tell(trial, answer(number))
    bandit.finish()
    return actions, [release.integers.tolist() for release in bandit.study.releases]


def through_a_custodian(plan, brought):
    publisher, custodian = Publisher(plan), Custodian(plan, simulation=Simulation(5))
    custodian.open(publisher.opening)
    actions = []
    for number in range(PEOPLE):
        own = number == PERSON and brought is not None
        parts = brought if own else fits(plan.decisions, number)
        ask = Ask(f"{number:032x}", f"user {number}", **parts)
        try:
            action = custodian.choose(ask)
        except BetweenEpochs:
            custodian.open(publisher.publish(custodian.release()))
            action = custodian.choose(ask)
        except DiscreetError:
            assert own
            continue
        if number == PERSON:
            custodian.decline(Decline(ask.id))
        else:
            actions.append(dict(action.action))
            custodian.receive(Answer(ask.id, answer(number)))
    publisher.publish(custodian.finish())
    return actions, [release.integers.tolist() for release in publisher.study.releases]


def through_devices(plan, brought):
    server, actions = Server(plan, simulated=True), []
    for number in range(PEOPLE):
        client = Client(plan, simulation=Simulation(number))
        offer = server.offer(client.request(f"{number:032x}"))
        if number == PERSON and brought is not None:
            refused(lambda client=client, offer=offer: client.choose(offer, **brought))
            continue
        choice = client.choose(offer, **fits(plan.decisions, number))
        if number == PERSON:
            server.decline(client.abandon())
        else:
            actions.append(choice.action)
            server.receive(client.report(answer(number)))
    server.finish()
    return actions, [release.integers.tolist() for release in server.study.releases]


def assert_nobody_else_hears(play, plan, brought):
    """Where decision sets are public a release counts actions: only the person's epoch compares."""
    actions, releases = play(plan, brought)
    expected, kept = play(plan, None)
    if plan.public_decisions:
        assert actions[: FIRST - 1] == expected[: FIRST - 1]
    else:
        assert (actions, releases) == (expected, kept)


@pytest.mark.parametrize("protect", PRIVACY)
@pytest.mark.parametrize(("kind", "bad"), CASES)
def test_in_a_bandit(kind, bad, protect):
    assert_nobody_else_hears(through_a_bandit, make_plan(kind, protect), BAD[kind][bad])


@pytest.mark.parametrize("protect", PRIVACY)
@pytest.mark.parametrize(
    ("kind", "bad"), [(kind, name) for kind in KINDS for name in UNSPEAKABLE[kind]]
)
def test_in_a_bandit_that_is_given_what_no_message_can_hold(kind, bad, protect):
    assert_nobody_else_hears(through_a_bandit, make_plan(kind, protect), UNSPEAKABLE[kind][bad])


@pytest.mark.parametrize("protect", ["decisions", "rewards"])
@pytest.mark.parametrize(("kind", "bad"), CASES)
def test_by_a_custodian(kind, bad, protect):
    assert_nobody_else_hears(through_a_custodian, make_plan(kind, protect), BAD[kind][bad])


@pytest.mark.parametrize(("kind", "bad"), CASES)
def test_on_a_device(kind, bad):
    assert_nobody_else_hears(through_devices, make_plan(kind, "local"), BAD[kind][bad])
