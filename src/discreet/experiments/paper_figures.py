"""The figures of `discreet reproduce`: a column wide, and readable there without colour."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.experiments.contenders import Played
from discreet.experiments.growth import THEORY, Growth
from discreet.experiments.kernel_errors import Measured
from discreet.experiments.paper import (
    BEYOND,
    CHANGES,
    COMPARED,
    FUNCTIONS,
    LEVELS,
    NAMES,
    PUBLISHED,
    STEPS,
    YARDSTICK,
)
from discreet.experiments.tables import cell_of, level_of
from discreet.experiments.trust import MODELS
from discreet.experiments.trust import PROBLEMS as TRUST_PROBLEMS
from discreet.simulation.play import standard_error

MARKERS = "osD^vP"
#: A column of a paper, in inches, and letters that are read there.
WIDTH = 3.4
SMALL = {
    "font.size": 7,
    "axes.titlesize": 7.5,
    "legend.fontsize": 7,
    "lines.linewidth": 1.3,
    "svg.fonttype": "none",
    "svg.hashsalt": "discreet",
}
settings = cast(Any, matplotlib).rc_context
#: Blue, vermilion and grey of one luminance each, told apart by dash and marker too.
LOOKS: dict[str, dict[str, Any]] = {
    "as printed": {"color": "#8c8c8c", "linestyle": (0, (4, 1.5)), "marker": "s"},
    "tree": {"color": "#d55e00", "linestyle": "-.", "marker": "^"},
    "ours": {"color": "#00487a", "linestyle": "-", "marker": "o"},
    "published": {"color": "#000000", "linestyle": "", "marker": "x"},
}

TRUST_LOOKS: dict[str, dict[str, Any]] = {
    "none": {"color": "#8c8c8c", "linestyle": "-", "marker": "x"},
    "joint": {"color": "#00487a", "linestyle": "-", "marker": "o"},
    "shuffled": {"color": "#117733", "linestyle": "--", "marker": "D"},
    "local": {"color": "#d55e00", "linestyle": "-.", "marker": "^"},
    "random": {"color": "#000000", "linestyle": ":", "marker": ""},
}


def panels(rows: int, columns: int, height: float, **share: Any) -> tuple[Any, NDArray[Any]]:
    """A figure of a column's width, and its axes in reading order."""
    figure: Any = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns, squeeze=True, **share)).ravel()
    for each in axes:
        each.grid(alpha=0.25, linewidth=0.5)
    return figure, axes


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean of some runs and its standard error, 0 for one run."""
    found: Floats = np.array(values, dtype=np.float64)
    return float(found.mean()), standard_error(found) or 0.0


def curves_figure(rows: Sequence[Played], symbol: str, path: Path) -> None:
    """Regret so far over the rounds: a panel for each level, a line for each way."""
    private = [row for row in rows if math.isfinite(row.epsilon)]
    levels = sorted({level_of(row, symbol) for row in private})
    with settings(SMALL):
        figure, axes = panels(2, 2, 3.5, sharex=True, sharey=True)
        for each, level in zip(axes, levels, strict=True):
            own = [row for row in private if level_of(row, symbol) == level]
            for way in COMPARED:
                if runs := [row for row in own if row.way == way]:
                    draw_curve(each, runs, way)
            for way, name in BEYOND.items():
                draw_beyond(each, [r for r in rows if r.way == way and math.isinf(r.epsilon)], name)
            each.set_title(f"{'α' if symbol == 'epsilon' else 'β'} = {level:g}", pad=3)
            each.set_yscale("log")
            each.set_ylim(bottom=2.0)
            each.set_xlim(0, rows[0].rounds)
        label_outer(axes, 2, "round", "regret so far")
        figure.legend(*axes[0].get_legend_handles_labels(), ncols=2, loc="outside upper center",
                      frameon=False, handlelength=2.6, columnspacing=1.2)  # fmt: skip
        save_both(figure, path)


def draw_beyond(axes: Any, rows: Sequence[Played], name: str) -> None:
    """The mean over runs of what privacy does not touch: a dotted line."""
    rounds = sorted(rows[0].regrets) if rows else []
    mean = [np.mean([row.regrets[t] for row in rows]) for t in rounds]
    colour = "#000000" if name == YARDSTICK else "#00487a"
    axes.plot(rounds, mean, linestyle=":", linewidth=0.9, color=colour, label=name)


def draw_curve(axes: Any, rows: Sequence[Played], way: str) -> None:
    """As `draw_runs`, with the look and the name of a way to play."""
    look = {key: LOOKS[way][key] for key in ("color", "linestyle", "marker")}
    draw_runs(axes, rows, look, NAMES[way])


def draw_runs(axes: Any, rows: Sequence[Played], look: Mapping[str, Any], name: str) -> None:
    """The mean over runs and, in a lighter band, its standard error to both sides."""
    rounds = sorted(rows[0].regrets)
    table = np.array([[row.regrets[t] for t in rounds] for row in rows])
    mean = table.mean(axis=0)
    error: Floats = np.array([standard_error(column) or 0.0 for column in table.T])
    axes.fill_between(
        rounds, np.maximum(mean - error, 0.1), mean + error, color=look["color"], alpha=0.25, lw=0
    )
    axes.plot(rounds, mean, label=name, markevery=(7, 8), markersize=3.5, **look)


def table_figure(rows: Sequence[Played], path: Path) -> None:
    """Regret against privacy for each function, with the paper's published numbers."""
    with settings(SMALL):
        figure, axes = panels(1, 3, 2.3, sharey=True)
        places = np.arange(len(LEVELS))
        for each, function in zip(axes, FUNCTIONS, strict=True):
            if uniform := cell_of(rows, function, YARDSTICK, math.inf):
                each.axhline(np.mean(uniform), color="#555555", linewidth=0.8, linestyle=":")
            for shift, way in zip((-0.12, 0.0, 0.12), COMPARED, strict=True):
                found = {
                    i: mean_and_error(cell)
                    for i, level in enumerate(LEVELS)
                    if (cell := cell_of(rows, function, way, level))
                }
                means = [value[0] for value in found.values()]
                errors = [value[1] for value in found.values()]
                each.errorbar(
                    [i + shift for i in found], means, yerr=errors, capsize=1.5, markersize=3.5,
                    label=NAMES[way], **LOOKS[way],
                )  # fmt: skip
            each.plot(
                places, [PUBLISHED[function][level] for level in LEVELS],
                label="paper's Table 1", markersize=4, **LOOKS["published"],
            )  # fmt: skip
            each.set_title(function, pad=3)
            each.set_xticks(places, ["∞" if math.isinf(x) else f"{x:g}" for x in LEVELS])
            each.set_yscale("log")
        axes[0].set_ylabel(f"regret after {rows[0].rounds:,} rounds")
        axes[1].set_xlabel("α (∞: not private)")
        figure.legend(*axes[0].get_legend_handles_labels(), ncols=2, loc="outside upper center",
                      frameon=False, handlelength=2.6, columnspacing=1.2)  # fmt: skip
        save_both(figure, path)


def ablation_figure(rows: Sequence[Played], path: Path, level: float = 1.0) -> None:
    """Regret after each step from the paper's algorithm to ours, at one level of privacy."""
    problems = list(dict.fromkeys(row.problem for row in rows))
    with settings(SMALL):
        figure, axes = panels(1, len(problems), 2.2, sharey=True)
        for each, problem in zip(axes, problems, strict=True):
            for place, step in enumerate(STEPS):
                cell = cell_of(rows, problem, step, level)
                if not cell:
                    continue
                mean, error = mean_and_error(cell)
                look = LOOKS.get(step, {"color": "#d55e00", "marker": "^"})
                each.plot(cell, [place] * len(cell), "|", color="#999999", markersize=4)
                each.errorbar(
                    mean, place, xerr=error, capsize=2, markersize=4,
                    color=look["color"], marker=look["marker"],
                )  # fmt: skip
            each.set_xscale("log")
            each.xaxis.set_major_locator(LogLocator())
            each.xaxis.set_major_formatter("{x:g}")
            each.xaxis.set_minor_formatter(NullFormatter())
            each.set_title(problem, pad=3)
            each.set_xlabel("regret")
        axes[0].set_yticks(range(len(STEPS)), [CHANGES[step] for step in STEPS])
        axes[0].invert_yaxis()
        save_both(figure, path)


def features_figure(rows: Sequence[Measured], path: Path) -> None:
    """Uniform kernel error against the number of features: proven, and found."""
    colours = {"hermite": "#d55e00", "grid": "#00487a", "random": "#8c8c8c"}
    with settings(SMALL):
        figure, (axes,) = panels(1, 1, 2.5)
        for (method, colour), marker in zip(colours.items(), MARKERS, strict=False):
            own = sorted((r.features, r.bound, r.measured) for r in rows if r.method == method)
            counts, bounds, measured = (np.array(column) for column in zip(*own, strict=True))
            axes.fill_between(counts, measured, bounds, color=colour, alpha=0.15, lw=0)
            axes.plot(counts, bounds, color=colour, linestyle=(0, (4, 1.5)), linewidth=1)
            axes.plot(counts, measured, color=colour, marker=marker, markersize=3.5, label=method)
        axes.plot([], [], color="#333333", linestyle=(0, (4, 1.5)), linewidth=1, label="proven")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(numticks=8))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set(xlabel="features m", ylabel="largest kernel error")
        axes.legend(frameon=False, loc="lower left")
        save_both(figure, path)


def growth_figure(found: Sequence[Growth], path: Path) -> None:
    """Regret against rounds, both in orders of magnitude, beside the slopes of the theory."""
    looks = ({"color": "#00487a", "marker": "o"}, {"color": "#d55e00", "marker": "s"})
    with settings(SMALL):
        figure, (axes,) = panels(1, 1, 2.6)
        for each, look in zip(found, looks, strict=True):
            axes.errorbar(
                each.rounds, each.mean, yerr=each.sem, capsize=2, markersize=3.5, **look,
                label=f"{each.model}: T^({each.exponent:.3f} ± {each.error:.3f})",
            )  # fmt: skip
            draw_slope(axes, each, THEORY[each.model])
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set(xlabel="rounds T", ylabel="regret")
        axes.set_xticks(found[0].rounds, [f"{n:,}" for n in found[0].rounds])
        axes.set_ylim(top=8.0 * max(each.mean[0] for each in found) * len(found[0].rounds))
        axes.legend(frameon=False, loc="upper left")
        save_both(figure, path)


def promise_figure(
    found: Sequence[Growth], promised: Mapping[str, Sequence[float]], path: Path
) -> None:
    """Regret against rounds for some ways to play, and dashed what is proven of them."""
    looks = [LOOKS["tree"], {"color": "#117733", "linestyle": "--", "marker": "D"}, LOOKS["ours"]]
    with settings(SMALL):
        figure, (axes,) = panels(1, 1, 2.9)
        for each, look in zip(found, looks, strict=True):
            axes.errorbar(
                each.rounds, each.mean, yerr=each.sem, capsize=2, markersize=3.5, **look,
                label=each.model,
            )  # fmt: skip
            if each.model in promised:
                axes.plot(each.rounds, promised[each.model], color=look["color"], linewidth=0.9,
                          linestyle=(0, (1, 1)), label=f"{each.model}, proven")  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set(xlabel="rounds T", ylabel="regret")
        axes.set_xticks(found[0].rounds, [f"{n:,}" for n in found[0].rounds])
        figure.legend(*axes.get_legend_handles_labels(), ncols=2, loc="outside upper center",
                      frameon=False, handlelength=2.6, columnspacing=1.2)  # fmt: skip
        save_both(figure, path)


def successor_figure(found: Mapping[str, Sequence[tuple[str, Growth]]], path: Path) -> None:
    """Regret against rounds on each problem; filled marks with a trusted party, hollow without."""
    looks = {
        **{way: LOOKS[way] for way in ("tree", "ours")},
        "elimination": {"color": "#117733", "linestyle": "--", "marker": "D"},
        "private covariance": {"color": "#aa4499", "linestyle": (0, (4, 1.5)), "marker": "s"},
        "private rewards": {"color": "#aa4499", "linestyle": ":", "marker": "v"},
        "private rewards, medians": {"color": "#999933", "linestyle": ":", "marker": "P"},
        "ours, local": {"color": "#00487a", "linestyle": ":", "marker": "o"},
    }
    with settings(SMALL):
        figure, axes = panels(2, 1, 4.6)
        for each, (problem, ways) in zip(axes, found.items(), strict=True):
            for way, growth in ways:
                hollow = {"markerfacecolor": "white"} if looks[way]["linestyle"] == ":" else {}
                each.errorbar(
                    growth.rounds, growth.mean, yerr=growth.sem, capsize=2, markersize=3.5,
                    label=growth.model, **looks[way], **hollow,
                )  # fmt: skip
            rounds = ways[0][1].rounds
            each.set_xscale("log", base=2)
            each.set_yscale("log")
            each.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
            each.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            each.yaxis.set_minor_formatter(NullFormatter())
            each.set(title=problem, xlabel="rounds T", ylabel="regret")
            each.set_xticks(rounds, [f"{n:,}" for n in rounds])
        figure.legend(*axes[0].get_legend_handles_labels(), ncols=2, loc="outside upper center",
                      frameon=False, handlelength=2.6, columnspacing=1.2)  # fmt: skip
        save_both(figure, path)


def trust_figure(rows: Sequence[Played], path: Path) -> None:
    """Regret so far over the rounds: a panel for each problem, a line for each who is trusted."""
    with settings(SMALL):
        figure, axes = panels(2, 2, 3.7)
        for each, problem in zip(axes, TRUST_PROBLEMS, strict=True):
            own = [row for row in rows if row.problem == problem]
            for model, name in MODELS.items():
                if runs := [row for row in own if row.way == model]:
                    draw_runs(each, runs, TRUST_LOOKS[model], name)
            each.set_title(problem, pad=3)
            each.set_yscale("log")
            each.set_xlim(0, rows[0].rounds)
        label_outer(axes, 2, "people", "regret so far")
        figure.legend(*axes[0].get_legend_handles_labels(), ncols=3, loc="outside upper center",
                      frameon=False, handlelength=2.6, columnspacing=1.2)  # fmt: skip
        save_both(figure, path)


def cost_figure(
    rounds: Sequence[int], costs: Floats, slope: tuple[float, float], path: Path
) -> None:
    """What privacy adds to regret at some T, each run and their mean, beside sqrt(T)."""
    mean, runs = costs.mean(axis=0), len(costs)
    with settings(SMALL):
        figure, (axes,) = panels(1, 1, 2.4)
        axes.plot(rounds, costs.T, color="#00487a", alpha=0.15, linewidth=0.6)
        axes.errorbar(
            rounds, mean, yerr=costs.std(axis=0, ddof=1) / math.sqrt(runs), capsize=2,
            markersize=3.5, label=f"measured: T^({slope[0]:.2f} ± {slope[1]:.2f})", **LOOKS["ours"],
        )  # fmt: skip
        root = mean[0] * np.sqrt(np.array(rounds) / rounds[0])
        axes.plot(
            rounds, root, color="#777777", linestyle=(0, (3, 3)), linewidth=0.8, label="T^0.5"
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set(xlabel="rounds T", ylabel="regret(ε = 1) − regret(none)")
        axes.legend(frameon=False, loc="upper left")
        save_both(figure, path)


def draw_slope(axes: Any, growth: Growth, exponent: float) -> None:
    """A line of this slope from the first point, with its name at the other end."""
    rounds: Floats = np.array(growth.rounds, dtype=np.float64)
    line: Floats = growth.mean[0] * (rounds / rounds[0]) ** exponent
    axes.plot(rounds, line, color="#777777", linestyle=(0, (3, 3)), linewidth=0.8)
    axes.annotate(
        f"T^{exponent:g}", xy=(rounds[-1], line[-1]), xytext=(0, 3), textcoords="offset points",
        ha="right", va="bottom", fontsize=7, color="#555555",
    )  # fmt: skip


def label_outer(axes: NDArray[Any], columns: int, x: str, y: str) -> None:
    """Names on the outer axes alone."""
    for i, each in enumerate(axes):
        if i >= len(axes) - columns:
            each.set_xlabel(x)
        if i % columns == 0:
            each.set_ylabel(y)


def save_both(figure: Any, path: Path) -> None:
    """As PNG and as SVG; the path has no ending."""
    for ending in (".png", ".svg"):
        save(figure, path.with_name(path.name + ending))


def save(figure: Any, path: Path) -> None:
    """Write a figure as a picture; the ending says which kind."""
    if not path.suffix:  # matplotlib would choose one, and another file
        raise InvalidArgument("figure", "a writable .png, .svg or .pdf", str(path))
    try:
        undated = {"Date": None} if path.suffix == ".svg" else {}  # the same bytes every time
        figure.savefig(path, dpi=150, metadata=undated)
    except (OSError, ValueError) as error:
        raise InvalidArgument("figure", f"a writable .png, .svg or .pdf ({error})") from None
