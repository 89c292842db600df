"""The best action for each person: as good as the search over the whole box, and nobody else's."""

import numpy as np
import pytest

from discreet import Additive, Box, Categorical, Integer, NonPrivate, Plan, SquaredExponential
from discreet.errors import Refused
from discreet.learning.personal import best_under, check_admits, in_turn
from discreet.learning.search import Score, maximise

DOMAINS = {
    "one dose": ({"dose": (0, 10), "age": (18, 90)}, SquaredExponential(0.25)),
    "two doses": ({"a": (0, 1), "b": (0, 1), "age": (18, 90)}, SquaredExponential(0.5)),
    "three doses": (
        {"a": (0, 1), "b": (0, 1), "c": (0, 1), "age": (18, 90)},
        Additive.over(SquaredExponential(0.3), 4),
    ),
    "arms": ({"arm": Categorical(("x", "y", "z")), "age": (18, 90)}, SquaredExponential(0.6)),
    "pills": ({"pills": Integer(0, 12), "age": (18, 90)}, SquaredExponential(0.3)),
}


def scored(name, optimism, **parts):
    coordinates, kernel = DOMAINS[name]
    box = Box(coordinates, context=["age"], **parts)
    plan = Plan(domain=box, privacy=NonPrivate(), kernel=kernel, kernel_error=0.1)
    return box, Score(plan.map, 0.3 * np.eye(plan.map.dimension), optimism)


def people(score, count=24):
    rng = np.random.Generator(np.random.Philox(7))
    return rng.standard_normal((count, score.features.dimension)), rng.random((count, 1))


@pytest.mark.parametrize("optimism", [0.0, 1.0])
@pytest.mark.parametrize("name", DOMAINS)
def test_it_loses_little_against_gradients_from_many_starts(name, optimism):
    box, score = scored(name, optimism)
    tilts, contexts = people(score)
    found, admitted = best_under(score, box, tilts, contexts)
    assert admitted.all()
    rows = zip(tilts[:, None], contexts, strict=True)
    careful = np.concatenate([maximise(score, box, tilt, context=each) for tilt, each in rows])
    loss = score.values(careful, tilts) - score.values(found, tilts)
    assert loss.mean() < 0.02  # scores have a standard deviation of about 1
    assert np.array_equal(found[:, box.context_columns], contexts)
    assert np.array_equal(box.snap(found), found)


@pytest.mark.parametrize("name", DOMAINS)
def test_nobody_elses_context_moves_an_action_by_a_bit(name):
    box, score = scored(name, 0.7)
    tilts, contexts = people(score, 9)
    together, _ = best_under(score, box, tilts, contexts)
    for i in range(9):
        alone, _ = best_under(score, box, tilts[[i]], contexts[[i]])
        assert alone.tobytes() == together[i].tobytes()
    backwards, _ = best_under(score, box, tilts[::-1], contexts[::-1])
    assert backwards[::-1].tobytes() == together.tobytes()


def test_a_predicate_is_kept_and_its_border_reached():
    box, score = scored("one dose", 0.0, feasible="dose <= 0.1 * age - 2")
    slope = score.features(np.array([[1.0, 0.5]])) - score.features(np.array([[0.0, 0.5]]))
    ages = (np.array([[19.0], [40.0], [80.0]]) - 18) / 72
    found, admitted = best_under(score, box, np.repeat(slope, 3, axis=0), ages)
    assert admitted.tolist() == [False, True, True]
    assert box.admits(found[1:]).all()
    assert 10 * found[1, 0] == pytest.approx(2.0, abs=0.02)
    with pytest.raises(Refused, match="no action satisfies"):
        check_admits(box, ages[0])
    check_admits(box, ages[1])


@pytest.mark.parametrize("tilt", [np.nan, np.inf, -np.inf, 0.0])
def test_scores_that_are_no_numbers_leave_an_admitted_action(tilt):
    box, score = scored("one dose", 0.0, feasible="dose <= 0.1 * age - 2")
    ages = (np.array([[20.01], [40.0], [80.0]]) - 18) / 72
    with np.errstate(all="ignore"):
        tilts = np.full((3, score.features.dimension), tilt)
        found, admitted = best_under(score, box, tilts, ages)
    assert admitted.all()
    assert box.admits(found).all()


def test_whom_no_row_of_a_menu_suits_gets_an_action_of_the_pool():
    box, _ = scored("one dose", 0.0, feasible="dose <= 0.1 * age - 2")
    ages = (np.array([[19.0], [40.0], [80.0]]) - 18) / 72
    menu = np.array([[0.5, 0.0]])
    found, admitted = in_turn(box, menu, np.arange(3), ages)
    assert admitted.tolist() == [False, True, True]
    assert box.admits(found[1:]).all()
    assert found[2, 0] == 0.5
    assert found[1].tobytes() == in_turn(box, menu, np.arange(1), ages[[1]])[0].tobytes()


def test_no_people_get_no_actions():
    box, score = scored("one dose", 0.0)
    found, admitted = best_under(score, box, np.empty((0, 3)), np.empty((0, 1)))
    assert (found.shape, admitted.shape) == ((0, 2), (0,))
