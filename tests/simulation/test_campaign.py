"""Campaigns go on where they stopped, and come to the same."""

import json

import pytest
from typer.testing import CliRunner

from discreet import Box, JointDP, Plan
from discreet.cli.program import app, main
from discreet.errors import InvalidArgument
from discreet.simulation import forecast as forecasts
from discreet.simulation import play
from discreet.simulation.campaign import Campaign

SETTINGS = {"seed": 0, "plan": "abc"}
SIMULATE = ["simulate", "--problem", "camelback", "--rounds", "60", "--runs", "4", "--json"]
FORECAST = ["forecast", "--dimension", "1", "--rounds", "60", "--functions", "2", "--json"]


def nothing_to_play():
    raise AssertionError("this run is finished")


def result_of(arguments):
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


# -- the file


def test_a_finished_run_is_not_played_again(tmp_path):
    path = tmp_path / "runs.jsonl"
    first = Campaign(path, SETTINGS)
    assert first.run("run 0", lambda: {"regret": 0.1 + 0.2, "curve": [1.5]}) == {
        "regret": 0.1 + 0.2,
        "curve": [1.5],
    }
    again = Campaign(path, SETTINGS)
    assert again.has("run 0")
    assert not again.has("run 1")
    assert again.run("run 0", nothing_to_play) == {"regret": 0.1 + 0.2, "curve": [1.5]}


def test_every_cut_of_the_file_keeps_whole_runs_and_no_half_ones(tmp_path):
    path = tmp_path / "runs.jsonl"
    campaign = Campaign(path, SETTINGS)
    for number in range(3):
        campaign.run(f"run {number}", lambda number=number: {"regret": float(number)})
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    for cut in range(head, len(whole)):
        path.write_bytes(whole[:cut])
        resumed = Campaign(path, SETTINGS)
        kept = whole[:cut].count(b"\n") - 1
        assert [resumed.has(f"run {n}") for n in range(3)] == [n < kept for n in range(3)]
        for number in range(kept, 3):
            resumed.run(f"run {number}", lambda number=number: {"regret": float(number)})
        assert path.read_bytes() == whole


def test_a_file_of_other_settings_is_refused_and_says_which(tmp_path):
    path = tmp_path / "runs.jsonl"
    Campaign(path, SETTINGS).run("run 0", lambda: {"regret": 1.0})
    before = path.read_bytes()
    with pytest.raises(InvalidArgument, match=r'resume: expected a file of these .*"seed": 0'):
        Campaign(path, SETTINGS | {"seed": 1})
    assert path.read_bytes() == before


@pytest.mark.parametrize("found", ["a,b\n1,2\n", "half a line", "{}\n", "[1]\n", '{"settings": 1'])
def test_any_other_file_is_refused_and_left_alone(tmp_path, found):
    path = tmp_path / "runs.jsonl"
    path.write_text(found)
    with pytest.raises(InvalidArgument, match="resume: expected a file"):
        Campaign(path, SETTINGS)
    assert path.read_text() == found


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_played(tmp_path):
    with pytest.raises(InvalidArgument, match="resume: expected a file that can be written"):
        Campaign(tmp_path / "nowhere" / "runs.jsonl", SETTINGS)
    with pytest.raises(InvalidArgument, match="resume"):
        Campaign(tmp_path, SETTINGS)


# -- the commands


def test_a_simulation_that_was_interrupted_goes_on_and_comes_to_the_same(tmp_path, monkeypatch):
    path = ["--resume", str(tmp_path / "runs.jsonl")]
    whole = result_of(SIMULATE)
    played, simulate = [], play.simulate

    def stopped(*arguments, run, **parts):
        if run == 2 and not played.count(2):
            played.append(2)
            raise KeyboardInterrupt
        played.append(run)
        return simulate(*arguments, run=run, **parts)

    monkeypatch.setattr(play, "simulate", stopped)
    with pytest.raises(SystemExit) as ended:
        main([*SIMULATE, *path])
    assert ended.value.code == 130
    resumed = result_of([*SIMULATE, *path])
    assert played == [0, 1, 2, 2, 3]
    for found in (whole, resumed):
        del found["seconds_per_round"]
    assert resumed == whole
    more = [{"4": "6"}.get(word, word) for word in SIMULATE]
    assert result_of([*more, *path])["runs"] == 6
    assert played == [0, 1, 2, 2, 3, 4, 5]


@pytest.mark.parametrize("change", [["--seed", "1"], ["--rounds", "61"], ["--set", "noise_std=1"]])
def test_a_simulation_refuses_the_file_of_another(tmp_path, change, capsys):
    path = ["--resume", str(tmp_path / "runs.jsonl")]
    result_of([*SIMULATE, *path])
    with pytest.raises(SystemExit) as ended:
        main([*SIMULATE, *change, *path])
    assert ended.value.code == 2
    assert "resume: expected a file of these settings" in capsys.readouterr().err


def test_a_forecast_that_was_interrupted_goes_on_and_comes_to_the_same(tmp_path, monkeypatch):
    figure = ["--figure", str(tmp_path / "f.png")]
    path = ["--resume", str(tmp_path / "runs.jsonl")]
    whole = result_of([*FORECAST, *figure])
    played, play_study = [], forecasts.play_study

    def stopped(*arguments, **parts):
        played.append(1)
        if len(played) == 4:
            raise KeyboardInterrupt
        return play_study(*arguments, **parts)

    monkeypatch.setattr(forecasts, "play_study", stopped)
    with pytest.raises(SystemExit) as ended:
        main([*FORECAST, *figure, *path])
    assert ended.value.code == 130
    assert result_of([*FORECAST, *figure, *path]) == whole
    assert len(played) == 1 + (3 + 1) * 2  # one was begun twice
    result_of([*FORECAST, *figure, *path, "--epsilon", "0.1", "--epsilon", "3"])
    assert len(played) == 1 + (3 + 1) * 2 + 2  # the new level alone


def test_a_forecast_counts_the_rounds_of_finished_studies_as_played(tmp_path):
    plan = Plan(domain=Box({"dose": (0, 10)}), privacy=JointDP(1.0, 1e-6), horizon=40)
    for _ in range(2):
        counted = []
        forecasts.forecast(
            plan, [1], functions=2, resume=tmp_path / "r.jsonl", advance=counted.append
        )
        assert sum(counted) == 3 * 2 * 40
