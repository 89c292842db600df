"""Plans from files on the command line: what they say, what flags change, what problems keep."""

import json

import pytest
from tests.support.places import ROOT

EXAMPLES = ROOT / "docs/examples"
DOSING, SETTINGS = EXAMPLES / "dosing.toml", EXAMPLES / "settings.toml"
SHORT = ["--rounds", 30, "--functions", 1, "--json"]


def forecast(run, *arguments):
    code, out, err = run("forecast", *arguments, *SHORT)
    assert code == 0, err
    return json.loads(out)


def simulate(run, *arguments):
    code, out, err = run("simulate", "--runs", 1, "--json", *arguments)
    assert code == 0, err
    return json.loads(out)


def test_a_forecast_takes_the_study_of_a_file(run):
    found = forecast(run, "--plan", DOSING)
    assert (found["plan"], found["problem"]) == (str(DOSING), None)
    assert (found["decisions"], found["delta"], found["rewards"]) == ("context", 1e-6, [0.0, 1.0])
    levels = [row["epsilon"] for row in found["rows"] if row["epsilon"]]
    assert levels == pytest.approx([0.8, 2.4, 8.0])  # shares of the plan's own


def test_flags_of_a_forecast_go_before_the_file(run):
    found = forecast(
        run, "--plan", DOSING, "--epsilon", 2, "--delta", 1e-4, "--rewards", -1, 1,
        "--set", "kernel.type=Linear", "--set", "name=other", "--candidates", 5,
    )  # fmt: skip
    assert (found["delta"], found["rewards"], found["rounds"]) == (1e-4, [-1.0, 1.0], 30)
    assert [row["epsilon"] for row in found["rows"] if row["epsilon"]] == [2.0]
    assert found["decisions"] == "candidates"
    assert found["features"] < forecast(run, "--plan", DOSING, "--epsilon", 2)["features"]


def test_the_horizon_of_the_file_holds_unless_a_flag_says_otherwise(run):
    code, out, _ = run(
        "forecast", "--plan", DOSING, "--set", "horizon=12", "--epsilon", 2, "--functions", 1,
        "--json",
    )  # fmt: skip
    assert (code, json.loads(out)["rounds"]) == (0, 12)


def test_a_plan_can_be_forecast_with_nobody_to_trust(run):
    joint = forecast(run, "--plan", DOSING, "--epsilon", 2)
    local = forecast(run, "--plan", DOSING, "--epsilon", 2, "--model", "local")
    assert (local["rows"][0]["encoding"], local["rows"][0]["mu"]) == ("codebook", None)
    assert joint["rows"][0]["mu"] > 0.0


def test_a_schedule_of_the_file_is_kept_in_either_model(run):
    for model in ("joint", "local"):
        found = forecast(
            run, "--plan", DOSING, "--epsilon", 2, "--model", model, "--set", "schedule.first=7"
        )
        assert found["rows"][0]["first_epoch"] == 7


def test_a_simulation_takes_settings_from_a_file(run):
    found = simulate(run, "--plan", SETTINGS, "--rounds", 40)
    assert (found["plan"], found["model"], found["rounds"]) == (str(SETTINGS), "joint", 40)
    assert (found["epsilon"], found["delta"], found["protect"]) == (1.0, 1e-6, "decisions")
    assert found["noise_std"] > 0


def test_flags_of_a_simulation_go_before_the_file(run):
    short = ["--plan", SETTINGS, "--set", "horizon=20"]
    assert simulate(run, *short)["rounds"] == 20
    changed = simulate(run, *short, "--epsilon", 4, "--delta", 1e-3, "--encoding", "gram")
    assert (changed["epsilon"], changed["delta"], changed["encoding"]) == (4.0, 1e-3, "gram")
    local = simulate(run, *short, "--model", "local")
    assert (local["model"], local["epsilon"]) == ("local", 1.0)
    none = simulate(run, *short, "--model", "none")
    assert (none["model"], none["epsilon"], none["noise_std"]) == ("none", None, 0.0)
    assert simulate(run, *short, "--model", "random")["features"] is None


def test_settings_go_before_what_the_problem_says_and_its_domain_stays(run):
    plain = simulate(run, "--rounds", 12)
    shorter = simulate(run, "--rounds", 12, "--set", "kernel.type=Linear")
    assert shorter["features"] == 3 < plain["features"]
    code, out, err = run("simulate", "--plan", DOSING, "--rounds", 12)
    assert (code, out) == (2, "")
    assert err == "discreet: domain: expected nothing, or what the problem has\n"


def test_a_prior_of_a_simulation_is_an_earlier_export(run, tmp_path):
    assert run("demo", "--rounds", 100, "--json")[0] == 0
    (tmp_path / "next.toml").write_text(
        "prior = { study = 'demo.json', public_data = true }\nhorizon = 15\n"
    )
    found = simulate(run, "--plan", "next.toml")
    assert found["rounds"] == 15
    assert "features" in found


def test_the_words_of_the_command_line_are_those_of_the_library():
    from typing import get_args

    from discreet.cli import choices
    from discreet.features import choose as features
    from discreet.privacy import budget, encodings, streams
    from discreet.simulation import play as simulation
    from discreet.simulation import problems

    pairs = [
        (choices.Model, simulation.Model),
        (choices.Protect, budget.Protect),
        (choices.EncodingChoice, encodings.EncodingChoice),
        (choices.Features, features.FeatureChoice),
        (choices.NoiseChoice, streams.NoiseChoice),
    ]
    for ours, theirs in pairs:
        assert get_args(ours) == get_args(theirs)
    assert tuple(problems.PROBLEMS) == choices.PROBLEMS
