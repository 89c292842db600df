"""The figures of commands: a study, a forecast, the demo. Every axis says what it is.

Colours survive greyscale and colour blindness. A study's figure says what its releases tell about
the function, and how surely. One coordinate: a line with its band. Two numbers: the surface, and
how uncertain it is; where one of them is a context, with the best action under each. More, or
categories: slices through the best action.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from discreet.arrays import Floats
from discreet.cli.console import in_words
from discreet.domain.coordinates import Categorical, Continuous, Coordinate, Integer
from discreet.experiments.paper_figures import MARKERS, save
from discreet.learning.next_epoch import margins
from discreet.learning.study import Study, Value
from discreet.privacy.budget import NonPrivate
from discreet.protocol.archive import Archive
from discreet.simulation.forecast_report import Forecast, Outlook
from discreet.simulation.people import Problem
from discreet.simulation.play import Run

#: Dark to light, so that order survives without colour; each with its own dash.
LINES: tuple[dict[str, Any], ...] = (
    {"color": "#999999", "linestyle": "--"},
    {"color": "#0072b2", "linestyle": "-"},
    {"color": "#d55e00", "linestyle": "-."},
)

#: From strong privacy to weak: one hue from dark to light, and a marker and dash each.
LEVELS: Any = LinearSegmentedColormap.from_list("levels", ["#3d1a00", "#d55e00", "#f7b267"])
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
    if plan.decisions == "box":  # elsewhere a menu does not say what people bring
        tried = np.concatenate([epoch.policy.menu for epoch in study.epochs])
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


# -- what a study learnt

LINE, MARK = {"color": "#0072b2", "linewidth": 1.8}, {"color": "#d55e00", "markersize": 7}
#: Points along a side, and how many slices fit a figure.
SIDE, SLICES = 101, 12


def study_figure(archive: Archive, context: dict[str, Value] | None, path: Path) -> None:
    """Draw what a study learnt, under a context where there is one."""
    study = archive.study
    domain = study.plan.domain
    kinds = [domain.coordinate(name) for name in domain.names]
    if len(kinds) == 2 and not any(isinstance(kind, Categorical) for kind in kinds):
        figure = draw_surface(study, context)
    else:
        figure = draw_slices(study, context)
    figure.supxlabel(caption(archive), fontsize=8, color="#444444")
    save(figure, path)


def caption(archive: Archive) -> str:
    """The setting, in two lines."""
    study = archive.study
    privacy, asks = study.plan.privacy, sum(release.asks for release in study.releases)
    delta = getattr(study.plan.promised, "delta", None) or 0.0
    promise = (
        "not private"
        if isinstance(privacy, NonPrivate)
        else f"{type(privacy).__name__}, epsilon = {privacy.epsilon:g} at delta = {delta:g}"
    )
    marked = "a simulation, not private: " if study.is_simulated else ""
    return (
        f"{study.plan.name}: {len(study.releases)} releases of {asks:,} asks ({marked}{promise}).\n"
        "The mean of what is believed after them; 95% credible intervals; cross or dot: the best."
    )


# -- one coordinate at a time


def draw_slices(study: Study, context: dict[str, Value] | None) -> Any:
    """A panel for each coordinate, the others as in the best action."""
    domain = study.plan.domain
    best = study.best(context=context).action
    names = domain.names[:SLICES]
    columns = min(len(names), 4)
    rows = math.ceil(len(names) / columns)
    figure: Any = Figure(
        figsize=(5.6 if columns == 1 else 2.7 * columns, 0.8 + 2.6 * rows), layout="constrained"
    )
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for axes, name in zip(panels.flat, names, strict=False):
        draw_slice(axes, study, best, name)
        axes.set_xlabel(f"{name} (context)" if name in domain.context else name)
    for axes in panels[:, 0]:
        axes.set_ylabel("mean reward")
    for axes in panels.flat[len(names) :]:
        axes.set_visible(False)
    if len(domain.names) > 1:
        more = f"; the first {SLICES} of {len(domain.names)}" if len(domain.names) > SLICES else ""
        words = in_words(best) if len(best) <= 4 else "the best action"
        figure.suptitle(f"Slices through {words}{more}", fontsize=10)
    return figure


def draw_slice(axes: Any, study: Study, best: dict[str, Value], name: str) -> None:
    """The mean along one coordinate, with its band or, where it is discrete, its bars."""
    domain, plan = study.plan.domain, study.plan
    coordinate = domain.coordinate(name)
    settings = scale_of(coordinate)
    points = np.repeat(domain.encode([best]), len(settings), axis=0)
    points[:, list(domain.columns(name))] = settings
    mean, spread = believed(study, points)
    numbers = coordinate.unscale(settings)
    if isinstance(coordinate, Continuous):
        axes.fill_between(numbers, mean - spread, mean + spread, color=LINE["color"], alpha=0.2)
        axes.plot(numbers, mean, **LINE)
    else:
        axes.errorbar(numbers, mean, yerr=spread, fmt="o", markersize=4, color=LINE["color"])
    here = coordinate.number(best[name])
    axes.plot(here, np.interp(here, numbers, mean), "X", **MARK)
    if isinstance(coordinate, Categorical):
        axes.set_xticks(numbers, coordinate.values)
        axes.set_xlim(-0.5, len(numbers) - 0.5)
    margin = 0.05 * (plan.rewards[1] - plan.rewards[0])
    axes.set_ylim(plan.rewards[0] - margin, plan.rewards[1] + margin)
    axes.grid(alpha=0.3)


# -- two numbers


def draw_surface(study: Study, context: dict[str, Value] | None) -> Any:
    """The mean over both coordinates, and half the width of its interval."""
    domain, plan = study.plan.domain, study.plan
    across, up = sorted(domain.names, key=lambda name: name not in domain.context)
    if not domain.has_context:
        across, up = domain.names
    sides = [scale_of(domain.coordinate(name)) for name in (across, up)]
    shape = len(sides[1]), len(sides[0])
    points = np.empty((shape[0] * shape[1], 2))
    points[:, domain.columns(across)] = np.tile(sides[0], (shape[0], 1))
    points[:, domain.columns(up)] = np.repeat(sides[1], shape[1], axis=0)
    mean, spread = (values.reshape(shape) for values in believed(study, points))
    x, y = (
        domain.coordinate(name).unscale(side)
        for name, side in zip((across, up), sides, strict=True)
    )
    figure: Any = Figure(figsize=(8.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, values, colours, words in (
        (left, np.clip(mean, *plan.rewards), "cividis", "mean reward"),
        (right, spread, "Greys", "95% interval: ±"),
    ):
        image = axes.pcolormesh(x, y, values, cmap=colours, shading="nearest", rasterized=True)
        figure.colorbar(image, ax=axes, label=words)
        axes.patch.set(hatch="///", edgecolor="#bbbbbb")  # where nothing is allowed
        axes.set(xlabel=f"{across} (context)" if domain.has_context else across)
    left.set(ylabel=up, title="What was learnt")
    right.set(title="How surely")
    mark_best(left, study, context, (across, up))
    mark_tried(right, study, (across, up))
    return figure


def mark_best(
    axes: Any, study: Study, context: dict[str, Value] | None, names: tuple[str, str]
) -> None:
    """The best action: a point, or where there is a context a line of them."""
    domain = study.plan.domain
    contexts: list[dict[str, Value] | None] = [None]
    if context is not None:
        (name,) = context
        coordinate = domain.coordinate(name)
        values = coordinate.unscale(scale_of(coordinate, side=25)).tolist()
        contexts = [{name: coordinate.value(value)} for value in values]
    actions = [study.best(context=each).action for each in contexts]
    x, y = ([action[name] for action in actions] for name in names)
    shape = "X" if context is None else "o"
    axes.plot(x, y, shape, markeredgecolor="white", linestyle="none", **MARK, label="best")
    axes.legend(loc="lower left", fontsize=8, framealpha=0.8)


def mark_tried(axes: Any, study: Study, names: tuple[str, str]) -> None:
    """The actions of released epochs, where they are public: elsewhere people bring something."""
    if study.plan.decisions != "box":
        return
    domain = study.plan.domain
    released = study.epochs[: len(study.releases)]
    menus = [domain.decode(point) for epoch in released for point in epoch.policy.menu]
    if menus:
        x, y = ([action[name] for action in menus] for name in names)
        axes.plot(x, y, ".", color="#d55e00", markersize=3, label="actions tried")
        axes.legend(loc="lower left", fontsize=8, framealpha=0.8)


# -- what is believed


def scale_of(coordinate: Coordinate, side: int = SIDE) -> Floats:
    """The scaled values to draw a coordinate at: all there are, or evenly spaced ones."""
    if isinstance(coordinate, Categorical):
        return coordinate.scale(np.arange(coordinate.count, dtype=np.float64))
    if isinstance(coordinate, Integer) and coordinate.count <= side:
        return coordinate.scale(np.arange(coordinate.low, coordinate.high + 1, dtype=np.float64))
    return np.linspace(0.0, 1.0, side)[:, None]


def believed(study: Study, points: Floats) -> tuple[Floats, Floats]:
    """The mean at scaled points and half the width of its interval; nothing where none is allowed.

    Recommendation's interval, in units of rewards.
    """
    plan = study.plan
    allowed = plan.domain.admits(points)
    mean = study.posterior.mean(points) * plan.half_width + plan.centre
    spread = margins(study.belief, points) * plan.half_width
    return np.where(allowed, mean, np.nan), np.where(allowed, spread, np.nan)
