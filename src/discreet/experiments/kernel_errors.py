"""How many features a kernel error takes: quadrature, a grid, and random frequencies."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from discreet.arrays import Floats
from discreet.features.choose import Method, choose
from discreet.features.error_bounds import DifferenceSet
from discreet.features.kernels import Kernel, SquaredExponential
from discreet.features.maps import FeatureMap

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


def measured_error(
    kernel: Kernel,
    features: FeatureMap,
    *,
    widths: ArrayLike,
    diameter: float | None = None,
    rng: np.random.Generator,
    pairs: int = 100_000,
    starts: int = 16,
) -> float:
    """The largest |phi(x) . phi(y) - k(x, y)| found: random pairs, then ascent from the worst.

    The points lie in the box [0, widths], and in the ball of this diameter around its centre
    when the diameter is less than that of the box. Never more than the true maximum: a
    `features.error_bound` below this figure would be a bug.

    >>> from discreet.features.kernels import Linear
    >>> phi = choose(Linear(), widths=(1, 1))
    >>> measured_error(Linear(), phi, widths=(1, 1), rng=np.random.default_rng(0)) < 1e-12
    True
    """
    differences = DifferenceSet.of(widths, diameter)
    errors = _Errors(kernel, features, differences)
    draws = rng.uniform(-1.0, 1.0, (pairs, 2 * differences.dimension))
    draws[: pairs // 3] = np.sign(draws[: pairs // 3]) * np.abs(draws[: pairs // 3]) ** 0.1
    found = np.concatenate([errors(chunk) for chunk in np.array_split(draws, pairs // 10_000 + 1)])
    worst = np.argsort(found)[::-1][:starts]
    return max([float(found.max()), *(errors.ascend(draws[i]) for i in worst)])


@dataclass(frozen=True, eq=False)
class _Errors:
    """|phi(x) . phi(y) - k(x, y)| as a function of a pair in [-1, 1]^(2d)."""

    kernel: Kernel
    features: FeatureMap
    differences: DifferenceSet

    def __call__(self, pairs: Floats) -> Floats:
        d = self.differences.dimension
        x, y = self._place(pairs[:, :d]), self._place(pairs[:, d:])
        near = np.sum(self.features(x) * self.features(y), axis=1)
        return np.abs(near - self._exact(x, y))

    def _place(self, u: Floats) -> Floats:
        half = np.array(self.differences.widths) / 2.0
        offset = np.clip(u, -1.0, 1.0) * half
        radius = np.sqrt(np.sum(offset**2, axis=1, keepdims=True))
        shrink = np.minimum(1.0, self.differences.diameter / 2.0 / np.maximum(radius, 1e-300))
        return half + offset * shrink

    def _exact(self, x: Floats, y: Floats) -> Floats:
        values = [
            np.diagonal(self.kernel(x[i : i + 64], y[i : i + 64])) for i in range(0, len(x), 64)
        ]
        return np.concatenate(values)

    def ascend(self, start: Floats) -> float:
        """Climb from one pair (L-BFGS, central differences in one batch)."""
        scale = max(float(self(start[None, :])[0]), 1e-300)
        steps = 1e-5 * np.concatenate([np.eye(len(start)), -np.eye(len(start))])

        def objective(u: Floats) -> tuple[float, Floats]:
            values = self(np.vstack([u, u + steps])) / scale
            slopes = (values[1 : len(u) + 1] - values[len(u) + 1 :]) / 2e-5
            return -float(values[0]), -slopes

        bounds = [(-1.0, 1.0)] * len(start)
        result: Any = optimize.minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60}
        )
        return float(self(np.asarray(result.x)[None, :])[0])
