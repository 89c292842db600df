"""x -> phi(x): every map there is; here the monomials of a polynomial, and sums over groups.

Every map has ||phi(x)|| <= 1 and states a uniform bound on |phi(x) . phi(y) - k(x, y)|
over the domain it was chosen for (`error_bound`). Maps are frozen public data.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from discreet import checks
from discreet.arrays import Floats, Integers, as_rows
from discreet.errors import InvalidArgument
from discreet.features.fourier import FourierFeatures, Group, coefficients_of, one_group
from discreet.features.kernels import Polynomial
from discreet.features.nystrom import NystromFeatures
from discreet.features.products import ProductFeatures


@dataclass(frozen=True)
class PolynomialFeatures:
    """The monomials of ((b^2 + z . z') / (b^2 + d))^degree, z = 2x - 1: exact, ||phi|| <= 1.

    By the multinomial theorem phi_a(x) = sqrt(degree! / (a_0! ... a_d!) / (b^2 + d)^degree)
    b^a_0 z_1^a_1 ... z_d^a_d, over the exponents a that sum to the degree.

    >>> PolynomialFeatures(degree=2, bias=1.0, inputs=2).dimension
    6
    """

    degree: int
    bias: float
    inputs: int

    def __post_init__(self) -> None:
        kernel = Polynomial(self.degree, self.bias)
        kernel.check(self.inputs)
        object.__setattr__(self, "degree", kernel.degree)
        object.__setattr__(self, "bias", kernel.bias)
        object.__setattr__(self, "inputs", int(self.inputs))

    @property
    def dimension(self) -> int:
        """The number of features m."""
        return len(self.exponents)

    @property
    def error_bound(self) -> float:
        """Zero: the features are exact."""
        return 0.0

    @property
    def groups(self) -> tuple[Group, ...]:
        """One group: all coordinates, all features."""
        return one_group(self.inputs, self.dimension)

    @cached_property
    def exponents(self) -> Integers:
        """(m, 1 + d): those of the bias, then of each coordinate."""
        first = 0 if self.bias > 0.0 else 1  # without a bias its powers vanish
        chosen = itertools.combinations_with_replacement(range(first, self.inputs + 1), self.degree)
        table = [np.bincount(pick, minlength=self.inputs + 1) for pick in chosen]
        return np.array(table, dtype=np.int64)

    @cached_property
    def scale(self) -> Floats:
        """What each monomial is multiplied by."""
        total = (self.bias**2 + self.inputs) ** self.degree
        ways = [
            math.factorial(self.degree) / math.prod(math.factorial(int(a)) for a in exponents)
            for exponents in self.exponents
        ]
        biases = np.power(self.bias, self.exponents[:, 0].astype(np.float64))
        return np.sqrt(np.array(ways, dtype=np.float64) / total) * biases

    def _powers(self, x: Floats) -> Floats:
        """z_j^a for a = 0 .. degree: one table (degree + 1, n, d)."""
        z = 2.0 * x - 1.0
        powers = [np.ones_like(z)]
        for _ in range(self.degree):
            powers.append(powers[-1] * z)
        return np.stack(powers)

    def __call__(self, x: ArrayLike) -> Floats:
        """phi at each row of x: an n x m matrix."""
        powers = self._powers(as_rows("x", x, self.inputs))
        return self._monomials(powers, range(self.inputs))

    def _monomials(self, powers: Floats, coordinates: "range | list[int]") -> Floats:
        features = np.tile(self.scale, (powers.shape[1], 1))
        for j in coordinates:
            features *= powers[self.exponents[:, j + 1], :, j].T
        return features

    def gradient(self, x: ArrayLike, coefficients: ArrayLike) -> Floats:
        """d/dx of coefficients . phi(x), at each row: n x d; coefficients (m,) or (n, m)."""
        rows = as_rows("x", x, self.inputs)
        c = coefficients_of(coefficients, len(rows), self.dimension)
        powers = self._powers(rows)
        slopes = np.empty_like(rows)
        for j in range(self.inputs):
            a = self.exponents[:, j + 1]
            others = self._monomials(powers, [i for i in range(self.inputs) if i != j])
            inner = 2.0 * a * powers[np.maximum(a - 1, 0), :, j].T
            slopes[:, j] = np.sum(c * others * inner, axis=1)
        return slopes


SimpleFeatures = FourierFeatures | PolynomialFeatures | ProductFeatures | NystromFeatures


@dataclass(frozen=True, eq=False)
class FeaturePart:
    """One block of an additive map: sqrt(weight) times `features` of some columns."""

    features: SimpleFeatures
    columns: tuple[int, ...]
    weight: float

    def __post_init__(self) -> None:
        columns = tuple(int(column) for column in self.columns)
        if len(columns) != self.features.inputs:
            raise InvalidArgument("columns", f"{self.features.inputs} column numbers", columns)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "weight", checks.number("weight", self.weight, above=0.0))


@dataclass(frozen=True, eq=False)
class AdditiveFeatures:
    """phi(x) = (sqrt(weight_g) phi_g(x_g))_g, the blocks one after the other.

    Inner products add up: the error is at most sum_g weight_g error_g.

    >>> linear = PolynomialFeatures(1, 1.0, 1)
    >>> phi = AdditiveFeatures((FeaturePart(linear, (1,), 0.5),), inputs=2)
    >>> phi.groups
    (Group(columns=(1,), features=slice(0, 2, None)),)
    """

    parts: tuple[FeaturePart, ...]
    inputs: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        object.__setattr__(self, "inputs", int(self.inputs))
        if not self.parts or max(max(part.columns) for part in self.parts) >= self.inputs:
            raise InvalidArgument("parts", f"one or more, on columns below {self.inputs}")
        if math.fsum(part.weight for part in self.parts) > 1.0:
            raise InvalidArgument("parts", "weights that sum to at most 1")

    @property
    def dimension(self) -> int:
        """The number of features m."""
        return sum(part.features.dimension for part in self.parts)

    @property
    def error_bound(self) -> float:
        """sum_g weight_g error_g."""
        return math.fsum(part.weight * part.features.error_bound for part in self.parts)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The coordinates and the slice of features of every part."""
        ends = list(itertools.accumulate(part.features.dimension for part in self.parts))
        starts = [0, *ends[:-1]]
        return tuple(
            Group(part.columns, slice(start, end))
            for part, start, end in zip(self.parts, starts, ends, strict=True)
        )

    @cached_property
    def _alike(self) -> tuple[list[int], float, FourierFeatures] | None:
        """Where every part is one map on a column of its own: the columns, sqrt(weight), the map.

        A row's features do not depend on the rows beside it, so all columns go through at once.
        """
        first, columns = self.parts[0].features, [part.columns[0] for part in self.parts]
        if not isinstance(first, FourierFeatures) or first.inputs != 1:
            return None
        same = all(_same(part.features, first) for part in self.parts)
        if not same or len({part.weight for part in self.parts}) > 1:
            return None
        if len(set(columns)) < len(columns):
            return None
        return columns, math.sqrt(self.parts[0].weight), first

    def __call__(self, x: ArrayLike) -> Floats:
        """phi at each row of x: an n x m matrix."""
        rows = as_rows("x", x, self.inputs)
        if (alike := self._alike) is not None:
            columns, scale, features = alike
            together = features(rows[:, columns].reshape(-1, 1))
            return (scale * together).reshape(len(rows), self.dimension)
        blocks = [
            math.sqrt(part.weight) * part.features(rows[:, list(part.columns)])
            for part in self.parts
        ]
        return np.concatenate(blocks, axis=1)

    def gradient(self, x: ArrayLike, coefficients: ArrayLike) -> Floats:
        """d/dx of coefficients . phi(x), at each row: n x d; coefficients (m,) or (n, m)."""
        rows = as_rows("x", x, self.inputs)
        c = coefficients_of(coefficients, len(rows), self.dimension)
        slopes = np.zeros_like(rows)
        if (alike := self._alike) is not None:
            columns, scale, features = alike
            own = np.broadcast_to(c, (len(rows), self.dimension)).reshape(-1, features.dimension)
            found = features.gradient(rows[:, columns].reshape(-1, 1), own)
            slopes[:, columns] = scale * found.reshape(len(rows), len(columns))
            return slopes
        for part, group in zip(self.parts, self.groups, strict=True):
            columns = list(part.columns)
            slope = part.features.gradient(rows[:, columns], c[:, group.features])
            slopes[:, columns] += math.sqrt(part.weight) * slope
        return slopes


def _same(one: SimpleFeatures, other: FourierFeatures) -> bool:
    return (
        isinstance(one, FourierFeatures)
        and np.array_equal(one.frequencies, other.frequencies)
        and np.array_equal(one.weights, other.weights)
    )


FeatureMap = SimpleFeatures | AdditiveFeatures
