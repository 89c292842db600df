"""Figures. Colours survive greyscale and colour blindness; every axis says what it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.learning.study import Study
from discreet.simulation.forecast_report import Forecast, Outlook
from discreet.simulation.play import Problem, Run

#: Dark to light, so that order survives without colour; each with its own dash.
LINES: tuple[dict[str, Any], ...] = (
    {"color": "#999999", "linestyle": "--"},
    {"color": "#0072b2", "linestyle": "-"},
    {"color": "#d55e00", "linestyle": "-."},
)

#: From strong privacy to weak: one hue from dark to light, and a marker and dash each.
LEVELS: Any = LinearSegmentedColormap.from_list("levels", ["#3d1a00", "#d55e00", "#f7b267"])
MARKERS = "osD^vP"
DASHES = ("-", "-.", (0, (5, 1)), (0, (1, 1)))


def demo_figure(runs: Mapping[str, Run], path: Path) -> None:
    """Regret curves, and the true surface beside the learnt one, for a problem on a square."""
    figure: Any = Figure(figsize=(11, 3.6), layout="constrained")
    curves, truth, learnt = figure.subplots(1, 3)
    for (label, run), line in zip(runs.items(), LINES, strict=False):
        curves.plot(np.cumsum(run.regrets), label=label, linewidth=2, **line)
    label, run = list(runs.items())[-1]
    if run.study is not None:
        draw_surfaces(figure, truth, learnt, run.problem, run.study)
        learnt.set_title(f"Learnt: {label}")
    curves.set(xlabel="round", ylabel="cumulative regret", title="What learning costs")
    curves.set_yscale("symlog", linthresh=10)
    curves.grid(alpha=0.3)
    curves.legend(frameon=False, loc="lower right")
    save(figure, path)


def draw_surfaces(figure: Any, truth: Any, learnt: Any, problem: Problem, study: Study) -> None:
    """The true and the learnt mean over the first two coordinates, on one colour scale."""
    plan = study.plan
    side = np.linspace(0.0, 1.0, 101)
    scaled = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    natural = np.array([list(plan.domain.decode(point).values()) for point in scaled], dtype=float)
    low, high = plan.rewards
    true = np.clip(problem.mean(natural), low, high)
    found = np.clip(study.posterior.mean(scaled) * plan.half_width + plan.centre, low, high)
    levels = np.linspace(low, high, 16)
    x, y = natural[:, 0].reshape(101, 101), natural[:, 1].reshape(101, 101)
    for axes, values, title in ((truth, true, "The truth"), (learnt, found, "What was learnt")):
        image = axes.contourf(x, y, values.reshape(101, 101), levels=levels, cmap="cividis")
        axes.set(title=title, xlabel=plan.domain.names[0], aspect="equal")
    truth.set_ylabel(plan.domain.names[1])
    tried = np.concatenate([epoch.policy.menu for epoch in study.epochs])
    if len(tried):  # actions are public over the whole box only
        actions = [list(plan.domain.decode(point).values()) for point in tried]
        learnt.plot(*np.array(actions, dtype=float).T, ".k", markersize=2, label="actions tried")
        learnt.legend(loc="lower left", fontsize=8, framealpha=0.8)
    figure.colorbar(image, ax=[truth, learnt], label="mean reward (clipped)", shrink=0.85)


def forecast_figure(found: Forecast, path: Path) -> None:
    """How to choose epsilon: regret against it, and over the rounds."""
    figure: Any = Figure(figsize=(7.6, 4.0), layout="constrained")
    against, over = figure.subplots(1, 2)
    yardsticks = {found.uniform.label: LINES[0], found.not_private.label: LINES[1]}
    shades: Any = LEVELS(np.linspace(0.0, 1.0, max(len(found.private), 2)))
    lines = [
        {
            "color": shade,
            "marker": MARKERS[i % len(MARKERS)],
            "linestyle": DASHES[i % len(DASHES)],
        }
        for i, shade in enumerate(shades[: len(found.private)])
    ]
    draw_levels(against, found, lines, yardsticks)
    draw_curve(over, found.uniform, {**yardsticks[found.uniform.label], "marker": ""})
    for outlook, line in zip(found.private, lines, strict=True):
        draw_curve(over, outlook, line)
    draw_curve(over, found.not_private, {**yardsticks[found.not_private.label], "marker": ""})
    over.set(
        xlabel="round", ylabel="regret so far (reward units)", title="What each level costs",
        xlim=(0, found.rounds), ylim=(0, None),
    )  # fmt: skip
    over.legend(frameon=False, loc="upper left", fontsize=8)
    over.grid(alpha=0.3)
    figure.supxlabel(forecast_caption(found), fontsize=8, color="#444444")
    save(figure, path)


def draw_levels(
    axes: Any, found: Forecast, lines: list[dict[str, Any]], yardsticks: dict[str, dict[str, Any]]
) -> None:
    """Regret as a share of uniform play against epsilon, between the two yardsticks."""
    for outlook in (found.uniform, found.not_private):
        share, error = outlook.relative_regret.mean, outlook.relative_regret.sem or 0.0
        line = yardsticks[outlook.label]
        axes.axhline(100 * share, linewidth=1.5, **line)
        axes.axhspan(100 * (share - error), 100 * (share + error), color=line["color"], alpha=0.2)
        top = outlook is found.uniform  # each label where the levels are far from it
        axes.annotate(
            outlook.label, xy=(0.98 if top else 0.02, 100 * share), ha="right" if top else "left",
            xycoords=("axes fraction", "data"), xytext=(0, 3), textcoords="offset points",
            color="#555555" if top else line["color"], fontsize=8,
        )  # fmt: skip
    for outlook, line in zip(found.private, lines, strict=True):
        share = outlook.relative_regret
        axes.errorbar(
            outlook.epsilon, 100 * share.mean, yerr=100 * (share.sem or 0.0), capsize=4,
            markersize=7, color=line["color"], marker=line["marker"],
        )  # fmt: skip
    highest = max(o.relative_regret.mean + (o.relative_regret.sem or 0.0) for o in found.outlooks)
    axes.set(
        xlabel="epsilon (stronger privacy to the left)", ylabel="regret (% of uniform play)",
        title="What privacy costs", ylim=(0, max(112.0, 105.0 * highest)),
    )  # fmt: skip
    if found.private:
        levels = [outlook.epsilon or 1.0 for outlook in found.private]
        axes.set_xscale("log")
        axes.set_xlim(levels[0] / 2, levels[-1] * 2)
        axes.set_xticks(levels, [f"{level:g}" for level in levels])
        axes.set_xticks([], minor=True)
    axes.grid(alpha=0.3, axis="y")


def draw_curve(axes: Any, outlook: Outlook, line: dict[str, Any]) -> None:
    """The regret so far, and one standard error to both sides."""
    rounds: Floats = np.array(outlook.curve.round, dtype=np.float64)
    mean: Floats = np.array(outlook.curve.mean)
    error = np.array([sem or 0.0 for sem in outlook.curve.sem])
    axes.fill_between(rounds, mean - error, mean + error, color=line["color"], alpha=0.15, lw=0)
    marked = [int((rounds < share * rounds[-1]).sum()) for share in (0.25, 0.5, 0.75)]
    axes.plot(
        rounds, mean, label=outlook.label, linewidth=1.8, markersize=5, markevery=marked, **line
    )


def forecast_caption(found: Forecast) -> str:
    """The setting, in two lines."""
    delta = "" if found.delta is None else f"delta = {found.delta:g}, "
    low, high = found.rewards
    users = {
        "box": "any action is allowed",
        "context": "users bring a context",
        "candidates": "users bring candidates",
    }
    return (
        f"{delta}{found.rounds:,} rounds, rewards in [{low:g}, {high:g}], "
        f"{users[found.decisions]}. Simulated before any data on\n{found.functions} functions from "
        f"the plan's prior (seed {found.seed}). Bars and bands: ± 1 standard error."
    )


def save(figure: Any, path: Path) -> None:
    """Write a figure as a picture; the ending says which kind."""
    if not path.suffix:  # matplotlib would choose one, and another file
        raise InvalidArgument("figure", "a writable .png, .svg or .pdf", str(path))
    try:
        undated = {"Date": None} if path.suffix == ".svg" else {}  # the same bytes every time
        figure.savefig(path, dpi=150, metadata=undated)
    except (OSError, ValueError) as error:
        raise InvalidArgument("figure", f"a writable .png, .svg or .pdf ({error})") from None
