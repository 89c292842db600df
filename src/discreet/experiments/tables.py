"""The tables of `discreet reproduce`, as Markdown."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from discreet.experiments.contenders import Played
from discreet.experiments.growth import FITTED, THEORY, Growth
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
from discreet.simulation.play import standard_error


def in_words(values: Sequence[float], digits: int = 0) -> str:
    """A mean and its standard error, where there are several values.

    >>> in_words([1.0, 3.0]), in_words([2.0])
    ('2 ± 1', '2')
    """
    error = standard_error(np.array(values))
    spread = "" if error is None else f" ± {error:.{digits}f}"
    return f"{np.mean(values):.{digits}f}{spread}"


def cell_of(rows: Sequence[Played], problem: str, way: str, level: float) -> list[float]:
    """The regrets of a cell; without noise the paper's algorithm is one, printed or exact."""
    if math.isinf(level) and way == "as printed":
        way = "tree"
    return [
        row.regret for row in rows if (row.problem, row.way, row.epsilon) == (problem, way, level)
    ]


def level_table(rows: Sequence[Played], symbol: str) -> list[str]:
    """Regret at the end for each way and level of epsilon or delta."""
    private = [row for row in rows if math.isfinite(row.epsilon)]
    levels = sorted({level_of(row, symbol) for row in private}, reverse=True)
    lines = head(["", *(f"{_greek(symbol)} = {level:g}" for level in levels)])
    for way in COMPARED:
        cells = [
            [row.regret for row in rows if row.way == way and level_of(row, symbol) == level]
            for level in levels
        ]
        lines.append(line([NAMES[way], *map(cell, cells)]))
    for way, name in BEYOND.items():
        same = cell([row.regret for row in rows if row.way == way and math.isinf(row.epsilon)])
        lines.append(line([name, *[same] * len(levels)]))
    return lines


def regret_table(rows: Sequence[Played]) -> list[str]:
    """The paper's table: its published numbers, its algorithm printed and exact, and ours."""
    uniform = [cell_of(rows, function, YARDSTICK, math.inf) for function in FUNCTIONS]
    lines = head(["α", "", *FUNCTIONS])
    lines.append(line(["", YARDSTICK, *map(cell, uniform)]))
    for level in LEVELS:
        label = "none" if math.isinf(level) else f"{level:g}"
        published = [f"{PUBLISHED[function][level]:.0f}" for function in FUNCTIONS]
        lines.append(line([label, "published", *published]))
        for way in COMPARED:
            cells = [cell_of(rows, function, way, level) for function in FUNCTIONS]
            lines.append(line([label, NAMES[way], *map(cell, cells)]))
    return lines


def ablation_table(rows: Sequence[Played]) -> list[str]:
    """Regret after each step from the paper's algorithm to ours."""
    problems = list(dict.fromkeys(row.problem for row in rows))
    levels = sorted({row.epsilon for row in rows}, reverse=True)
    columns = [(problem, level) for problem in problems for level in levels]
    lines = head(["", *(f"{problem}, ε = {level:g}" for problem, level in columns)])
    for step in STEPS:
        cells = [cell_of(rows, problem, step, level) for problem, level in columns]
        lines.append(line([CHANGES[step], *map(cell, cells)]))
    return lines


def feature_table(rows: Sequence[Measured]) -> list[str]:
    """Features that a wanted error takes by each method: proven and found errors beside."""
    methods = list(dict.fromkeys(row.method for row in rows))
    lines = head(["wanted error", *(f"{method}: m (proven; found)" for method in methods)])
    for error in sorted({row.error for row in rows}, reverse=True):
        found = {row.method: row for row in rows if row.error == error}
        cells = [
            f"{row.features} ({row.bound:.1e}; {row.measured:.1e})"
            if (row := found.get(method))
            else "–"
            for method in methods
        ]
        lines.append(line([f"{error:.1e}", *cells]))
    return lines


def growth_table(found: Sequence[Growth]) -> list[str]:
    """Regret after each octave, and the exponents."""
    rounds = found[0].rounds
    lines = head(["", *(f"T = {n:,}" for n in rounds), f"exponent, last {FITTED}", "theory"])
    for each in found:
        cells = [f"{m:.0f} ± {s:.0f}" for m, s in zip(each.mean, each.sem, strict=True)]
        exponent = f"{each.exponent:.3f} ± {each.error:.3f}"
        lines.append(line([each.model, *cells, exponent, f"{THEORY[each.model]:g}"]))
    return lines


def promise_table(found: Sequence[Growth], promised: Mapping[str, Sequence[float]]) -> list[str]:
    """Regret after each octave, the exponents, and below what is proven."""
    lines = head(["", *(f"T = {n:,}" for n in found[0].rounds), f"exponent, last {FITTED}"])
    for each in found:
        cells = [f"{m:.0f} ± {s:.0f}" for m, s in zip(each.mean, each.sem, strict=True)]
        lines.append(line([each.model, *cells, f"{each.exponent:.3f} ± {each.error:.3f}"]))
    for name, bounds in promised.items():
        lines.append(line([f"{name}: proven", *(f"{bound:.0f}" for bound in bounds), "0.5"]))
    return lines


def level_of(row: Played, symbol: str) -> float:
    """The paper's alpha or beta: our epsilon or delta."""
    return row.epsilon if symbol == "epsilon" else row.delta


def _greek(symbol: str) -> str:
    return "α" if symbol == "epsilon" else "β"


def cell(values: Sequence[float]) -> str:
    """Mean, error and, in brackets, the number of runs."""
    return f"{in_words(values)} ({len(values)})" if values else "–"


def head(names: Sequence[str]) -> list[str]:
    """The first two lines of a table."""
    return [line(names), "|" + "---|" * len(names)]


def line(cells: Sequence[str]) -> str:
    """One line of a table."""
    return "| " + " | ".join(cells) + " |"
