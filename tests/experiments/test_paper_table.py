"""The table of the paper's algorithm: complete, what the code plays, and read right."""

import pytest
from tests.support.places import ROOT

from discreet.experiments.contenders import Played, Trial, play
from discreet.experiments.paper_table import (
    RUNS,
    SLOPES,
    WAYS,
    YARDSTICK,
    main,
    slopes,
    table,
    trials,
)
from discreet.experiments.sweep import job_of, read_runs, write_runs

DATA = ROOT / "docs/data/paper-table.csv"


def _rows(ways=("tree",), epsilons=(0.1, 1.0, 10.0), runs=3):
    return [
        Played("synthetic", way, e, 0.1, 10, 0, run, (1 + run) * e**-0.5, "")
        for way in ways
        for e in epsilons
        for run in range(runs)
    ]


def test_no_trial_is_asked_for_twice_and_only_slopes_have_three_levels():
    wanted = list(trials())
    assert len(set(wanted)) == len(wanted) == RUNS * (2 * (len(WAYS) + 1) + len(SLOPES))
    assert {t.way for t in wanted if t.epsilon == 10.0} == set(SLOPES)


def test_the_committed_table_holds_runs_of_the_command_and_none_twice():
    jobs = [job_of(Trial, row) for row in read_runs(Played, DATA)]
    assert len(set(jobs)) == len(jobs)
    assert set(jobs) <= set(trials())


def test_the_committed_uniform_play_is_what_the_code_plays():
    """To the printed digits: its floating point is the same everywhere. Others: see the page."""
    row = next(row for row in read_runs(Played, DATA) if row.way == YARDSTICK and row.run == 0)
    assert row.regret == pytest.approx(play(job_of(Trial, row)).regret, abs=1e-3)


def test_a_table_shows_every_way_with_its_error_and_number_of_runs():
    lines = table(_rows(("tree", "ours"), (1.0,)))
    assert lines[2:] == ["| tree | 2 ± 1 (3) |", "| ours | 2 ± 1 (3) |"]


def test_a_slope_is_that_of_the_logarithms():
    assert "| tree | -0.50 ± 0.00 (3) |" in slopes(_rows())
    assert len(slopes(_rows(epsilons=(1.0,)))) == 2


def test_the_command_prints_what_a_finished_file_holds(tmp_path, capsys):
    wanted = [Played(**vars(t), regret=1.0 + t.run, curve="") for t in trials(2)]
    write_runs(Played, tmp_path / "t.csv", wanted)
    main([str(tmp_path / "t.csv"), "--runs", "2"])
    assert "| BLT, as proven | 2 ± 0 (2) | 2 ± 0 (2) | 2 ± 0 (2) |" in capsys.readouterr().out
