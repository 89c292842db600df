"""First actions and expected people: read, checked, stored, and given out."""

import numpy as np
import pytest

from discreet.agreement.beginning import Around, Shares
from discreet.agreement.plan import Plan
from discreet.bandit import Bandit
from discreet.domain.box import Box, Categorical, Integer
from discreet.errors import InvalidArgument, ShortHorizon
from discreet.privacy.budget import JointDP, NonPrivate, Simulation
from discreet.storage import canonical

BOX = Box(
    {"dose": (0, 10), "pills": Integer(1, 4), "age": (18, 90), "sex": Categorical(("f", "m"))},
    context=("age", "sex"),
)
PERSON = {"age": 40, "sex": "f"}


def _plan(**parts):
    usual = {"domain": BOX, "privacy": JointDP(1.0, 1e-6), "horizon": 5_000}
    return Plan(**(usual | parts))


def _first(plan, count=30):
    bandit = Bandit(plan, simulation=Simulation(1))
    brought = {} if plan.decisions == "box" else {"context": PERSON}
    return [bandit.ask(**brought, user=f"u{i}").action for i in range(count)]


def test_first_asks_get_the_listed_actions_in_turn():
    listed = [{"dose": 2.0, "pills": 1}, {"dose": 3.0, "pills": 2}]
    for action, wanted in zip(_first(_plan(explore=listed)), 15 * listed, strict=True):
        assert {name: action[name] for name in wanted} == pytest.approx(wanted)
        assert action["age"] == 40


def test_first_asks_stay_in_the_region():
    region = Box({"dose": (2, 4), "pills": Integer(2, 3)})
    actions = _first(_plan(explore=region))
    assert all(2 <= each["dose"] <= 4 and each["pills"] in (2, 3) for each in actions)
    assert len({each["dose"] for each in actions}) > 10


def test_first_asks_begin_around_the_start():
    actions = _first(_plan(start={"dose": 5.0, "pills": 2}))
    assert all(4 <= each["dose"] <= 6 and each["pills"] in (2, 3) for each in actions)


@pytest.mark.parametrize("privacy", [JointDP(1.0, 1e-6), NonPrivate()], ids=["joint", "none"])
def test_a_whole_box_begins_there_too(privacy):
    box = Box({"dose": (0, 10)}, feasible="dose <= 8")
    plan = Plan(domain=box, privacy=privacy, start={"dose": 3}, horizon=2_000)
    assert all(2 <= each["dose"] <= 4 for each in _first(plan, 8))


def test_a_person_who_may_not_have_an_action_gets_the_next_one():
    box = Box({"dose": (0, 10), "age": (18, 90)}, context=("age",), feasible="dose <= age / 10")
    plan = Plan(
        domain=box,
        privacy=JointDP(1.0, 1e-6),
        horizon=5_000,
        explore=[{"dose": 9.0}, {"dose": 2.0}],
    )
    bandit = Bandit(plan, simulation=Simulation(1))
    doses = [bandit.ask(context={"age": 30}, user=f"u{i}").action["dose"] for i in range(4)]
    assert doses == pytest.approx([2.0] * 4)


def test_a_sample_is_stored_as_what_it_tells_and_not_as_rows():
    rows = [{"age": 30 + i % 20, "sex": "fm"[i % 3 == 0]} for i in range(60)]
    plan = _plan(public_contexts=rows)
    age = plan.public_contexts["age"]
    assert (age.mean, age.std) == pytest.approx((39.5, 5.77), abs=0.01)
    assert plan.public_contexts["sex"].shares["f"] == pytest.approx(41 / 62)
    columns = {"age": [row["age"] for row in rows], "sex": [row["sex"] for row in rows]}
    assert _plan(public_contexts=columns).digest == plan.digest
    assert canonical.decode(Plan, canonical.encode(plan)).digest == plan.digest


def test_laws_are_named_or_written_short():
    short = _plan(public_contexts={"age": (61, 12), "sex": {"f": 3, "m": 1}})
    named = {"age": Around(61, 12), "sex": Shares({"f": 0.75, "m": 0.25})}
    assert short.public_contexts == named
    assert _plan(public_contexts=named).digest == short.digest


def test_a_plan_without_them_reads_as_before():
    data = canonical.encode(_plan())
    assert b"explore" not in data
    assert b"public_contexts" not in data


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"explore": []}, "a list of actions"),
        ({"explore": [{"dose": 50, "pills": 1}]}, "explore"),
        ({"explore": [{"dose": 5}]}, "pills"),
        ({"explore": Box({"dose": (0, 11)})}, "dose within its coordinate"),
        ({"explore": Box({"age": (20, 30)})}, "a region of dose, pills"),
        ({"explore": 3}, "a list of actions"),
        ({"start": {"dose": 5}}, "pills"),
        ({"start": [5]}, "an action by name"),
        ({"start": {"dose": 5, "pills": 1}, "explore": Box({"dose": (0, 1)})}, "beside explore"),
        ({"public_contexts": {"age": (61,)}}, "a pair"),
        ({"public_contexts": {"age": (61, 0)}}, "std"),
        ({"public_contexts": {"dose": (6, 1)}}, "contexts: age, sex"),
        ({"public_contexts": {"sex": (6, 1)}}, "sex"),
        ({"public_contexts": {"sex": {"z": 1.0}}}, "shares of f, m"),
        ({"public_contexts": {"age": [200, 300]}}, "within"),
        ({"public_contexts": "all"}, "laws by name"),
        ({"decisions": "candidates", "start": {"dose": 5, "pills": 1}}, "they bring actions"),
    ],
)
def test_what_does_not_fit_is_refused(parts, words):
    with pytest.raises(InvalidArgument, match=words):
        _plan(**parts)


def test_people_that_are_too_few_are_said_when_the_plan_is_made():
    with pytest.warns(ShortHorizon, match="100 people will hardly teach"):
        _plan(horizon=100)
    box = Box({"x": (0, 1)})
    with pytest.warns(ShortHorizon, match="50 people will hardly teach"):
        Plan(domain=box, privacy=JointDP(0.1, 1e-6), horizon=50)


def test_learning_begins_within_every_horizon():
    for horizon in (10, 100, 500, 4_000, 10**6):
        plan = _plan(horizon=horizon)
        assert plan.design_asks <= max(2, 0.16 * horizon)
    assert np.isfinite(_plan(horizon=None).design_asks)
