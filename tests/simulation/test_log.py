"""Logs: what is read, and what is refused without repeating anybody's data."""

import numpy as np
import pytest

from discreet import Box, Categorical, Integer, NonPrivate, Plan
from discreet.errors import InvalidArgument
from discreet.simulation.log import Log

BOX = Box(
    {"arm": Categorical(("a", "b")), "pills": Integer(1, 2), "age": (18, 90)}, context=["age"]
)
GOOD = """arm,pills,age,propensity,reward
a,1,61.5,0.25,0.5
a,2,20,0.25,1
b,1,30,0.25,0
b,2,40,0.25,0.25
"""
SECRET = "123456"


def plan(domain=BOX, **parts):
    return Plan(domain=domain, privacy=NonPrivate(), **parts)


def read(tmp_path, text, given=None):
    path = tmp_path / "log.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Log.read(given or plan(), path)


def columns(**changes):
    doses = {"dose": [0, 1, 0, 1], "propensity": [0.5] * 4, "reward": [0.0, 1.0, 0.5, 0.5]}
    return doses | changes


DOSE = Box({"dose": Integer(0, 1)})


def test_a_file_is_read_by_the_names_of_the_plan_in_any_order(tmp_path):
    log = read(tmp_path, GOOD)
    assert [log.values(row, ("arm", "pills")) for row in range(4)] == [
        {"arm": arm, "pills": pills} for arm in "ab" for pills in (1, 2)
    ]
    assert log.values(0, ("age",)) == {"age": 61.5}
    assert log.rewards.tolist() == [0.5, 1.0, 0.0, 0.25]
    turned = "\n".join(",".join(line.split(",")[::-1]) for line in GOOD.split())
    more = "\n".join(f"{line},x" for line in GOOD.split())
    spaced = GOOD.replace(",", " , ") + "\n\n"
    for text in (turned, "\ufeff" + GOOD.replace("\n", "\r\n"), spaced, more):
        assert read(tmp_path, text).points.tolist() == log.points.tolist()


def test_columns_and_arrays_are_read_alike():
    log = Log.read(plan(DOSE), columns())
    arrays = {name: np.array(column) for name, column in columns().items()}
    assert Log.read(plan(DOSE), arrays).actions == log.actions
    assert len(log.tried) == 2


def test_actions_that_the_plan_does_not_have_are_told_apart():
    box = Box({"dose": Integer(0, 3)}, feasible="dose <= 1")
    log = Log.read(plan(box), columns(dose=[0, 1, 2, 7], propensity=[0.5, 0.4, 0.1, 0.1]))
    assert log.allowed.tolist() == [True, True, False, False]
    assert log.least == 0.4
    arms = Box({"arm": Categorical(("a", "b"))})
    given = columns(arm=["a", "b", "c", "a"])
    assert Log.read(plan(arms), given).allowed.tolist() == [True, True, False, True]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a line of names and at least one row"),
        ("arm,pills,age,propensity,reward\n", "at least one row"),
        (GOOD.replace("propensity", "chance"), "a column for each of 'propensity'"),
        (GOOD.replace("reward", "reward,day").replace("\na", "\na,1"), "in every row"),
        (GOOD.replace("0.5\n", f"0.5,{SECRET}\n"), r"5 values in every row \(row 0\)"),
        (GOOD.replace("arm,", "arm,arm,"), "every column once"),
        (GOOD.replace("61.5", SECRET), r"age: expected a finite number within .* \(row 0\)"),
        (GOOD.replace("61.5", f"x{SECRET}"), r"age: expected a finite number, .* \(row 0\)"),
        (GOOD.replace("0.25,1\n", "0.25,nan\n"), r"reward: expected a finite .* \(row 1\)"),
        (GOOD.replace("0.25,0\n", "-0.25,0\n"), r"above 0 and at most 1 \(row 2\)"),
        (GOOD.replace("0.25,0\n", "1.25,0\n"), r"above 0 and at most 1 \(row 2\)"),
        (GOOD.replace("0.25,0\n", ",0\n"), r"propensity: expected a finite number, .* \(row 2\)"),
        (GOOD.replace("\na", "\nc").replace("\nb", "\nc"), "some rows with an action of the plan"),
        (GOOD.encode() + b"\xff", "a CSV file in UTF-8"),
        (GOOD + '"', "a CSV file in UTF-8"),
    ],
)
def test_a_bad_file_is_refused_without_its_values(tmp_path, text, words):
    with pytest.raises(InvalidArgument, match=words) as refused:
        read(tmp_path, text)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (columns(dose=[0, 1]), "dose: expected 4 values, one a row"),
        ({}, "a column for each of 'dose', 'propensity', 'reward'"),
        (columns(reward=[]), "at least one row"),
        (columns(reward=3), "at least one row"),
        (columns(reward="half"), "reward: expected a list, an array or a column"),
        (columns(reward=[0, 10**400, 1, 0]), r"reward: expected a finite number, .* \(row 1\)"),
        ([1, 2], "the path of a CSV file, or a mapping"),
        ("no-such.csv", "a readable CSV file"),
    ],
)
def test_bad_columns_are_refused(given, words):
    with pytest.raises(InvalidArgument, match=words):
        Log.read(plan(DOSE), given)


@pytest.mark.parametrize(
    ("domain", "parts", "words"),
    [
        (Box({"dose": (0, 1)}), {}, "dose is Continuous: make it an Integer or a Categorical"),
        (DOSE, {"decisions": "candidates"}, "does not hold everyone's candidates"),
        (Box({"reward": Integer(0, 1)}), {}, "no coordinates called propensity or reward"),
    ],
)
def test_a_plan_that_no_log_can_answer_is_refused(domain, parts, words):
    with pytest.raises(InvalidArgument, match=words):
        Log.read(plan(domain, **parts), columns())
    with pytest.raises(InvalidArgument, match="a Plan"):
        Log.read("plan", columns())


def test_propensities_that_chance_does_not_explain_are_refused():
    rng = np.random.Generator(np.random.Philox(0))
    dose = rng.choice(2, 2000, p=[0.8, 0.2])
    true = columns(dose=dose, propensity=np.where(dose == 1, 0.2, 0.8), reward=dose * 1.0)
    assert Log.read(plan(DOSE), true).least == 0.2
    for wrong in (np.full(2000, 0.5), np.where(dose == 1, 0.8, 0.2), true["propensity"] / 2):
        with pytest.raises(InvalidArgument, match="propensity: expected the chance"):
            Log.read(plan(DOSE), true | {"propensity": wrong})
