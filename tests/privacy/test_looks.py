"""Looks: weights that cost no more than one whole look, for plans that can look again."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Box, JointDP, LocalDP, NonPrivate, Plan, SquaredExponential
from discreet.agreement.schedule import Exploration
from discreet.errors import InvalidArgument
from discreet.privacy.clipping import SLACK_PER_INTEGER
from discreet.privacy.cost import GaussianPrivacy
from discreet.privacy.looks import FOUR_LOOKS, MOST_LOOKS, ONE_LOOK, check_looks, in_sight, reach
from discreet.storage import canonical

JOINT = JointDP(1.0, 1e-3)
BOX = Box({"x": (0, 1)})
WITH_CONTEXT = Box({"x": (0, 1), "age": (0, 1)}, context=["age"])


def make_plan(**parts):
    defaults = {"domain": BOX, "privacy": JOINT, "kernel": SquaredExponential(0.4)}
    return Plan(**(defaults | parts))


PUBLIC = {
    "privacy": JointDP(1.0, 1e-3, protect="rewards"),
    "decisions": "candidates",
    "public_decisions": True,
}
AGAIN = {
    "joint, box": {},
    "joint, box, rewards": {"privacy": JointDP(1.0, 1e-3, protect="rewards")},
    "joint, box, several rounds": {"privacy": JointDP(1.0, 1e-3, rounds_per_user=3)},
    "joint, context": {"domain": WITH_CONTEXT},
}
ONCE = {
    "joint, box, gram": {"encoding": "gram"},
    "joint, box, fourier": {"encoding": "fourier"},
    "joint, candidates": {"decisions": "candidates"},
    "joint, candidates, announced": PUBLIC,
    "joint, context, fourier": {
        "domain": WITH_CONTEXT,
        "encoding": "fourier",
        "features": "grid",
    },
    "joint, correlated": {"noise": "tree", "horizon": 50},
    "local": {"privacy": LocalDP(1.0, 1e-3), "encoding": "reward"},
    "local, candidates": {
        "privacy": LocalDP(1.0, 1e-3),
        "encoding": "fourier",
        "decisions": "candidates",
    },
    "not private": {"privacy": NonPrivate()},
    "not private, reward": {"privacy": NonPrivate(), "encoding": "reward"},
    "not private, candidates": {"privacy": NonPrivate(), "decisions": "candidates"},
}


# -- weights


@pytest.mark.parametrize(
    "looks",
    [
        (),
        (0.2,) * (MOST_LOOKS + 1),
        (0.0,),
        (0.8, 0.0),
        (0.8, -0.6),
        (-1.0,),
        (math.nan,),
        (0.6, math.nan),
        (math.inf,),
        (1.0 + 1e-9,),
        (0.8, 0.6 + 1e-9),
        (1.0, 1e-3),
    ],
    ids=repr,
)
def test_weights_that_could_cost_more_are_refused(looks):
    words = r"looks: expected at most 16 weights in \(0, 1\] whose squares add up to at most 1"
    with pytest.raises(InvalidArgument, match=words):
        check_looks(looks)
    with pytest.raises(InvalidArgument, match="looks: expected"):
        make_plan(looks=looks)


@pytest.mark.parametrize("nearly", [(0.95, math.sqrt(1.0 - 0.95**2)), (0.28, 0.88, 0.38)])
def test_a_weight_of_nearly_all_is_refused_by_what_it_moves(nearly):
    """Squares that add up to 1 are not enough: next to a whole look, the spread moves too."""
    with pytest.raises(InvalidArgument, match="no weight so large beside others"):
        check_looks(nearly)


@pytest.mark.parametrize(
    "looks", [1.0, 4, "1", ("1.0",), (True,), ([1.0],), (1j,), (None,)], ids=repr
)
def test_what_is_no_sequence_of_numbers_is_refused_by_name(looks):
    with pytest.raises(InvalidArgument, match=r"^looks: expected"):
        make_plan(looks=looks)


@given(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=MOST_LOOKS))
def test_weights_that_pass_move_all_releases_by_at_most_two_widths(raw):
    """Whatever the replaced round answers, in whichever epoch: by trying, not by `reach`."""
    looks = tuple(np.array(raw) / max(1.0, np.linalg.norm(raw) * (1 + 1e-12)))
    try:
        check_looks(looks)
    except InvalidArgument:
        assert reach(looks) > 2.0
        return
    rng = np.random.default_rng(len(raw))
    for apart in range(len(looks) + 1):
        one, two = np.r_[looks, np.zeros(apart)], np.r_[np.zeros(apart), looks]
        for h, other in [(1.0, 1.0), *rng.random((5, 2))]:
            a, e = h * one, other * two
            assert np.sum((a + e) ** 2 + (a**2 - e**2) ** 2) <= 4.0 + 1e-9


def test_four_looks_use_the_whole_budget_and_are_lists_or_arrays_as_well():
    assert math.fsum(weight**2 for weight in FOUR_LOOKS) == pytest.approx(1.0, abs=1e-15)
    plans = [make_plan(looks=kind([0.8, 0.6])) for kind in (tuple, list, np.array)]
    assert len({plan.digest for plan in plans}) == 1
    assert all(type(weight) is float for plan in plans for weight in plan.looks)


@dataclass(frozen=True)
class Rounds:
    name: int
    looks: tuple[float, ...]


def test_in_sight_are_those_whose_age_has_a_weight_left():
    """The first epoch once, the others four times: after ten epochs the last four are left."""
    seen = ()
    for number in range(10):
        seen = in_sight(Rounds(number, ONE_LOOK if number == 0 else FOUR_LOOKS), seen)
        expected = [n for n in range(number, number - 4, -1) if n > 0 or (n == number == 0)]
        assert [each.name for each in seen] == expected
    assert in_sight(Rounds(0, ONE_LOOK), ()) == (Rounds(0, ONE_LOOK),)


# -- plans


@pytest.mark.parametrize("name", AGAIN)
def test_four_looks_are_the_default_where_they_are_proven(name):
    assert make_plan(**AGAIN[name]).looks == FOUR_LOOKS


@pytest.mark.parametrize("name", ONCE)
def test_elsewhere_a_round_is_looked_at_once(name):
    plan = make_plan(**ONCE[name])
    assert plan.looks is None
    assert plan.looks_from(0) == plan.looks_from(100) == ONE_LOOK
    if plan.mu is None:  # there is no budget to divide
        assert make_plan(**ONCE[name], looks=(0.8, 0.6)).looks is None
    else:
        with pytest.raises(InvalidArgument, match="in one release"):
            make_plan(**ONCE[name], looks=(0.8, 0.6))
    assert make_plan(**ONCE[name], looks=(1.0,)).looks_from(100) == ONE_LOOK
    with pytest.raises(InvalidArgument, match="looks"):
        make_plan(**ONCE[name], looks=(2.0,))


def test_an_epoch_that_is_looked_at_again_has_only_so_many_draws():
    with pytest.raises(InvalidArgument, match="exploration: expected at most 512 draws"):
        make_plan(exploration=Exploration(draws=513))
    for looks, draws in ((None, 512), ((1.0,), 513)):
        assert make_plan(exploration=Exploration(draws=draws), looks=looks).exploring.draws == draws


def test_the_first_epoch_is_looked_at_once():
    plan = make_plan(looks=(0.8, 0.6))
    assert (plan.looks_from(0), plan.looks_from(1)) == (ONE_LOOK, (0.8, 0.6))


@pytest.mark.parametrize("looks", [None, (1.0,), (0.7,), (0.8, 0.6), FOUR_LOOKS], ids=repr)
@pytest.mark.parametrize("name", {**AGAIN, **ONCE})
def test_every_plan_is_read_back_as_it_was_written(name, looks):
    if name in ONCE and looks is not None and len(looks) > 1:
        looks = None
    plan = make_plan(**{**AGAIN, **ONCE}[name], looks=looks)
    data = canonical.encode(plan)
    read = canonical.decode(Plan, data)
    assert canonical.encode(read) == data
    assert (read.digest, read.looks, read.mu) == (plan.digest, plan.looks, plan.mu)
    assert (b'"looks":' in data) == (plan.looks is not None)
    assert replace(plan, name="another").looks == plan.looks


def test_a_plan_from_before_there_were_looks_is_one_that_looks_once():
    data = canonical.encode(make_plan(looks=(1.0,)))
    silent = data.replace(b'"looks":[1.0],', b"")
    assert silent != data
    before = canonical.decode(Plan, silent)
    assert canonical.encode(before) == silent
    assert not before.looks_again
    assert before.looks_from(100) == ONE_LOOK
    assert before.mu == make_plan(looks=(1.0,)).mu


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("looks", [(1.0,), (0.8, 0.6), FOUR_LOOKS], ids=len)
def test_finite_precision_is_paid_for_in_every_look(looks, rounds):
    """A replaced round of a user touches two times `looks` releases, and each takes its slack."""
    plan = make_plan(privacy=JointDP(1.0, 1e-3, rounds_per_user=rounds), looks=looks)
    touched = 2 * len(looks) * rounds
    slack = touched * (1 + math.e) * (plan.map.dimension + 1) * SLACK_PER_INTEGER
    cost = GaussianPrivacy.of(1.0, 1e-3 - slack).mu
    assert plan.mu == pytest.approx(plan.privacy.per_round(cost) * (1 - 1e-9), rel=1e-14)
    less = GaussianPrivacy.of(1.0, 1e-3 - slack * (touched - 1) / touched).mu
    assert plan.mu < plan.privacy.per_round(less) * (1 - 1e-9)


def test_a_delta_that_pays_for_one_look_may_not_pay_for_four():
    size = make_plan().map.dimension + 1
    delta = 2 * 2 * 2 * (1 + math.e) * size * SLACK_PER_INTEGER  # enough for two looks
    for looks in ((1.0,), (0.8, 0.6)):
        make_plan(privacy=JointDP(1.0, delta * (1 + 1e-9)), looks=looks)
    with pytest.raises(InvalidArgument, match="finite precision of noise"):
        make_plan(privacy=JointDP(1.0, delta * (1 + 1e-9)), looks=FOUR_LOOKS)


def test_sums_have_room_for_every_round_that_is_looked_at_again():
    again, once = make_plan(expire_after=10), make_plan(expire_after=10, encoding="gram")
    assert again.most_rounds(first=1000, length=200) == 1210
    assert once.most_rounds(first=1000, length=200) == 210
    local = make_plan(expire_after=10, privacy=LocalDP(1.0, 1e-3))
    assert local.most_rounds(first=1000, length=200) == 200
