"""`discreet forecast`: whether people are enough is said first, and alone with --quick."""

import json

import pytest
from tests.support.places import ROOT

DOSING = ROOT / "docs/examples/dosing.toml"
SMALL = ["--dimension", 1, "--lengthscale", 0.4, "--rounds", 40, "--functions", 1]


def test_a_quick_forecast_says_who_is_enough_and_plays_nothing(run, tmp_path):
    code, out, err = run("forecast", "--plan", DOSING, "--epsilon", 0.8, "--epsilon", 8, "--quick")
    assert (code, err) == (0, "")
    assert out.startswith("At epsilon = 0.8 your 600 people are")
    assert "for everyone" in out
    assert "tell people apart by age" in out
    assert "regret" not in out
    assert list(tmp_path.iterdir()) == []


def test_the_quick_answer_comes_first_and_is_part_of_json(run):
    code, out, _ = run("forecast", *SMALL, "--epsilon", 1)
    assert (code, out.index("At epsilon = 1 your 40 people") < out.index("regret")) == (0, True)
    quick, whole = (
        json.loads(run("forecast", *SMALL, "--epsilon", 1, "--json", *o)[1])
        for o in (["--quick"], [])
    )
    assert quick["enough"] == whole["enough"]
    assert quick.keys() == {"plan", "problem", "enough"}
    assert quick["enough"]["rounds"] == 40
    assert quick["enough"]["sentences"][0] in out


@pytest.mark.parametrize("model", ["joint", "local", "shuffled"])
def test_every_model_has_a_quick_answer(run, model):
    options = ["--dimension", 1, "--rounds", 400, "--epsilon", 4, "--model", model]
    code, out, err = run("forecast", *options, "--quick", "--json")
    assert code == 0, err
    assert json.loads(out)["enough"]["needs"][0]["as_planned"] > 0


def test_a_wrong_quick_request_ends_with_one_line(run):
    code, out, err = run("forecast", "--plan", DOSING, "--epsilon", -1, "--quick")
    assert (code, out, err) == (
        2,
        "",
        "discreet: epsilons: expected a finite number above 0, got -1.0\n",
    )
