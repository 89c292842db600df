"""Figures. Colours survive greyscale and colour blindness; every axis says what it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.simulation import Problem, Run
from discreet.study import Study

Floats = NDArray[np.float64]

#: Dark to light, so that order survives without colour; each with its own dash.
LINES: tuple[dict[str, Any], ...] = (
    {"color": "#999999", "linestyle": "--"},
    {"color": "#0072b2", "linestyle": "-"},
    {"color": "#d55e00", "linestyle": "-."},
)


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


def save(figure: Any, path: Path) -> None:
    """Write a figure as a picture; the ending says which kind."""
    if not path.suffix:  # matplotlib would choose one, and another file
        raise InvalidArgument("figure", "a writable .png, .svg or .pdf", str(path))
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise InvalidArgument("figure", f"a writable .png, .svg or .pdf ({error})") from None
