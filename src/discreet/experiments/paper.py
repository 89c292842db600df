"""The paper's figures and table: what it published, and what is played for each of them.

Run by run, so that a sweep that is stopped early compares the same worlds.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product

from discreet.experiments.contenders import Trial

#: The paper's settings: its two figures, and its table.
ALPHAS, BETAS = (0.1, 0.5, 1.0, 10.0), (0.01, 0.1, 0.5, 0.99)
ALPHA, BETA = 1.0, 0.1
FIGURE_ROUNDS, TABLE_ROUNDS = 1024, 10_000
#: The paper's algorithm with its printed noise and calibrated exactly, and ours.
COMPARED = ("as printed", "tree", "ours")
YARDSTICK = "uniform play"
#: Ways without privacy that the figures show beside: the same at every level.
BEYOND = {"ours": "ours, not private", YARDSTICK: YARDSTICK}
FUNCTIONS = ("camelback", "styblinski-tang", "michalewicz")
LEVELS = (math.inf, 10.0, 1.0, 0.1)
#: Its Table 1: regret after 10,000 rounds, the mean of ten trials; infinity is no privacy. Its two
#: figures have no numbers in the text.
PUBLISHED: dict[str, dict[float, float]] = {
    "camelback": {math.inf: 519, 10.0: 775, 1.0: 1029, 0.1: 3324},
    "styblinski-tang": {math.inf: 885, 10.0: 1667, 1.0: 2680, 0.1: 4493},
    "michalewicz": {math.inf: 901, 10.0: 1558, 1.0: 2883, 0.1: 5002},
}
#: A step each from the paper's algorithm to the default.
STEPS = (
    "as printed",
    "tree",
    "BLT",
    "gram, fixed width",
    "fourier, fixed width",
    "fourier",
    "all directions",
    "one look",
    "ours",
)

#: Where people bring candidates, these are not possible: the gram is released.
BOX_STEPS = ("all directions", "one look")

#: What a way is called in figures and tables, and what each step changes.
NAMES = {"as printed": "as printed", "tree": "paper's, exact", "ours": "ours"}
CHANGES = {
    "as printed": "paper, as printed",
    "tree": "+ exact calibration",
    "BLT": "+ better noise (BLT)",
    "gram, fixed width": "+ epochs, updates",
    "fourier, fixed width": "+ Fourier encoding",
    "fourier": "+ residual width",
    "all directions": "+ public gram",
    "one look": "+ directions",
    "ours": "+ looking again: ours",
}


def alpha_trials(runs: int, rounds: int = FIGURE_ROUNDS, seed: int = 0) -> Iterator[Trial]:
    """Its first figure: alpha varies."""
    for run in range(runs):
        yield from _beyond(run, rounds, seed)
        for way, alpha in product(COMPARED, ALPHAS):
            yield Trial("synthetic", way, alpha, BETA, rounds, seed, run)


def beta_trials(runs: int, rounds: int = FIGURE_ROUNDS, seed: int = 0) -> Iterator[Trial]:
    """Its second figure: beta varies."""
    for run in range(runs):
        yield from _beyond(run, rounds, seed)
        for way, beta in product(COMPARED, BETAS):
            yield Trial("synthetic", way, ALPHA, beta, rounds, seed, run)


def _beyond(run: int, rounds: int, seed: int) -> Iterator[Trial]:
    for way in BEYOND:
        yield Trial("synthetic", way, math.inf, 0.0, rounds, seed, run)


def table_trials(
    runs: int, rounds: int = TABLE_ROUNDS, seed: int = 0, functions: Sequence[str] = FUNCTIONS
) -> Iterator[Trial]:
    """Its table; without noise the two variants of its algorithm are the same, and played once."""
    ways = (YARDSTICK, *COMPARED)
    for run, function, way, level in product(range(runs), functions, ways, LEVELS):
        if math.isfinite(level) and way != YARDSTICK:
            yield Trial(function, way, level, BETA, rounds, seed, run)
        elif math.isinf(level) and way != "as printed":
            yield Trial(function, way, level, 0.0, rounds, seed, run)


def ablation_trials(
    runs: int,
    rounds: tuple[int, int] = (FIGURE_ROUNDS, TABLE_ROUNDS),
    seed: int = 0,
    levels: Sequence[float] = LEVELS[1:],
) -> Iterator[Trial]:
    """One change at a time, on the synthetic problem and on camelback."""
    lengths = dict(zip(("synthetic", "camelback"), rounds, strict=True))
    for run, (problem, length), way, level in product(range(runs), lengths.items(), STEPS, levels):
        if problem == "camelback" or way not in BOX_STEPS:
            yield Trial(problem, way, level, BETA, length, seed, run)
