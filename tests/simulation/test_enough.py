"""Whether people are enough: counts that follow from a plan, and the sentences about them."""

import json
import math
import time

import pytest
from tests.support.places import ROOT

from discreet import (
    Additive,
    Box,
    Categorical,
    JointDP,
    Learned,
    LocalDP,
    NonPrivate,
    Part,
    Plan,
    Product,
    ShuffledDP,
    SquaredExponential,
    Structured,
    read_plan,
)
from discreet.errors import InvalidArgument
from discreet.learning.next_epoch import learner
from discreet.simulation.enough import LADDER, PARTS, SHARED, enough, people_needed, shares_of
from discreet.simulation.enough_report import Enough, Goal, Need, listed, two_digits
from discreet.simulation.forecast import foreseen, rounds_to_signal
from discreet.simulation.without_contexts import restricted, sets_aside, without_contexts

DOSING = ROOT / "docs/examples/dosing.toml"
LINE = Box({"dose": (0, 10)})
CONTEXT = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
JOINT = JointDP(1.0, 1e-6)


def plan(domain=CONTEXT, **parts):
    return Plan(**({"domain": domain, "privacy": JOINT, "horizon": 600} | parts))


def counts(found, name="as_planned"):
    """As numbers: what is beyond the limit is infinitely many."""
    return [getattr(need, name) or math.inf for need in (*found.needs, found.not_private)]


# -- counts


@pytest.mark.parametrize(
    "parts",
    [
        {"domain": LINE},
        {},
        {"kernel": SquaredExponential(0.3)},
        {"decisions": "candidates"},
        {"domain": LINE, "privacy": LocalDP(1.0)},
        {"privacy": LocalDP(1.0)},
        {"privacy": LocalDP(1.0), "decisions": "candidates"},
        {"domain": LINE, "privacy": ShuffledDP(1.0, 1e-6)},
        {"privacy": ShuffledDP(1.0, 1e-6)},
        {"public_decisions": True, "privacy": JointDP(1.0, 1e-5, protect="rewards")},
    ],
    ids=str,
)
def test_more_epsilon_never_takes_more_people(parts):
    mixed = isinstance(parts.get("privacy"), ShuffledDP)  # its levels take longer to find
    found = enough(plan(**parts), (2, 8) if mixed else (0.5, 2, 8), rounds=1000)
    for name in ("as_planned", "without_contexts"):
        if getattr(found.not_private, name) is not None:
            needed = counts(found, name)
            assert needed == sorted(needed, reverse=True)
    assert counts(found)[0] > counts(found)[-1]
    assert counts(found)[-1] < math.inf


def test_one_action_for_all_takes_fewer_people_than_telling_them_apart():
    found = enough(plan(), (0.1, 1, 8))
    for need in found.needs:
        assert need.without_contexts < need.as_planned / 2


@pytest.mark.parametrize(
    ("domain", "privacy", "times"),
    [(LINE, JOINT, SHARED), (LINE, LocalDP(2.0), 1), (CONTEXT, JOINT, 1), (LINE, NonPrivate(), 1)],
    ids=str,
)
def test_the_people_needed_are_those_whose_release_explains_half(domain, privacy, times):
    given = plan(domain, kernel=SquaredExponential(0.3), privacy=privacy)
    assert shares_of(given) == times
    exact, _ = rounds_to_signal(given, 10_000)
    for begin in (3, 600, 5000):
        found = people_needed(given, begin, 100_000)
        assert exact <= found / times <= exact * (1 + 2 / PARTS) + 1
    assert foreseen(given, learner(given), found // times) >= 0.5
    assert people_needed(given, 3, times * exact - 1) is None


def test_a_level_that_is_found_is_enough_and_the_one_below_it_is_not():
    found = enough(plan(), (0.1, 8))
    level = found.epsilon_as_planned
    assert 0.1 < level < 8
    below = max(each for each in LADDER if each < level)
    few, many = counts(enough(plan(), (below, level)))[:2]
    assert many <= 600 * (1 + 2 / PARTS)
    assert few > 600


def test_the_strongest_level_is_the_first_where_all_are_enough():
    found = enough(plan(LINE), (1, 8))
    assert found.epsilon_as_planned == 1.0
    assert "strongest" not in " ".join(found.sentences)


def test_a_level_that_finite_precision_cannot_certify_is_not_proposed():
    with pytest.raises(InvalidArgument, match="finite precision"):
        plan(privacy=JointDP(10.0, 1e-6))
    found = enough(plan(), (0.1,), rounds=100)
    assert found.epsilon_as_planned is None
    assert "No level was found" in " ".join(found.sentences)


def test_no_batch_that_is_mixed_is_smaller_than_the_shuffler_allows():
    found = enough(plan(LINE, privacy=ShuffledDP(8.0, 1e-6, minimum=500)), (8.0,))
    assert counts(found)[0] == 500 > counts(found)[1]
    with pytest.raises(InvalidArgument, match="horizon: expected at least 500 asks"):
        enough(plan(LINE, privacy=ShuffledDP(8.0, 1e-6, minimum=500)), (8.0,), rounds=100)


def test_correlated_noise_is_counted_up_to_the_horizon():
    given = plan(LINE, kernel=SquaredExponential(0.3), noise="tree", horizon=400)
    found = enough(given, (0.05, 8.0))
    assert (found.needs[0].as_planned, counts(found)[1] <= 400) == (None, True)


@pytest.mark.slow
def test_three_levels_of_the_example_take_seconds():
    began = time.monotonic()
    found = enough(read_plan(DOSING), (0.8, 2.4, 8.0))
    assert time.monotonic() - began < 30  # ten on an idle machine
    assert len(found.needs) == 3


# -- the plan without contexts


def test_without_contexts_what_is_ours_to_choose_is_left():
    domain = Box(
        {"age": (18, 90), "dose": (0, 10), "arm": Categorical(("a", "b", "c"))},
        context=["age"],
        feasible="dose <= 5 or arm == 'a'",
    )
    alone = without_contexts(plan(domain, start={"dose": 3, "arm": "a"}, signal_std=0.2))
    assert (alone.domain.names, alone.decisions) == (("dose", "arm"), "box")
    assert alone.domain.feasible == domain.feasible
    assert (alone.start, alone.signal_std, alone.horizon) == ({"dose": 3.0, "arm": "a"}, 0.2, 600)
    assert isinstance(alone.kernel, Structured)


def test_a_rule_about_contexts_is_set_aside_and_that_is_said():
    domain = Box(CONTEXT.coordinates, context=["age"], feasible="dose * age <= 700")
    assert sets_aside(domain) == "dose * age <= 700"
    assert without_contexts(plan(domain)).domain.feasible is None
    words = enough(plan(domain), (8,)).sentences[-2]
    assert words.startswith("The rule 'dose * age <= 700' is about contexts, too")


def test_a_category_called_like_a_context_sets_no_rule_aside():
    coordinates = {"arm": Categorical(("age", "none")), "age": (18, 90)}
    assert sets_aside(Box(coordinates, context=["age"], feasible="arm == 'age'")) is None


@pytest.mark.parametrize(
    "parts",
    [
        {"domain": LINE},
        {"decisions": "candidates"},
        {"kernel": Product.over({"age": SquaredExponential(0.3)})},
    ],
    ids=["box", "candidates", "no effect"],
)
def test_some_plans_have_no_plan_without_contexts(parts):
    assert without_contexts(plan(**parts)) is None
    found = enough(plan(**parts), (8,))
    assert found.needs[0].without_contexts is found.epsilon_without_contexts is None
    assert "for everyone" not in " ".join(found.sentences)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (SquaredExponential(0.3), SquaredExponential(0.3)),
        (SquaredExponential((0.1, 0.2, 0.3)), SquaredExponential((0.1, 0.3))),
        (
            Learned((SquaredExponential((0.1, 0.2, 0.3)),)),
            Learned((SquaredExponential((0.1, 0.3)),)),
        ),
        (Learned(additive=True), Learned(additive=True)),
        (
            Additive(
                (
                    Part(SquaredExponential((0.1, 0.2)), (1, 2), 0.5),
                    Part(SquaredExponential(0.4), (1,), 0.5),
                )
            ),
            Additive((Part(SquaredExponential((0.2,)), (1,), 0.5),)),
        ),
        (
            Product.over({2: SquaredExponential(0.4), 1: SquaredExponential(0.5)}),
            Product.over({1: SquaredExponential(0.4)}),
        ),
        (Additive((Part(SquaredExponential(0.4), (1,), 0.5),)), None),
    ],
    ids=str,
)
def test_a_kernel_is_restricted_to_the_columns_that_stay(kernel, expected):
    assert restricted(kernel, (0, 2)) == expected


# -- sentences


def said(rounds, *needs, levels=(None, None), **goal):
    parts = {
        "decisions": "context", "actions": ("dose",), "contexts": ("age",), "begins": False,
        "holds_back": False, "rule": None, "visits": 1,
    }  # fmt: skip
    found = Enough(
        rounds=rounds,
        limit=100_000,
        goal=Goal(**parts | goal),
        needs=needs,
        not_private=Need(None, 30, 20),
        epsilon_as_planned=levels[0],
        epsilon_without_contexts=levels[1],
    )
    return found.sentences


def test_a_board_reads_who_is_enough_for_what():
    assert said(
        600, Need(0.1, None, 1400), Need(1.0, 1811, 180), Need(8.0, 424, 30), levels=(5.0, 0.3)
    ) == (
        "At epsilon = 0.1 your 600 people are not enough: to find one good dose for everyone about "
        "1,400 are needed, to tell people apart by age more than 100,000.",
        "At epsilon = 1 your 600 people are enough to find one good dose for everyone (about 180 "
        "are needed) but not to tell people apart by age (about 1,900).",
        "At epsilon = 8 your 600 people are enough to find one good dose for everyone (about 30 "
        "are needed) and to tell people apart by age (about 430).",
        "At epsilon = 0.1 noise would drown what people answer: they would get actions from the "
        "whole domain as if by chance, and the intervals of best() would be wide and say so.",
        "The strongest level found at which 600 people are enough to find one good dose for "
        "everyone is epsilon = 0.3.",
        "The strongest level found at which 600 people are enough to tell people apart by age is "
        "epsilon = 5.",
        "This follows from the plan alone: nobody's data was used.",
    )


def test_a_plan_without_contexts_is_about_one_goal():
    words = said(600, Need(1.0, 64, None), decisions="box", contexts=(), actions=("x", "y"))
    assert words[0] == (
        "At epsilon = 1 your 600 people are enough to find a good choice of x and y (about 64 are "
        "needed)."
    )
    listed_by_people = said(60, Need(1.0, 64, None), decisions="candidates", contexts=())
    assert "not enough to learn which of their options are good" in listed_by_people[0]
    assert not any("as if by chance" in each for each in listed_by_people)  # nearly enough


def test_a_hopeless_plan_is_called_so():
    words = " ".join(said(10, Need(0.1, None, 14_000), begins=True))
    assert "after the first actions that the plan names they would get actions from" in words
    cautious = " ".join(said(10, Need(0.1, None, 14_000), begins=True, holds_back=True))
    assert "they would get the first actions that the plan names until the end" in cautious
    assert "Even without privacy 10 people are not enough to find one good dose" in words
    assert "about 20 would be needed" in words


def test_rounds_are_counted_where_people_come_again():
    found = enough(plan(LINE, privacy=JointDP(1.0, 1e-6, rounds_per_user=3)), (1.0,))
    assert "your 600 rounds are" in found.sentences[0]
    assert found.needs[0].as_planned > enough(plan(LINE), (1.0,)).needs[0].as_planned


def test_numbers_are_rounded_up_and_names_are_listed():
    assert [two_digits(n) for n in (1, 10, 99, 101, 12_001)] == [1, 10, 99, 110, 13_000]
    assert listed(("a", "b")) == "a and b"


def test_the_answer_is_plain_data():
    plain = enough(plan(), (1.0,)).to_dict()
    assert json.loads(json.dumps(plain))["goal"]["contexts"] == ["age"]
    assert plain["sentences"][-1] == "This follows from the plan alone: nobody's data was used."


# -- wrong requests


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"epsilons": (1, 0)}, "epsilons: expected a finite number above 0"),
        ({"epsilons": "1"}, "epsilons: expected a sequence of positive numbers"),
        ({"delta": 2.0}, "delta: expected a probability below 1"),
        ({"rounds": 0}, "rounds: expected a whole number of at least 1"),
        ({"plan": plan(horizon=None)}, "rounds: expected a whole number: the plan has no horizon"),
        ({"plan": plan(privacy=NonPrivate())}, "delta: expected a probability: a plan without"),
        ({"plan": "a plan"}, "plan: expected a Plan"),
    ],
    ids=str,
)
def test_a_wrong_request_is_refused(arguments, words):
    with pytest.raises(InvalidArgument, match=words):
        enough(**({"plan": plan()} | arguments))


def test_without_levels_there_is_nothing_to_say_but_where_it_comes_from():
    assert len(enough(plan(privacy=NonPrivate()), ()).sentences) == 1
    assert len(enough(plan(privacy=NonPrivate()), (1,), delta=1e-6).needs) == 1
