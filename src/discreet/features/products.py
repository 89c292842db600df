"""phi(x) = products of functions of one coordinate each: the leading ones of a product kernel.

Under a law by which coordinates are independent, the eigenfunctions of a product of kernels are
the products of the factors' own, and so are the eigenvalues. A few dozen of them serve many
coordinates, at the cost of a few functions of one number each.
"""

from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats, Indices, Integers, as_rows, frozen
from discreet.errors import InvalidArgument
from discreet.features.fourier import FourierFeatures, Group, coefficients_of, one_group
from discreet.features.left_out import LeftOut


@dataclass(frozen=True, eq=False)
class NumberFactor:
    """Functions of a number: features of its column, turned by the columns of `rotation`.

    These are orthonormal, so the functions' squares add up to at most 1.
    """

    features: FourierFeatures
    rotation: Floats
    column: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rotation", _contraction(self.rotation))
        if self.features.inputs != 1 or len(self.rotation) != self.features.dimension:
            raise InvalidArgument("features", "of one input, as many as the rotation has rows")

    @property
    def columns(self) -> tuple[int, ...]:
        """Its one column."""
        return (self.column,)

    def __call__(self, x: Floats) -> Floats:
        """The functions at each row."""
        return _turned(self.features(x[:, [self.column]]), self.rotation)

    def slopes(self, x: Floats) -> Floats:
        """Their derivatives in the column."""
        return _turned(self.features.slopes(x[:, [self.column]]), self.rotation)


@dataclass(frozen=True, eq=False)
class CategoryFactor:
    """Functions of a category: a row of `table` for each, found by the nearest of `vertices`."""

    table: Floats
    vertices: Floats
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        table, vertices = np.array(self.table), np.array(self.vertices)
        columns = tuple(int(column) for column in self.columns)
        if vertices.shape != (len(table), len(columns)):
            raise InvalidArgument("vertices", f"{len(table)} rows of {len(columns)} numbers")
        if not np.square(table).sum(axis=1).max() <= 1.0:
            raise InvalidArgument("table", "rows of length at most 1")
        object.__setattr__(self, "table", frozen(table))
        object.__setattr__(self, "vertices", frozen(vertices))
        object.__setattr__(self, "columns", columns)

    def __call__(self, x: Floats) -> Floats:
        """The functions at each row."""
        own = x[:, list(self.columns)]
        nearest = np.zeros(len(own), dtype=np.intp)
        closest = np.full(len(own), np.inf)
        for number, vertex in enumerate(self.vertices):
            distances = np.square(own - vertex).sum(axis=1)
            nearest[distances < closest] = number
            closest = np.minimum(closest, distances)
        return self.table[nearest]

    def slopes(self, x: Floats) -> Floats | None:
        """None: between categories there is nothing."""
        return None


Factor = NumberFactor | CategoryFactor


@dataclass(frozen=True, eq=False)
class ProductFeatures(LeftOut):
    """phi_i(x) = prod over factors f of f's function number terms[i, f].

    The squares of all products add up to the product of the factors' sums of squares, at most 1:
    so do those of some products. `kept` is the share of the kernel's variance under the uniform law
    that they carry; the rest is left to the noise of rewards.

    >>> table = CategoryFactor(np.eye(2), np.array([[0.0], [1.0]]), (0,))
    >>> phi = ProductFeatures((table,), np.array([[0], [1]]), inputs=1, kept=1.0)
    >>> phi([[0.0], [1.0]])
    array([[1., 0.],
           [0., 1.]])
    """

    factors: tuple[Factor, ...]
    terms: Integers
    inputs: int
    kept: float

    def __post_init__(self) -> None:
        terms = np.array(self.terms, dtype=np.int64)
        if terms.ndim != 2 or terms.shape[1] != len(self.factors) or not terms.size:
            raise InvalidArgument("terms", "one number for each factor, in each row")
        sizes = [_functions(factor) for factor in self.factors]
        if terms.min() < 0 or (terms >= np.array(sizes)).any():
            raise InvalidArgument("terms", "numbers of functions that the factors have")
        if len(np.unique(terms, axis=0)) < len(terms):
            raise InvalidArgument("terms", "rows that differ: ||phi|| <= 1 rests on it")
        columns = [column for factor in self.factors for column in factor.columns]
        if len(set(columns)) < len(columns) or max(columns) >= self.inputs:
            raise InvalidArgument("factors", f"distinct columns below {self.inputs}", columns)
        object.__setattr__(self, "factors", tuple(self.factors))
        object.__setattr__(self, "terms", frozen(terms))
        object.__setattr__(self, "inputs", int(self.inputs))
        object.__setattr__(self, "kept", float(self.kept))

    @property
    def dimension(self) -> int:
        """The number of features m."""
        return len(self.terms)

    @property
    def groups(self) -> tuple[Group, ...]:
        """One group: all coordinates, all features."""
        return one_group(self.inputs, self.dimension)

    @cached_property
    def _picks(self) -> list[tuple[Factor, Integers]]:
        """The factors, with the function that each feature takes of them."""
        return list(zip(self.factors, self.terms.T, strict=True))

    def __call__(self, x: ArrayLike) -> Floats:
        """phi at each row of x: an n x m matrix."""
        return self.over(as_rows("x", x, self.inputs), range(self.inputs))

    def over(
        self, rows: Floats, columns: Container[int], some: Indices | slice = slice(None)
    ) -> Floats:
        """What the factors of these columns contribute to each feature, or to some of them."""
        features = np.ones((len(self.terms[some]), len(rows)))
        for factor, picked in self._picks:
            if factor.columns[0] in columns:
                features *= factor(rows).T[picked[some]]
        return np.ascontiguousarray(features.T)

    def gradient(self, x: ArrayLike, coefficients: ArrayLike) -> Floats:
        """d/dx of coefficients . phi(x), at each row: n x d; coefficients (m,) or (n, m)."""
        rows = as_rows("x", x, self.inputs)
        c = coefficients_of(coefficients, len(rows), self.dimension)
        values = [factor(rows).T[picked] for factor, picked in self._picks]
        # Of all other factors: the product of those before each one and of those after it.
        before = [np.ascontiguousarray(c.T) * np.ones(len(rows))]
        for value in values[:-1]:
            before.append(before[-1] * value)
        slopes, after = np.zeros_like(rows), np.ones_like(before[0])
        for number, (factor, picked) in reversed(list(enumerate(self._picks))):
            if (own := factor.slopes(rows)) is not None:
                others = before[number] * after
                slopes[:, factor.columns[0]] = np.sum(others * own.T[picked], axis=0)
            after *= values[number]
        return slopes


def _functions(factor: Factor) -> int:
    return (factor.rotation if isinstance(factor, NumberFactor) else factor.table).shape[1]


def _turned(phi: Floats, rotation: Floats) -> Floats:
    """phi @ rotation, column by column: a row's last bits do not depend on the rows beside it."""
    columns = np.ascontiguousarray(phi.T)
    total = rotation[0][:, None] * columns[0]
    for column, turn in zip(columns[1:], rotation[1:], strict=True):
        total += turn[:, None] * column
    return total.T


def _contraction(rotation: Floats) -> Floats:
    """A matrix that makes no vector longer, beyond rounding."""
    found = np.array(rotation, dtype=np.float64)
    if found.ndim != 2 or np.linalg.norm(found, 2) > 1.0 + 1e-12:
        raise InvalidArgument("rotation", "orthonormal columns, or shorter ones")
    return frozen(found)
