"""Sweeps: the same rows wherever they are played, and none lost or played twice."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from distributed import LocalCluster
from tests.support.places import TESTS

from discreet.errors import InvalidArgument
from discreet.experiments.contenders import Played, Trial, play
from discreet.experiments.sweep import append_run, read_runs, said, sweep, write_runs

HERE = TESTS / "support"
TRIALS = [
    Trial(problem, way, 1.0, 0.1, 40, 3, run)
    for run in range(2)
    for problem, way in (("synthetic", "ours"), ("synthetic", "tree"), ("camelback", "ours"))
]


@pytest.fixture(scope="module")
def swept():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))  # workers inherit the path
        import sweep_jobs

        yield sweep_jobs


@pytest.fixture(scope="module")
def cluster(swept):
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as found:
        yield found.scheduler_address


def counts(folder: Path) -> Counter[str]:
    return Counter((folder / "played").read_text().split())


def test_two_local_processes_play_what_one_does(tmp_path, swept):
    for workers in (1, 2):
        (tmp_path / str(workers)).mkdir()
        rows = sweep(
            swept.Toyed,
            tmp_path / str(workers) / "toys.csv",
            swept.jobs(tmp_path),
            swept.play,
            workers=workers,
        )
        assert [row.value for row in rows] == [swept.value_of(n) for n in range(8)]
    one, two = ((tmp_path / n / "toys.csv").read_bytes() for n in ("1", "2"))
    assert one == two


def test_a_cluster_of_two_worker_processes_equals_the_serial_run_bit_for_bit(tmp_path, cluster):
    here = sweep(Played, tmp_path / "here.csv", TRIALS, play)
    there = sweep(Played, tmp_path / "there.csv", TRIALS, play, cluster=cluster)
    assert here == there
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()


def test_killing_a_worker_loses_no_result(tmp_path, swept, cluster):
    path, wanted = tmp_path / "toys.csv", swept.jobs(tmp_path)
    rows = sweep(swept.Toyed, path, wanted, swept.play_and_die_once, cluster=cluster)
    assert (tmp_path / "died").exists()
    assert [row.value for row in rows] == [swept.value_of(n) for n in range(8)]
    assert read_runs(swept.Toyed, path) == rows


@pytest.mark.parametrize("where", ["here", "cluster"])
def test_a_killed_sweep_that_is_started_again_repeats_no_finished_run(
    tmp_path, swept, cluster, where
):
    address = cluster if where == "cluster" else ""
    search = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    with (tmp_path / "said").open("w") as file:  # a pipe would wait for the orphaned workers
        killed = subprocess.run(
            [sys.executable, str(HERE / "sweep_jobs.py"), str(tmp_path), address],
            env=os.environ | {"PYTHONPATH": search},
            stdout=file,
            stderr=file,
            check=False,
        )
    assert killed.returncode == -9, (tmp_path / "said").read_text()
    path, wanted = tmp_path / "toys.csv", swept.jobs(tmp_path)
    finished = read_runs(swept.Toyed, path)
    assert len(finished) == 3
    rows = sweep(swept.Toyed, path, wanted, swept.play)
    assert [row.value for row in rows] == [swept.value_of(n) for n in range(8)]
    played = counts(tmp_path)
    assert {played[str(row.number)] for row in finished} == {1}
    assert set(played) == {str(n) for n in range(8)}


def test_a_run_that_kills_every_worker_is_said_and_the_rest_is_kept(tmp_path, swept, cluster):
    wanted = swept.jobs(tmp_path)
    sweep(swept.Toyed, tmp_path / "toys.csv", wanted[:2], swept.play)
    with pytest.raises(InvalidArgument, match="workers that outlive a run"):
        sweep(swept.Toyed, tmp_path / "toys.csv", wanted[:3], swept.always_die, cluster=cluster)
    assert [row.number for row in read_runs(swept.Toyed, tmp_path / "toys.csv")] == [0, 1]


def test_a_line_that_was_cut_short_is_played_again(tmp_path, swept):
    path, wanted = tmp_path / "toys.csv", swept.jobs(tmp_path)
    whole = sweep(swept.Toyed, path, wanted, swept.play)
    path.write_bytes(path.read_bytes()[:-4])
    assert read_runs(swept.Toyed, path) == whole[:-1]
    assert sweep(swept.Toyed, path, wanted, swept.play) == whole
    assert counts(tmp_path)["7"] == 2
    assert read_runs(swept.Toyed, path) == whole


def test_an_appended_run_is_one_line_and_the_end_is_sorted(tmp_path, swept):
    path, (first, second, *_) = tmp_path / "toys.csv", swept.jobs(tmp_path)
    write_runs(swept.Toyed, path, [])
    append_run(path, swept.play(second))
    append_run(path, swept.play(first))
    assert [row.number for row in read_runs(swept.Toyed, path)] == [1, 0]
    sweep(swept.Toyed, path, swept.jobs(tmp_path)[:3], swept.play)
    assert [row.number for row in read_runs(swept.Toyed, path)] == [0, 1, 2]
    assert counts(tmp_path) == Counter({"0": 1, "1": 1, "2": 1})


def test_rows_known_from_elsewhere_are_taken_over_where_they_are_wanted(tmp_path, swept):
    wanted = swept.jobs(tmp_path)
    known = [swept.Toyed(str(tmp_path), number, 0.5) for number in (1, 7)]
    rows = sweep(swept.Toyed, tmp_path / "toys.csv", wanted[:3], swept.play, known=known)
    assert rows[1].value == 0.5
    assert set(counts(tmp_path)) == {"0", "2"}
    assert len(read_runs(swept.Toyed, tmp_path / "toys.csv")) == 3


def test_progress_is_said_on_the_error_stream(tmp_path, swept, capsys):
    sweep(swept.Toyed, tmp_path / "toys.csv", swept.jobs(tmp_path)[:1], swept.play, heard=said)
    heard = capsys.readouterr()
    assert heard.out == ""
    assert heard.err.startswith("1 runs to play\n1 of 1: Toyed(")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://"])
def test_a_cluster_that_is_not_there_is_refused_in_one_line(tmp_path, swept, address, monkeypatch):
    monkeypatch.setattr("discreet.experiments.sweep.PATIENCE", 0.2)
    with pytest.raises(InvalidArgument, match="cluster: expected the address") as caught:
        sweep(swept.Toyed, tmp_path / "t.csv", swept.jobs(tmp_path), swept.play, cluster=address)
    assert "\n" not in str(caught.value)
