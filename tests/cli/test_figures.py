"""Figures: they are written, show what they should, and fail clearly."""

from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure

from discreet import JointDP
from discreet.cli import figures
from discreet.errors import InvalidArgument
from discreet.simulation.play import Setting, simulate
from discreet.simulation.problems import find_problem


@cache
def runs():
    make = find_problem("camelback")
    models = {"uniform play": "random", "learning": "none"}
    return {
        label: simulate(make, Setting(model=model, rounds=100), seed=0)
        for label, model in models.items()
    }


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """The demo's figure, as drawn and before it was written."""
    kept = []
    monkeypatch.setattr(figures, "save", lambda figure, path: kept.append(figure))
    figures.demo_figure(runs(), tmp_path / "demo.png")
    return kept[0]


@pytest.mark.parametrize(
    ("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_ending_says_which_picture_is_written(tmp_path, ending, magic):
    path = tmp_path / f"demo.{ending}"
    figures.demo_figure(runs(), path)
    assert path.read_bytes().startswith(magic)


def test_a_curve_is_the_regret_so_far_of_its_run(drawn):
    curves = {line.get_label(): line.get_ydata() for line in drawn.axes[0].get_lines()}
    assert set(curves) == {"uniform play", "learning"}
    for label, run in runs().items():
        assert curves[label] == pytest.approx(np.cumsum(run.regrets))


def test_every_axis_says_what_it_is(drawn):
    curves, truth, learnt = drawn.axes[:3]
    assert (curves.get_xlabel(), curves.get_ylabel()) == ("round", "cumulative regret")
    assert (truth.get_xlabel(), truth.get_ylabel(), learnt.get_xlabel()) == ("x1", "x2", "x1")
    assert all(axes.get_title() for axes in (curves, truth, learnt))
    assert drawn.axes[3].get_ylabel() == "mean reward (clipped)"


def test_truth_and_learnt_surface_share_one_colour_scale(drawn):
    truth, learnt = (axes.collections[0] for axes in drawn.axes[1:3])
    assert truth.get_clim() == learnt.get_clim()
    assert truth.get_cmap().name == learnt.get_cmap().name


@pytest.mark.parametrize("name", ["camelback", "synthetic"])
def test_actions_are_drawn_only_where_they_are_public(name, tmp_path, monkeypatch):
    private = Setting(model="joint", rounds=60, privacy=JointDP(2.0, 1e-3))
    run = simulate(find_problem(name), private, seed=0)
    kept = []
    monkeypatch.setattr(figures, "save", lambda figure, path: kept.append(figure))
    figures.demo_figure({"private": run}, tmp_path / "demo.png")
    lines = kept[0].axes[2].get_lines()
    if name == "synthetic":  # users bring candidates
        assert not lines
        return
    menus = np.concatenate([epoch.policy.menu for epoch in run.study.epochs])
    domain = run.study.plan.domain
    expected = [list(domain.decode(point).values()) for point in menus]
    found = np.array(lines[0].get_data()).T
    assert found == pytest.approx(np.array(expected))


def test_lines_differ_without_colour():
    assert len({line["linestyle"] for line in figures.LINES}) == len(figures.LINES)


@pytest.mark.parametrize("name", ["missing/demo.png", "demo.nonsense", "demo", "."])
def test_a_place_that_cannot_be_written_is_refused(tmp_path, name):
    with pytest.raises(InvalidArgument, match=r"figure: expected a writable \.png, \.svg or"):
        figures.save(Figure(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
