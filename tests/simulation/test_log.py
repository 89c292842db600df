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
    assert [log.action(position) for position in log.actions] == [
        {"arm": arm, "pills": pills} for arm in "ab" for pills in (1, 2)
    ]
    assert log.context(0) == {"age": 61.5}
    assert log.rewards.tolist() == [0.5, 1.0, 0.0, 0.25]
    turned = "\n".join(",".join(line.split(",")[::-1]) for line in GOOD.split())
    for text in (turned, "\ufeff" + GOOD.replace("\n", "\r\n"), GOOD.replace(",", " , ") + "\n\n"):
        other = read(tmp_path, text)
        assert other.actions.tolist() == log.actions.tolist()
        assert other.contexts == log.contexts


def test_columns_and_arrays_are_read_alike():
    log = Log.read(plan(DOSE), columns())
    arrays = {name: np.array(column) for name, column in columns().items()}
    assert Log.read(plan(DOSE), arrays).actions.tolist() == log.actions.tolist() == [0, 1, 0, 1]
    assert log.context(0) is None


def test_a_rule_leaves_out_the_actions_that_it_forbids():
    box = Box({"dose": Integer(0, 3)}, feasible="dose <= 1")
    log = Log.read(plan(box), columns(dose=[0, 1, 2, 3]))
    assert log.options == ((0.0,), (1.0,))
    assert log.outside == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a line of names and at least one row"),
        ("arm,pills,age,propensity,reward\n", "at least one row"),
        (GOOD.replace("propensity", "chance"), "a column for each of 'propensity'"),
        (GOOD.replace("reward", "reward,day").replace("\na", "\na,1"), "in every row"),
        (GOOD.replace("0.5\n", f"0.5,{SECRET}\n"), r"5 values in every row \(row 1\)"),
        (GOOD.replace("arm,", "arm,arm,"), "every column once"),
        (GOOD.replace("61.5", SECRET), r"age to be a finite number within .* \(row 1\)"),
        (GOOD.replace("61.5", f"x{SECRET}"), r"age to be a finite number \(row 1\)"),
        (GOOD.replace("0.25,1\n", "0.25,nan\n"), r"reward to be a finite number \(row 2\)"),
        (GOOD.replace("0.25,0\n", "-0.25,0\n"), r"propensity above 0 and at most 1 \(row 3\)"),
        (GOOD.replace("0.25,0\n", "1.25,0\n"), r"propensity above 0 and at most 1 \(row 3\)"),
        (GOOD.replace("0.25,0\n", ",0\n"), r"propensity to be a finite number \(row 3\)"),
        (GOOD.replace("b,2,", "b,1,"), "arm = b, pills = 2 is in none, so narrow the domain"),
        (GOOD.encode() + b"\xff", "a CSV file in UTF-8"),
        (GOOD + '"', "a CSV file in UTF-8"),
    ],
)
def test_a_bad_file_is_refused_without_its_values(tmp_path, text, words):
    with pytest.raises(InvalidArgument, match=words) as refused:
        read(tmp_path, text)
    assert SECRET not in str(refused.value)


def test_a_column_that_nobody_asked_for_is_named(tmp_path):
    text = "\n".join(f"{line},x" for line in GOOD.split())
    with pytest.raises(InvalidArgument, match="leave out 'x'"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (columns(dose=[0, 1]), "columns of the same length"),
        ({}, "at least one row"),
        (columns(reward="half"), "a sequence of values"),
        (columns(reward=[True, 0, 1, 0]), r"reward to be a finite number \(row 1\)"),
        (columns(reward=[10**400, 0, 1, 0]), r"reward to be a finite number \(row 1\)"),
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
        (Box({"dose": Integer(0, 200_000)}), {}, "at most 100,000 actions"),
        (Box({"reward": Integer(0, 1)}), {}, "without coordinates called propensity or reward"),
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
    assert Log.read(plan(DOSE), true).floor == 0.2
    for wrong in (np.full(2000, 0.5), np.where(dose == 1, 0.8, 0.2), true["propensity"] / 2):
        with pytest.raises(InvalidArgument, match="which chance does not explain"):
            Log.read(plan(DOSE), true | {"propensity": wrong})
