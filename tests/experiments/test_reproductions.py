"""What `discreet reproduce` makes: every file by name, resumed, from the committed runs."""

import importlib.util
import json
import math
import re
from pathlib import Path

import pytest
from tests.support.places import ROOT
from typer.testing import CliRunner

from discreet.cli.program import app, main
from discreet.experiments import paper_figures, reproductions
from discreet.experiments.contenders import Played
from discreet.experiments.kernel_errors import measure, wanted
from discreet.experiments.paper import BEYOND, CHANGES, COMPARED, STEPS
from discreet.experiments.paper import NAMES as LABELS
from discreet.experiments.reproductions import NAMES, REPRODUCTIONS, Scale, page_of, reproduce
from discreet.experiments.sweep import job_of, read_runs, write_runs

DOCS = ROOT / "docs" / "experiments"


def made_up(name, scale):
    """Rows of a name as a sweep would leave them, with invented regrets."""
    rows = []
    for job in REPRODUCTIONS[name].jobs(scale):
        if name == "features":
            continue
        cost = 5.0 + 40.0 / min(job.epsilon, 20.0) + job.run
        every = max(job.rounds // 32, 1)
        curve = " ".join(f"{t}:{cost * t:.3f}" for t in range(every, job.rounds + 1, every))
        rows.append(Played(**vars(job), regret=cost * job.rounds, curve=curve))
    return rows


@pytest.fixture
def drawn(monkeypatch):
    kept = {}
    monkeypatch.setattr(paper_figures, "save", lambda f, path: kept.setdefault(path.name, f))
    return kept


def figure_of(name, drawn, tmp_path):
    rows = made_up(name, Scale(quick=True))
    REPRODUCTIONS[name].draw(rows, tmp_path / name)
    return drawn[f"{name}.png"], rows


@pytest.mark.parametrize("name", [n for n in NAMES if n != "features"])
def test_every_name_writes_a_picture_in_two_forms_its_runs_and_a_page(name, tmp_path):
    write_runs(Played, tmp_path / f"{name}.csv", made_up(name, Scale(quick=True)))
    made = reproduce(name, tmp_path, Scale(quick=True), command="the command")
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / f"{name}.svg").read_bytes().startswith(b"<?xml")
    page = (tmp_path / f"{name}.md").read_text()
    assert page == made.page
    for word in ("`the command`", "T = ", "runs of each cell", "(seed ", "protect", "| "):
        assert word in page


def test_a_picture_is_the_same_bytes_every_time(tmp_path):
    rows = made_up("figure-alpha", Scale(quick=True))
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        REPRODUCTIONS["figure-alpha"].draw(rows, tmp_path / place / "f")
    for ending in ("svg", "png"):
        one, two = ((tmp_path / place / f"f.{ending}").read_bytes() for place in ("one", "two"))
        assert one == two


@pytest.mark.parametrize("name", [n for n in NAMES if n != "features"])
def test_figures_fit_a_column_and_name_their_axes(name, drawn, tmp_path):
    figure, _ = figure_of(name, drawn, tmp_path)
    assert figure.get_size_inches()[0] == 3.4
    assert any(axes.get_xlabel() for axes in figure.axes)
    assert any(axes.get_ylabel() or axes.get_yticklabels() for axes in figure.axes)


def test_a_panel_has_a_curve_and_a_band_for_every_way(drawn, tmp_path):
    figure, rows = figure_of("figure-alpha", drawn, tmp_path)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["α = 0.1", "α = 0.5", "α = 1", "α = 10"]
    for axes in figure.axes:
        labels = [line.get_label() for line in axes.get_lines()]
        assert labels == [*(LABELS[way] for way in COMPARED), *BEYOND.values()]
        assert len(axes.collections) == len(COMPARED)
    line = figure.axes[2].get_lines()[2]
    costs = [r.regret for r in rows if r.way == "ours" and r.epsilon == 1.0]
    assert line.get_ydata()[-1] == pytest.approx(sum(costs) / len(costs))


def test_lines_differ_without_colour():
    looks = [paper_figures.LOOKS[way] for way in COMPARED]
    assert len({str(look["linestyle"]) for look in looks}) == len(looks)
    assert len({look["marker"] for look in looks}) == len(looks)


def test_the_table_has_the_published_numbers_beside_every_cell():
    rows = made_up("table", Scale(runs=2))
    lines = REPRODUCTIONS["table"].table(rows)
    assert len(lines) == 2 + 1 + 4 * 4
    assert "| 1 | published | 1029 | 2680 | 2883 |" in lines
    none = [line.split("|")[3:] for line in lines if line.startswith("| none |")]
    assert none[1] == none[2]  # without noise there is nothing to print wrongly


def test_the_ablation_ends_where_the_library_is_and_skips_what_does_not_apply():
    lines = REPRODUCTIONS["ablation"].table(made_up("ablation", Scale(quick=True)))
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| {CHANGES[s]}" for s in STEPS]
    assert next(line for line in lines if "public gram" in line).split(" | ")[1] == "–"


def test_kernel_errors_lie_below_their_bounds_and_fall_with_more_features(drawn, tmp_path):
    rows = [measure(job) for job in wanted(quick=True) if job.error >= 0.06]
    assert all(row.measured <= row.bound <= row.error for row in rows)
    for method in ("hermite", "grid", "random"):
        own = sorted((r.features, r.bound) for r in rows if r.method == method)
        assert [bound for _, bound in own] == sorted((b for _, b in own), reverse=True)
    REPRODUCTIONS["features"].draw(rows, tmp_path / "features")
    assert drawn["features.png"].axes[0].get_ylabel() == "largest kernel error"
    assert len(REPRODUCTIONS["features"].table(rows)) >= 4


def test_runs_of_one_name_serve_the_others_of_a_folder(tmp_path, monkeypatch):
    write_runs(Played, tmp_path / "figure-alpha.csv", made_up("figure-alpha", Scale(quick=True)))
    known = reproductions.siblings("figure-beta", tmp_path)
    wanted_jobs = set(REPRODUCTIONS["figure-beta"].jobs(Scale(quick=True)))
    assert sum(job_of(type(next(iter(wanted_jobs))), row) in wanted_jobs for row in known) == 5 * 4


def test_quick_is_a_small_part_of_everything():
    for name in NAMES:
        full, quick = (REPRODUCTIONS[name].jobs(Scale(quick=q)) for q in (False, True))
        assert len(quick) < len(full)
    cost = [
        sum(getattr(job, "rounds", 0) for name in NAMES for job in REPRODUCTIONS[name].jobs(scale))
        for scale in (Scale(), Scale(quick=True))
    ]
    assert cost[1] < cost[0] / 20


# -- the command


def test_the_command_writes_all_it_says_and_goes_on_where_it_was(tmp_path):
    arguments = ["reproduce", "features", "--quick", "--out", str(tmp_path), "--workers", "1"]
    first = CliRunner().invoke(app, [*arguments, "--json"])
    assert first.exit_code == 0, first.output
    (made,) = json.loads(first.stdout)["reproduced"]
    assert all(Path(path).exists() for path in made["files"].values())
    csv = tmp_path / "features.csv"
    lines = csv.read_text().splitlines(keepends=True)
    marked = lines[-1].rsplit(",", 1)[0] + ",0.25\n"  # a run that is there is not played again
    csv.write_text("".join([*lines[:-1], marked]))
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0
    assert csv.read_text().endswith(marked)
    assert "--quick" in (tmp_path / "features.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "is not one of"),
        (["table", "--runs", "1"], "--runs"),
        (["table", "--workers", "0"], "--workers"),
        (["table", "--out", "/proc/nowhere"], "--out: expected a folder that can be written"),
        (["features", "--quick", "--cluster", "nonsense://"], "cluster: expected the address"),
    ],
)
def test_a_wrong_request_is_one_clear_line_and_exit_code_two(arguments, words, capsys, tmp_path):
    place = [] if "--out" in arguments else ["--out", str(tmp_path)]
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", *arguments, *place])
    assert stopped.value.code == 2
    found = capsys.readouterr().err
    assert words in found
    assert "Traceback" not in found


# -- the committed results


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate_experiments", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def alike(page, written):
    """Whether words are the same, and numbers but for what one machine rounds otherwise."""
    number = r"\d+(?:\.\d+)?"
    same = re.sub(number, "0", page) == re.sub(number, "0", written)
    pairs = zip(re.findall(number, page), re.findall(number, written), strict=False)
    return same and all(
        one == other or math.isclose(float(one), float(other), rel_tol=1e-4) for one, other in pairs
    )


def test_words_and_numbers_of_a_page_are_compared():
    assert alike("costs 57208 | 0.5", "costs 57209 | 0.5")
    assert not alike("costs 57208 | 0.5", "costs 57208 | 0.6")
    assert not alike("costs 57208", "is 57208")


def test_the_readme_has_the_numbers_of_the_committed_runs(generate):
    page = (DOCS / "README.md").read_text(encoding="utf-8")
    for name in (*NAMES, "paper-table"):
        assert page.count(f"<!-- written by generate.py: {name} -->") == 1
    assert alike(page, generate.written(page)), "run python docs/experiments/generate.py"


@pytest.mark.parametrize("name", NAMES)
def test_committed_results_are_of_the_committed_command(name, generate):
    rows = generate.rows_of(name)
    kind = REPRODUCTIONS[name].row
    assert len(rows) == len(read_runs(kind, DOCS / f"{name}.csv"))
    jobs = [job_of(type(REPRODUCTIONS[name].jobs(Scale())[0]), row) for row in rows]
    assert len(set(jobs)) == len(jobs)
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert alike(page, page_of(name, rows, generate.COMMAND.format(name)))
    for ending in ("png", "svg"):
        assert 0 < (DOCS / f"{name}.{ending}").stat().st_size < 150_000
    assert all(math.isfinite(getattr(row, "regret", 0.0)) for row in rows)
