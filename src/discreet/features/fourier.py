"""x -> phi(x) of a rule: cosines and sines of public frequencies."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats, Integers, as_rows, frozen, remembered
from discreet.errors import InvalidArgument
from discreet.features.waves import wave_blocks, waves


class Group(NamedTuple):
    """The coordinates one term of a model looks at, and its slice of the features."""

    columns: tuple[int, ...]
    features: slice


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """phi(x) = (sqrt(w_i) cos(omega_i . x))_i, then (sqrt(w_i) sin(omega_i . x))_i.

    The weights sum to 1, so ||phi(x)|| = 1. A zero frequency may come first only; its sine is
    left out. Maps laid on a lattice also say so: frequencies = indices * spacing.

    >>> phi = FourierFeatures(np.array([[0.0], [2.0]]), np.array([0.5, 0.5]), error_bound=1.0)
    >>> phi.dimension, phi([[0.0]]).round(3)
    (3, array([[0.707, 0.707, 0.   ]]))
    """

    frequencies: Floats
    weights: Floats
    error_bound: float
    indices: Integers | None = None
    spacing: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        frequencies = as_rows("frequencies", self.frequencies)
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (len(frequencies),) or not bool(np.all(weights > 0.0)):
            raise InvalidArgument("weights", "one positive number per frequency")
        if abs(math.fsum(weights) - 1.0) > 1e-12:
            raise InvalidArgument("weights", "numbers that sum to 1", math.fsum(weights))
        if not bool(np.all(np.any(frequencies[1:], axis=1))):
            raise InvalidArgument("frequencies", "a zero frequency in the first row only")
        object.__setattr__(self, "frequencies", frozen(frequencies))
        object.__setattr__(self, "weights", frozen(weights))
        object.__setattr__(self, "error_bound", float(self.error_bound))
        self._check_lattice()

    def _check_lattice(self) -> None:
        if self.indices is None and self.spacing is None:
            return
        if self.indices is None or self.spacing is None:
            raise InvalidArgument("indices, spacing", "both, or neither")
        indices = np.array(self.indices, dtype=np.int64)
        spacing = tuple(float(step) for step in self.spacing)
        if not np.array_equal(indices * np.array(spacing), self.frequencies):
            raise InvalidArgument("frequencies", "exactly indices * spacing")
        object.__setattr__(self, "indices", frozen(indices))
        object.__setattr__(self, "spacing", spacing)

    @property
    def dimension(self) -> int:
        """The number of features m."""
        return 2 * len(self.weights) - self._zeros

    @property
    def inputs(self) -> int:
        """The number of coordinates d of a point."""
        return self.frequencies.shape[1]

    @property
    def groups(self) -> tuple[Group, ...]:
        """One group: all coordinates, all features."""
        return one_group(self.inputs, self.dimension)

    @cached_property
    def _zeros(self) -> int:
        return int(not np.any(self.frequencies[0]))

    @cached_property
    def _amplitudes(self) -> Floats:
        return np.sqrt(self.weights)

    @remembered
    def __call__(self, x: ArrayLike) -> Floats:
        """phi at each row of x: an n x m matrix."""
        return self._weighed(as_rows("x", x, self.inputs), self._amplitudes, turned=False)

    def slopes(self, x: ArrayLike) -> Floats:
        """d phi / dx at each row of x, where there is one coordinate: an n x m matrix.

        >>> FourierFeatures(np.array([[2.0]]), np.ones(1), error_bound=1.0).slopes([[0.0]])
        array([[-0.,  2.]])
        """
        if self.inputs != 1:
            raise InvalidArgument("slopes", "features of one coordinate", self.inputs)
        rows = as_rows("x", x, 1)
        return self._weighed(rows, self._amplitudes * self.frequencies[:, 0], turned=True)

    def _weighed(self, rows: Floats, weights: Floats, *, turned: bool) -> Floats:
        """Weighed cosines, then sines; `turned` by a quarter: -sines, then cosines."""
        count, zeros = len(self.weights), self._zeros
        features = np.empty((len(rows), 2 * count - zeros))
        for some, (cosines, sines) in wave_blocks(
            rows, self.frequencies, self.indices, self.spacing
        ):
            first, second = (-sines, cosines) if turned else (cosines, sines)
            features[some, :count] = (weights[:, None] * first).T
            features[some, count:] = (weights[:, None] * second)[zeros:].T
        return features

    def gradient(self, x: ArrayLike, coefficients: ArrayLike) -> Floats:
        """d/dx of coefficients . phi(x), at each row: n x d; coefficients (m,) or (n, m)."""
        rows = as_rows("x", x, self.inputs)
        c = coefficients_of(coefficients, len(rows), self.dimension)
        cosines, sines = waves(rows, self.frequencies, self.indices, self.spacing)
        count, zeros = len(self.weights), self._zeros
        slope = -c[:, :count] * sines
        slope[:, zeros:] += c[:, count:] * cosines[:, zeros:]
        return (slope * self._amplitudes) @ self.frequencies


def one_group(inputs: int, dimension: int) -> tuple[Group, ...]:
    """All coordinates, all features."""
    return (Group(tuple(range(inputs)), slice(0, dimension)),)


def coefficients_of(values: ArrayLike, rows: int, dimension: int) -> Floats:
    """Coefficients of the features, one list or one per point, as a matrix."""
    c = np.asarray(values, dtype=np.float64)
    if c.shape not in ((dimension,), (1, dimension), (rows, dimension)):
        raise InvalidArgument("coefficients", f"({dimension},) or ({rows}, {dimension})", c.shape)
    return c if c.ndim == 2 else c[None, :]
