"""Whom an epoch refuses depends on the plan and on what they bring: never on the epoch.

A server or publisher writes the epoch. If its menu or its scores decided who is left without an
action, silence would answer questions about a private context, at no cost in rounds. Here they
write the worst they can. Everyone whose context the plan admits gets an admitted action, and
everyone else is refused, under every epoch alike.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from discreet import (
    Box,
    Categorical,
    Client,
    Custodian,
    Integer,
    JointDP,
    LocalDP,
    NonPrivate,
    Plan,
    Publisher,
    Server,
    SquaredExponential,
)
from discreet.errors import DiscreetError, Refused
from discreet.learning.personal import first_admitted
from discreet.learning.policy import Policy, packed
from discreet.protocol.decisions import check_ask, decide
from discreet.protocol.messages import Ask, Offer

PRIVACY = {
    "an index": LocalDP(epsilon=0.1),
    "integers": LocalDP(epsilon=4.0, delta=1e-3),
    "joint": JointDP(epsilon=1.0, delta=1e-6),
}
#: No dose is admitted below an age of 0; next to it, doses that no row of an honest design has.
ADMITTED = (0.0, 0.001, 0.02, 3.0, 37.123, 50.0, 81.5, 100.0)
REFUSED = (-20.0, -7.5, -0.001)
DOSES = np.linspace(0.0, 1.0, 9)


@cache
def make_plan(name):
    box = Box({"dose": (0, 10), "age": (-20, 100)}, context=["age"], feasible="dose * 10 <= age")
    encoding = "gram" if name == "integers" else "auto"
    return Plan(domain=box, privacy=PRIVACY[name], encoding=encoding)


def design(plan, *rows):
    return Policy(np.zeros((0, plan.map.dimension)), np.zeros(0), 0.0, np.array(rows))


def scores(plan, tilts, whitening=0.0, optimism=0.0):
    m = plan.map.dimension
    triangle = packed(np.full((m, m), whitening))
    nothing = np.zeros((0, plan.domain.dimension))
    return Policy(np.broadcast_to(tilts, (1, m)), triangle, optimism, nothing)


def written_by_an_enemy(plan):
    """Policies of the right shapes: designs, and scores that are random, infinite or no numbers."""
    d, m = plan.domain.dimension, plan.map.dimension
    rng = np.random.Generator(np.random.Philox(11))
    if plan.designs_for_people:
        yield from (design(plan, np.full(d, dose)) for dose in DOSES)
        yield design(plan, np.full(d, 1e308), np.full(d, -1e308))
        yield design(plan, *rng.standard_normal((3, d)))
    for size in (1.0, 1e9, 1e307):
        yield scores(plan, size * rng.standard_normal(m), 1.0, float(rng.standard_normal()))
    for tilt in (0.0, np.inf, -np.inf, np.nan):
        yield scores(plan, tilt)
    for whitening in (1.0, 1e200, 1e308, np.inf):
        for optimism in (-1e308, 1e308, np.nan):
            yield scores(plan, 0.0, whitening, optimism)


def gets_an_action(client, offer, age):
    try:
        client.choose(offer, context={"age": age})
    except DiscreetError as error:
        assert "no action satisfies" in str(error)  # noqa: PT017
        assert client.rounds == 0
        return False
    assert client.plan.domain.admits(client.chosen.point[None]).all()
    assert client.choice.action["age"] == pytest.approx(age, abs=1e-9)
    return True


@pytest.mark.parametrize("name", ["an index", "integers"])
def test_a_client_refuses_the_same_people_under_every_epoch(name):
    plan = make_plan(name)
    assert plan.sends_indices == plan.designs_for_people == (name == "an index")
    opened = Server(plan).study.open_epoch
    for policy in (opened.policy, *written_by_an_enemy(plan)):
        for age in ADMITTED + REFUSED:
            client = Client(plan)
            offer = Offer(client.request().id, 0, replace(opened, policy=policy))
            assert gets_an_action(client, offer, age) == (age in ADMITTED)


def test_what_a_server_hears_while_it_bisects_is_the_same_for_every_admitted_context():
    plan = make_plan("an index")
    opened = Server(plan).study.open_epoch

    def heard(age):
        low, high, answers = 0.0, 1.0, []
        for _ in range(12):
            middle, client = (low + high) / 2, Client(plan)
            epoch = replace(opened, policy=design(plan, [middle, 0.0]))
            answers.append(gets_an_action(client, Offer(client.request().id, 0, epoch), age))
            low, high = (middle, high) if answers[-1] else (low, middle)
        return answers

    assert {tuple(heard(age)) for age in ADMITTED} == {(True,) * 12}
    assert {tuple(heard(age)) for age in REFUSED} == {(False,) * 12}


@pytest.mark.parametrize(
    "menu", [np.array([[0.5, 0.0], [np.nan, 0.0]]), np.array([[np.inf, 0.0]]), np.zeros((0, 2))]
)
def test_a_menu_that_holds_no_actions_is_refused_by_everyone(menu):
    plan = make_plan("an index")
    opened = Server(plan).study.open_epoch
    for age in ADMITTED:
        client = Client(plan)
        epoch = replace(opened, policy=replace(opened.policy, menu=menu))
        offer = Offer(client.request().id, 0, epoch)
        with pytest.raises(Refused, match="policy does not fit the plan"):
            client.choose(offer, context={"age": age})


def test_a_custodian_refuses_the_same_people_under_every_epoch():
    plan = make_plan("joint")
    opening = Publisher(plan).opening
    for policy in (opening.epoch.policy, *written_by_an_enemy(plan)):
        custodian = Custodian(plan)
        custodian.open(replace(opening, epoch=replace(opening.epoch, policy=policy)))
        ages = ADMITTED + REFUSED
        asks = [Ask(f"{i:032x}", f"user {i}", context={"age": age}) for i, age in enumerate(ages)]
        for ask, age in zip(asks, ages, strict=True):
            if age in REFUSED:
                with pytest.raises(Refused, match="no action satisfies"):
                    custodian.choose(ask)
            else:
                action = custodian.choose(ask).action
                assert 10 * action["dose"] <= action["age"] + 1e-9
        assert custodian.asked == len(ages)


BOXES = {
    "a box": Box({"dose": (0, 10), "age": (0, 9)}, context=["age"], feasible="dose + 1 <= age"),
    "a ball": Box(
        {"a": (-1, 1), "b": (-1, 1), "age": (-1, 1)},
        context=["age"],
        feasible="a + b >= age",
        shape="ball",
    ),
    "pills and arms": Box(
        {"pills": Integer(1, 9), "arm": Categorical(("x", "y", "z")), "age": (0, 10)},
        context=["age"],
        feasible="pills <= age and (arm == 'z' or age > 5)",
    ),
    "a narrow path": Box(
        {"dose": (0, 10), "age": (0, 10)}, context=["age"], feasible="abs(dose - age) <= 0.02"
    ),
}


def passes(plan, context):
    try:
        check_ask(plan, None, context)
    except Refused:
        return False
    return True


@pytest.mark.parametrize("name", BOXES)
def test_in_every_domain_those_are_refused_whom_a_check_refuses(name):
    box = BOXES[name]
    kernel = SquaredExponential(0.8)
    plan = Plan(domain=box, privacy=NonPrivate(), kernel=kernel, kernel_error=0.1)
    opened = Server(make_plan("an index")).study.open_epoch
    brought = [box.decode([*[0.5] * (box.dimension - 1), u]) for u in np.linspace(0.0, 1.0, 41)]
    ages = [{"age": each["age"]} for each in brought]
    contexts = np.array([box.encode_context(age) for age in ages])
    fallback, admitted = first_admitted(box, contexts)
    for i, age in enumerate(ages):
        assert first_admitted(box, contexts[[i]])[0].tobytes() == fallback[i].tobytes()
        assert passes(plan, age) == admitted[i]
    assert 0 < admitted.sum() < len(contexts)
    menus = [design(plan, np.full(box.dimension, dose)) for dose in DOSES]
    for policy in (*menus, *written_by_an_enemy(plan)):
        decisions = decide(plan, replace(opened, policy=policy), 0, list(contexts))
        assert sorted(decisions.refusals) == np.flatnonzero(~admitted).tolist()
        assert {str(each) for each in decisions.refusals.values()} == {
            "no action satisfies the plan's feasibility predicate in this context"
        }
        assert box.admits(decisions.points[admitted]).all()
        assert np.allclose(box.snap(decisions.points[admitted]), decisions.points[admitted])
