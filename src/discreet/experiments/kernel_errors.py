"""How many features a kernel error takes: quadrature, a grid, and random frequencies."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from discreet.features.choose import Method, choose, measured_error
from discreet.features.kernels import SquaredExponential

#: The synthetic problem in scaled coordinates: a disc of diameter 1, a quarter of it correlated.
LENGTHSCALE, WIDTHS, DIAMETER = 0.25, (1.0, 1.0), 1.0
#: Wanted errors: halves of halves; random frequencies reach only the first few.
HALVINGS, RANDOM_HALVINGS = 20, 4
#: No map has more features.
LIMIT = 8192
#: Pairs of points that are tried before the worst are searched from.
PAIRS = 20_000


@dataclass(frozen=True)
class Wanted:
    """A map of one method that promises this error."""

    method: Method
    error: float
    seed: int


@dataclass(frozen=True)
class Measured(Wanted):
    """What it takes: its number of features, the error proven and the largest one found."""

    features: int
    bound: float
    measured: float


def wanted(*, quick: bool, seed: int = 0) -> Iterator[Wanted]:
    """Every error that each method is asked for."""
    most: dict[Method, int]
    most = {"hermite": HALVINGS, "grid": HALVINGS, "random": RANDOM_HALVINGS}
    for method, last in most.items():
        for halvings in range(1, last + 1, 3 if quick and method != "random" else 1):
            yield Wanted(method, 0.5**halvings, seed)


def measure(job: Wanted) -> Measured:
    """The smallest map that promises the error, and the worst pair of points found for it.

    >>> found = measure(Wanted("grid", 0.5, 0))
    >>> found.measured <= found.bound <= 0.5
    True
    """
    kernel = SquaredExponential(LENGTHSCALE)
    chosen = choose(
        kernel,
        widths=WIDTHS,
        diameter=DIAMETER,
        error=job.error,
        method=job.method,
        limit=LIMIT,
        seed=job.seed,
    )
    found = measured_error(
        kernel,
        chosen,
        widths=WIDTHS,
        diameter=DIAMETER,
        rng=np.random.Generator(np.random.Philox(job.seed)),
        pairs=PAIRS,
    )
    return Measured(
        **asdict(job), features=chosen.dimension, bound=chosen.error_bound, measured=found
    )
