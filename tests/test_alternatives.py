"""The table of alternatives: every way plays the same worlds, and nothing is played twice."""

import pytest

from discreet.budget import JointDP
from discreet.experiments.alternatives import (
    OURS,
    PREFIX,
    WIDE,
    Cell,
    Result,
    cells,
    play,
    run,
    table,
)
from discreet.experiments.problems import find_problem
from discreet.experiments.runs import read_runs
from discreet.simulation import Setting, simulate


def test_no_run_is_asked_for_twice():
    wanted = list(cells(seed=1, runs=3))
    assert len(set(wanted)) == len(wanted)
    assert {cell.way for cell in wanted} == {*OURS, *PREFIX, WIDE}


@pytest.mark.parametrize("way", [*OURS, *PREFIX, WIDE])
def test_every_way_plays(way):
    found = play(Cell("synthetic", way, 1.0, 60, seed=3, run=0))
    assert 0.0 < found.regret < 60.0
    assert play(Cell("synthetic", way, 1.0, 60, seed=3, run=0)) == found


def test_ours_is_what_simulate_plays_and_a_fixed_width_leaves_no_trace():
    setting = Setting("joint", 300, privacy=JointDP(1.0, 0.1))
    regret = float(simulate(find_problem("camelback"), setting, seed=3).regrets.sum())
    wide = play(Cell("camelback", WIDE, 1.0, 300, seed=3, run=0)).regret
    ours = play(Cell("camelback", "ours", 1.0, 300, seed=3, run=0)).regret
    assert ours == pytest.approx(regret, abs=1e-3)
    assert wide != ours


def test_a_table_that_was_stopped_goes_on_where_it_was(tmp_path):
    path = tmp_path / "new" / "table.csv"
    wanted = [
        Cell("synthetic", way, 1.0, 40, seed=3, run=r)
        for way in ("ours", PREFIX[1])
        for r in (0, 1)
    ]
    run(path, wanted[:1], processes=1)
    begun = path.read_bytes()
    run(path, wanted, processes=1)
    assert path.read_bytes().startswith(begun)
    assert {(r.way, r.run) for r in read_runs(Result, path)} == {(c.way, c.run) for c in wanted}
    whole = path.read_bytes()
    run(path, wanted, processes=1)
    assert path.read_bytes() == whole
    assert table(read_runs(Result, path)).count("| synthetic | 40 | 1 |") == 2
