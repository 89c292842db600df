"""What each part of the default is worth, drawn: regret without it, beside regret with all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.figure import Figure

from discreet.experiments.paper_figures import SMALL, settings

#: Inches of a panel.
WIDTH, HEIGHT = 2.1, 2.6


@dataclass(frozen=True)
class Bar:
    """The mean regret of a way to play, and its standard error."""

    mean: float
    error: float


def draw_parts(panels: Mapping[str, Mapping[str, Bar]], path: Path) -> None:
    """A panel a problem, a bar a way to play; the line is the first one, which has all parts."""
    with settings(SMALL):
        figure = Figure(figsize=(1.6 + WIDTH * len(panels), HEIGHT), layout="constrained")
        axes = np.atleast_1d(np.asarray(figure.subplots(1, len(panels), sharey=True)))
        for axis, (title, bars) in zip(axes, panels.items(), strict=True):
            names: Sequence[str] = list(bars)
            means = [bar.mean for bar in bars.values()]
            errors = [bar.error for bar in bars.values()]
            shades = ["#00487a"] + ["#9dbcd4"] * (len(names) - 1)
            axis.barh(range(len(names)), means, xerr=errors, color=shades, height=0.7)
            axis.axvline(means[0], color="#00487a", linewidth=0.8, linestyle=":")
            axis.set_yticks(range(len(names)), names)
            axis.set_title(title)
            axis.set_xlabel("regret")
            axis.spines[["top", "right"]].set_visible(False)
        axes[0].invert_yaxis()
        cast(Any, figure).savefig(path, dpi=200)
