"""What is promised of the default: campaigns that go on, and a page that is what they found."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from discreet.experiments import default_checks
from discreet.experiments.default_checks import Cell, Found, lines, main, row_of, shares

DOCS = Path(__file__).parents[2] / "docs"


def test_a_campaign_is_played_once(tmp_path, monkeypatch, capsys):
    played = []

    def play(self, seed, run):
        played.append((self.name, seed, run))
        return None

    monkeypatch.setattr(Cell, "play", play)
    row = {"regret": 10.0, "late": 0.01, "covered": 1.0, "covered by the model alone": 0.0}
    monkeypatch.setattr(default_checks, "row_of", lambda run, number: row)
    command = ["coverage", "--runs", "2", "--seed", "5", "--problem", "arms"]
    command += ["--resume", str(tmp_path / "runs.jsonl")]
    main(command)
    once = capsys.readouterr().out
    assert len(played) == len(set(played)) == 4  # two levels, two runs
    main(command)
    assert capsys.readouterr().out == once
    assert len(played) == 4
    assert "arms, epsilon = 1, T = 2000, the default: 10 ± 0" in once
    assert "covered 100%; covered by the model alone 0%" in once


@pytest.mark.parametrize("number", [0, 2])
def test_a_run_is_judged_at_what_it_recommends(number):
    run = Cell("dosing-1", 8.0, 300).play(3, number)
    row = row_of(run, number)
    newcomer = np.random.Generator(np.random.Philox(number))
    (context,) = run.problem.decision_set(newcomer).values()
    best = run.study.best(context={"c1": context})
    truth = run.problem.mean(np.array([[best.action["dose"], context]]))[0]
    assert row["covered"] == (best.interval[0] <= truth <= best.interval[1])
    assert row["regret"] == run.regrets.sum()
    assert row["late"] == run.regrets[150:].mean()


def test_shares_of_uniform_play_have_their_error_and_the_worst():
    cells = [
        Found(
            Cell("arms", None, 500), ({"regret": 30.0, "late": 0.1}, {"regret": 50.0, "late": 0.1})
        ),
        Found(
            Cell("arms", 1.0, 500), ({"regret": 20.0, "late": 0.1}, {"regret": 40.0, "late": 0.1})
        ),
    ]
    # 30 +- 10 over 40 +- 10: the error is sqrt(10^2 + (0.75 10)^2) / 40
    assert list(shares(cells))[-1] == "| arms | 500 | 40 ± 10 | 0.75 ± 0.31 (1.00) |"


def test_parts_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(Cell, "play", lambda self, seed, run: self)
    row = {"regret": 10.0, "late": 0.01}
    monkeypatch.setattr(default_checks, "row_of", lambda run, number: row)
    main(["parts", "--runs", "2", "--figure", str(tmp_path / "parts.png")])
    assert (tmp_path / "parts.png").read_bytes().startswith(b"\x89PNG")


def test_only_parts_have_a_figure(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["arms", "--figure", str(tmp_path / "arms.png")])
    assert "give it to parts" in capsys.readouterr().err


def test_a_problem_that_a_check_has_not_is_named(capsys):
    with pytest.raises(SystemExit):
        main(["coverage", "--problem", "arm"])
    assert "coverage has arms, dosing-3, hartmann6, prior" in capsys.readouterr().err


def test_the_page_says_what_was_found_and_nothing_else(monkeypatch, tmp_path):
    def missing(self, seed, run):
        pytest.fail(f"not in the file: {self.name}, run {run}")

    monkeypatch.setattr(Cell, "play", missing)
    found = list[str]()
    runs_of = {"harm": 12, "coverage": 200, "arms": 24, "kernels": 24, "parts": 24}
    for check, runs in runs_of.items():
        file = shutil.copy(DOCS / "data" / f"default-{check}.jsonl", tmp_path)
        cells = default_checks.play(check, runs, 5501, Path(file))
        found += shares(cells) if check == "harm" else lines(cells)
    page = (DOCS / "experiments" / "default.md").read_text(encoding="utf-8")
    printed = page.replace("```text\n", "```").split("```")[1::2]
    shown = [line for block in printed for line in block.splitlines() if ": " in line]
    shown += [line for line in page.splitlines() if line.startswith("|")]
    assert sorted(shown) == sorted(found)
