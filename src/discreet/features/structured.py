"""The kernel for an author who knows none: structures and lengthscales, weighed by evidence.

A structure is a product over coordinates j,

    k(x, x') = prod_j (a_j + (1 - a_j) k_j(x_j, x'_j)),

with k_j a squared exponential of one lengthscale for all actions and one for all contexts, or
`Categories`. A share a_j = 1 leaves a coordinate out. Shares near 1 leave high interactions little
room: the function is nearly a sum of functions of few coordinates. All structures are priors over
one public feature map, so releases do not depend on which of them is right.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.features.simple_kernels import Categories, Simple, SquaredExponential, pair

#: Lengthscales over the whole box, in units of the scaled domain.
BOX_SCALES = (0.25, 0.5, 1.0)
#: Of actions and of contexts, where people bring these: noise lets less be learnt for each of them.
ACTION_SCALES, CONTEXT_SCALES = (0.5, 1.0), (0.5, 1.0, 2.0)
#: Where nobody brings a context: shares by which a function is full, of low order, nearly a sum.
SHARES = (0.0, 0.5, 0.9)
#: How alike different categories are.
ALIKE = 0.5


@dataclass(frozen=True)
class Structure:
    """One of the kernels: lengthscales of actions and of contexts (None: left out), the share."""

    action: float
    context: float | None
    share: float = 0.0

    @property
    def words(self) -> str:
        """What it says, for people.

        >>> Structure(0.5, None).words, Structure(0.5, 1.0, share=0.9).words
        ('contexts do not matter', 'nearly a sum over coordinates')
        """
        if self.context is None:
            return "contexts do not matter"
        return "nearly a sum over coordinates" if self.share > 0.5 else "coordinates act together"

    def factor(self, *, of_context: bool, is_category: bool) -> tuple[float, Simple]:
        """The share a_j and the kernel k_j of a coordinate."""
        scale = self.context if of_context else self.action
        if scale is None:
            return 1.0, Categories(ALIKE)
        return self.share, Categories(ALIKE) if is_category else SquaredExponential(scale)


@dataclass(frozen=True)
class Structured:
    """Any of the structures, as the releases say: the default of a plan that names no kernel.

    `categories` are the columns of each coordinate whose values are names, and `contexts` the
    columns that people bring. A plan fills both in.

    >>> len(Structured().structures), len(Structured(contexts=(1,)).structures)
    (9, 8)
    >>> Structured()([[0.0, 0.0]], [[0.0, 0.0]])
    array([[1.]])
    """

    categories: tuple[tuple[int, ...], ...] = ()
    contexts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        categories = tuple(tuple(int(c) for c in columns) for columns in self.categories)
        object.__setattr__(self, "categories", categories)
        object.__setattr__(self, "contexts", tuple(int(column) for column in self.contexts))

    @property
    def structures(self) -> tuple[Structure, ...]:
        """Simple ones first."""
        if not self.contexts:
            pairs = itertools.product(BOX_SCALES, SHARES)
            return tuple(Structure(scale, 1.0, share) for scale, share in pairs)
        ignored = [Structure(scale, None) for scale in ACTION_SCALES]
        pairs = itertools.product(ACTION_SCALES, CONTEXT_SCALES)
        return (*ignored, *(Structure(action, context) for action, context in pairs))

    @property
    def mean_share(self) -> float:
        """The share of a coordinate's kernel that is constant, over the structures."""
        return sum(each.share for each in self.structures) / len(self.structures)

    def check(self, dimension: int) -> None:
        """Refuse a dimension that lacks one of the columns."""
        columns = [*self.contexts, *(c for columns in self.categories for c in columns)]
        if columns and max(columns) >= dimension:
            raise InvalidArgument("columns", f"column numbers below {dimension}", max(columns))

    def coordinates(self, dimension: int) -> tuple[tuple[int, ...], ...]:
        """The columns of each coordinate, categories as one."""
        named = {column for columns in self.categories for column in columns}
        numbers = ((column,) for column in range(dimension) if column not in named)
        return tuple(sorted((*numbers, *self.categories)))

    def factor(self, structure: Structure, columns: tuple[int, ...]) -> tuple[float, Simple]:
        """The share and the kernel of one coordinate under a structure."""
        return structure.factor(
            of_context=columns[0] in self.contexts, is_category=columns in self.categories
        )

    def factors(self, columns: tuple[int, ...]) -> tuple[Simple, ...]:
        """The different kernels of one coordinate."""
        each = [self.factor(structure, columns) for structure in self.structures]
        return tuple(dict.fromkeys(kernel for share, kernel in each if share < 1.0))

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The average of the structures."""
        left, right = pair(x, y)
        self.check(left.shape[1])
        total = np.zeros((len(left), len(right)))
        for structure in self.structures:
            whole = np.ones_like(total)
            for columns in self.coordinates(left.shape[1]):
                share, kernel = self.factor(structure, columns)
                chosen = list(columns)
                whole *= share + (1.0 - share) * kernel(left[:, chosen], right[:, chosen])
            total += whole
        return total / len(self.structures)
