"""`discreet replay`: a table or one object, and a bar of shuffles."""

import csv
import json
import random

import pytest
from tests.support.places import ROOT

PLAN = ROOT / "docs" / "examples" / "replay.toml"


@pytest.fixture
def log(tmp_path):
    dice, path = random.Random(0), tmp_path / "log.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["age", "days", "propensity", "reward"])
        for _ in range(160):
            days = dice.choice((1, 2, 3, 4))
            rows.writerow([dice.choice((0, 1, 2)), days, 0.25, int(dice.random() < days / 4)])
    return path


@pytest.fixture
def plan(tmp_path):
    text = PLAN.read_text(encoding="utf-8").partition("[privacy]")[0]
    path = tmp_path / "plan.toml"
    path.write_text(text + '[privacy]\ntype = "NonPrivate"\n', encoding="utf-8")
    return path


def test_json_is_one_object_and_says_that_nothing_is_private(run, log, plan):
    arguments = ("replay", "--plan", plan, log, "--shuffles", 2, "--rounds", 8, "--json")
    code, out, err = run(*arguments)
    assert code == 0
    assert out.count("\n") == 1
    found = json.loads(out)
    assert (found["rows"], found["rounds"], found["least_propensity"]) == (160, 8, 0.25)
    assert found["private"] is False
    assert found["plan"]["sem"] > 0
    assert (found["plan_file"], found["log"]) == (str(plan), str(log))
    assert "2/2 shuffles" in err
    assert json.loads(run(*arguments)[1]) == found


def test_the_table_sets_the_plan_beside_the_log_and_warns(run, log, plan):
    code, out, _ = run("replay", "--plan", plan, log, "--shuffles", 1, "--rounds", 8)
    assert code == 0
    text = " ".join(out.split())
    for words in ("the plan", "the log", "the plan minus the log"):
        assert words in text
    assert "8 of 400 rounds on a log of 160 rows" in text
    assert "Do not publish them" in text
