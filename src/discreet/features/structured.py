"""The kernel for an author who knows none: structures and lengthscales, weighed by evidence.

A structure is a product over coordinates j,

    k(x, x') = prod_j (a + (1 - a) k_j(x_j, x'_j)),

with k_j a squared exponential of one lengthscale for all numbers, or `Categories`. A share a near 1
leaves high interactions little room: the function is nearly a sum of functions of one coordinate.
All structures are priors over one public feature map, so releases do not depend on which is right.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.features.simple_kernels import Categories, Simple, SquaredExponential, pair

#: Lengthscales, in units of the scaled domain.
SCALES = (0.25, 0.5, 1.0)
#: Shares by which a function is full, of low order, nearly a sum.
SHARES = (0.0, 0.5, 0.9)
#: How alike different categories are.
ALIKE = 0.5


@dataclass(frozen=True)
class Structure:
    """One of the kernels: the lengthscale of numbers, and the share."""

    scale: float
    share: float

    @property
    def words(self) -> str:
        """What it says, for people.

        >>> Structure(0.5, 0.0).words, Structure(0.5, 0.9).words
        ('coordinates act together', 'nearly a sum over coordinates')
        """
        return "nearly a sum over coordinates" if self.share > 0.5 else "coordinates act together"

    def factor(self, *, is_category: bool) -> Simple:
        """The kernel k_j of a coordinate."""
        return Categories(ALIKE) if is_category else SquaredExponential(self.scale)


@dataclass(frozen=True)
class Structured:
    """Any of the structures, as the releases say: the default of a plan that names no kernel.

    `categories` are the columns of each coordinate whose values are names; a plan fills them in.

    >>> len(Structured().structures)
    9
    >>> Structured()([[0.0, 0.0]], [[0.0, 0.0]])
    array([[1.]])
    """

    categories: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        categories = tuple(tuple(int(c) for c in columns) for columns in self.categories)
        object.__setattr__(self, "categories", categories)

    @property
    def structures(self) -> tuple[Structure, ...]:
        """Every lengthscale with every share."""
        return tuple(itertools.starmap(Structure, itertools.product(SCALES, SHARES)))

    @property
    def mean_share(self) -> float:
        """The share of a coordinate's kernel that is constant, over the structures."""
        return sum(SHARES) / len(SHARES)

    def check(self, dimension: int) -> None:
        """Refuse a dimension that lacks one of the columns."""
        columns = [column for columns in self.categories for column in columns]
        if columns and max(columns) >= dimension:
            raise InvalidArgument("columns", f"column numbers below {dimension}", max(columns))

    def factors(self, columns: tuple[int, ...]) -> tuple[Simple, ...]:
        """The different kernels of one coordinate."""
        is_category = columns in self.categories
        each = (structure.factor(is_category=is_category) for structure in self.structures)
        return tuple(dict.fromkeys(each))

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The average of the structures."""
        left, right = pair(x, y)
        self.check(left.shape[1])
        total = np.zeros((len(left), len(right)))
        for structure in self.structures:
            whole = np.ones_like(total)
            for columns in self._coordinates(left.shape[1]):
                own = structure.factor(is_category=columns in self.categories)
                similar = own(left[:, list(columns)], right[:, list(columns)])
                whole *= structure.share + (1.0 - structure.share) * similar
            total += whole
        return total / len(self.structures)

    def _coordinates(self, dimension: int) -> tuple[tuple[int, ...], ...]:
        """The columns of each coordinate, categories as one."""
        named = {column for columns in self.categories for column in columns}
        numbers = ((column,) for column in range(dimension) if column not in named)
        return (*numbers, *self.categories)
