"""What is promised of the default: campaigns that go on, and a page that is what they found."""

import shutil
from pathlib import Path

import pytest

from discreet.experiments import default_checks
from discreet.experiments.default_checks import Cell, Found, lines, main, row_of

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


def test_a_run_is_judged_at_what_it_recommends():
    row = row_of(Cell("dosing-1", 8.0, 300).play(3, 0), 0)
    assert set(row) == {"regret", "late", "covered", "covered by the model alone"}
    assert 0.0 < row["regret"] < 300


def test_shares_of_uniform_play_are_said():
    cells = [
        Found(Cell("arms", None, 500), ({"regret": 40.0, "late": 0.1},)),
        Found(Cell("arms", 1.0, 500), ({"regret": 30.0, "late": 0.1},)),
    ]
    assert [line.endswith("of uniform play") for line in lines(cells)] == [True, True]
    assert "0.75 of uniform play" in list(lines(cells))[1]


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


@pytest.mark.parametrize(
    ("check", "runs", "problems"),
    [
        ("arms", 24, ()),
        ("harm", 2, ()),
        ("parts", 3, ()),
        ("coverage", 30, ("prior", "dosing-3")),
        ("coverage", 100, ("arms",)),
        ("coverage", 50, ("hartmann6",)),
    ],
)
def test_the_page_says_what_was_found(check, runs, problems, monkeypatch, tmp_path):
    def missing(self, seed, run):
        pytest.fail(f"not in the file: {self.name}, run {run}")

    monkeypatch.setattr(Cell, "play", missing)
    file = shutil.copy(DOCS / "data" / f"default-{check}.jsonl", tmp_path)
    page = (DOCS / "experiments" / "default.md").read_text(encoding="utf-8")
    shown = list(lines(default_checks.play(check, runs, 5501, Path(file), problems)))
    assert shown
    for line in shown:
        assert line in page
