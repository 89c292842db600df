"""How regret grows with the number of rounds, with a trusted custodian and without one.

The synthetic problem at epsilon = 1 in both models. A default schedule does not depend on the
horizon, so one long study tells the regret after every shorter time. The growth of regret
R(T) ~ T^a is the least-squares slope of log R over the last octaves, R the mean over runs; its
error is the jackknife's, which leaves out one run at a time. The theory promises a = 1/2 for
joint and a = 3/4 for local privacy, up to logarithms (docs/errata.md).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.experiments.contenders import Played, Trial

EPSILON, DELTA = 1.0, 0.1
#: Regret is read after 2^10, ..., 2^15 rounds, and its exponent fitted over the last of these.
OCTAVES = tuple(range(10, 16))
FITTED = 4
#: The exponents that the theory promises, and the way that is played in each model.
THEORY: dict[str, float] = {"joint": 0.5, "local": 0.75}
WAY: dict[str, str] = {"joint": "ours", "local": "ours, local"}


@dataclass(frozen=True)
class Growth:
    """Mean regret over runs with its standard error, and the exponent with its own.

    `model` says whose: a model of privacy, or a way to play.
    """

    model: str
    rounds: tuple[int, ...]
    mean: tuple[float, ...]
    sem: tuple[float, ...]
    exponent: float
    error: float
    runs: int


def growth_trials(runs: int, octaves: Sequence[int] = OCTAVES, seed: int = 0) -> Iterator[Trial]:
    """Runs of both models, each as long as the last octave."""
    for run, way in product(range(runs), WAY.values()):
        yield Trial("synthetic", way, EPSILON, DELTA, 1 << octaves[-1], seed, run)


def growth_of(
    rows: Iterable[Played],
    model: str,
    *,
    octaves: Sequence[int] = OCTAVES,
    fitted: int = FITTED,
) -> Growth:
    """Means and exponent of one model; every run must tell its regret after every octave.

    >>> curve = "4:2.0 16:4.0 64:8.0"
    >>> rows = [Played("synthetic", "ours", 1, 0.1, 64, 0, run, 8.0, curve) for run in (0, 1)]
    >>> found = growth_of(rows, "joint", octaves=(2, 4, 6), fitted=2)
    >>> round(found.exponent, 6), round(found.error, 6), found.runs
    (0.5, 0.0, 2)
    """
    return growth_of_way(rows, WAY[model], model, octaves=octaves, fitted=fitted)


def growth_of_way(
    rows: Iterable[Played], way: str, label: str, *, octaves: Sequence[int], fitted: int = FITTED
) -> Growth:
    """Means and exponent of one way to play."""
    own, rounds = [row for row in rows if row.way == way], [1 << k for k in octaves]
    whole = all(row.regrets.keys() >= set(rounds) for row in own)
    if len(own) < 2 or not whole or len(rounds) < fitted:
        raise InvalidArgument("rows", f"two whole runs or more of {label}, {fitted} octaves each")
    table = np.array([[row.regrets[n] for n in rounds] for row in own])
    left_out = [_slope(rounds, np.delete(table, i, axis=0), fitted) for i in range(len(own))]
    spread = float(np.sum(np.square(np.array(left_out) - np.mean(left_out))))
    sem = table.std(axis=0, ddof=1) / np.sqrt(len(own))
    return Growth(
        model=label,
        rounds=tuple(rounds),
        mean=tuple(table.mean(axis=0).tolist()),
        sem=tuple(sem.tolist()),
        exponent=_slope(rounds, table, fitted),
        error=float(np.sqrt((len(own) - 1) / len(own) * spread)),
        runs=len(own),
    )


def _slope(rounds: Sequence[int], table: Floats, fitted: int) -> float:
    """The slope of log mean regret over the last octaves."""
    x: Floats = np.log(np.array(rounds[-fitted:], dtype=np.float64))
    y: Floats = np.log(table.mean(axis=0)[-fitted:])
    return float(np.dot(x - x.mean(), y) / np.sum(np.square(x - x.mean())))
