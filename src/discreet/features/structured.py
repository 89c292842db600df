"""The kernel for an author who knows none: structures and lengthscales, weighed by evidence.

A structure is a product over coordinates j,

    k(x, x') = prod_j (a_j + (1 - a_j) k_j(x_j, x'_j)),

with k_j a squared exponential, or `Categories`. A share a_j near 1 leaves interactions with
coordinate j little room. Over the whole box all numbers have one lengthscale and one share: with a
share near 1 the function is nearly a sum of functions of one coordinate. Where people bring
contexts, actions act together, and contexts have a lengthscale and a share of their own: contexts
do not matter, each acts with the action by itself, they act together, or some of them act together
and the others do not matter.

All structures are priors over one public feature map, so releases do not depend on which is right.
"""

import itertools
import math
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.features.simple_kernels import Categories, Simple, SquaredExponential, pair

#: Absent in what was stored before there was such a field.
OPTIONAL = MappingProxyType({"optional": True})
#: Lengthscales, in units of the scaled domain: over the whole box, and of actions under contexts.
SCALES, ACTION_SCALES = (0.25, 0.5, 1.0), (0.25, 0.5)
#: Shares by which a function is full, of low order, nearly a sum.
SHARES = (0.0, 0.5, 0.9)
#: The lengthscale of contexts, times the root of their number, as distances between people grow.
CONTEXT_SCALE = 0.5
#: What contexts may do, and the share of each one's kernel that is constant.
CONTEXT_SHARES = {
    "contexts act together": 0.0,
    "each context acts by itself": 0.9,
    "contexts do not matter": 1.0,
}
#: What they may do where the kernel selects.
SELECTED = "some contexts act together, others do not matter"
#: Sets of contexts that matter are tried from the smallest, all of a size, up to so many sets.
MOST_SETS = 64
#: How alike different categories are.
ALIKE = 0.5


@dataclass(frozen=True)
class Structure:
    """One of the kernels: the lengthscale of numbers and the share, and those of contexts.

    Contexts of these `idle` columns do not matter.
    """

    scale: float
    share: float
    context_scale: float | None = None
    context_share: float | None = None
    idle: tuple[tuple[int, ...], ...] = ()

    @property
    def words(self) -> str:
        """What it says, for people.

        >>> Structure(0.5, 0.0).words, Structure(0.5, 0.9).words
        ('coordinates act together', 'nearly a sum over coordinates')
        >>> Structure(0.5, 0.0, context_scale=1.0, context_share=1.0).words
        'contexts do not matter'
        """
        if self.idle:
            return SELECTED
        for words, share in CONTEXT_SHARES.items():
            if share == self.context_share:
                return words
        return "nearly a sum over coordinates" if self.share > 0.5 else "coordinates act together"

    @property
    def is_wide(self) -> bool:
        """Whether contexts, if there are any, may act in any way."""
        return not self.context_share and not self.idle

    def needs(self, columns: tuple[int, ...]) -> bool:
        """Whether the context of these columns matters.

        >>> Structure(0.5, 0.0, 1.0, 0.0, idle=((1,),)).needs((1,))
        False
        """
        return self.context_share != 1.0 and columns not in self.idle

    def factor(self, *, is_category: bool, is_context: bool = False) -> Simple:
        """The kernel k_j of a coordinate."""
        scale = self.context_scale if is_context else self.scale
        return Categories(ALIKE) if is_category else SquaredExponential(scale or self.scale)

    def share_of(self, *, is_context: bool) -> float:
        """The share a_j of a coordinate."""
        return self.context_share or 0.0 if is_context else self.share


@dataclass(frozen=True)
class Structured:
    """Any of the structures, as the releases say: the default of a plan that names no kernel.

    `categories` are the columns of each coordinate whose values are names, and `contexts` those of
    each that people bring; a plan fills them in. With `selects`, some contexts may matter and
    others not.

    >>> len(Structured().structures), len(Structured(contexts=((1,),)).structures)
    (9, 6)
    >>> len(Structured(contexts=((1,), (2,), (3,)), selects=True).structures)
    18
    >>> Structured()([[0.0, 0.0]], [[0.0, 0.0]])
    array([[1.]])
    """

    categories: tuple[tuple[int, ...], ...] = ()
    contexts: tuple[tuple[int, ...], ...] | None = field(default=None, metadata=OPTIONAL)
    selects: bool | None = field(default=None, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", _columns(self.categories))
        if self.contexts is not None:
            object.__setattr__(self, "contexts", _columns(self.contexts))
        if self.selects not in (None, True) or (self.selects and len(self.contexts or ()) < 2):
            raise InvalidArgument(
                "selects", "True where there are several contexts, or nothing", self.selects
            )

    @property
    def structures(self) -> tuple[Structure, ...]:
        """Every lengthscale with every share; under contexts, with everything these may do."""
        if not self.contexts:
            return tuple(itertools.starmap(Structure, itertools.product(SCALES, SHARES)))
        scale = CONTEXT_SCALE * math.sqrt(len(self.contexts))
        whole = itertools.product(ACTION_SCALES, CONTEXT_SHARES.values())
        return (
            *(Structure(own, 0.0, scale, share) for own, share in whole),
            *(
                Structure(own, 0.0, scale, 0.0, idle)
                for own, idle in itertools.product(ACTION_SCALES, self._idle)
            ),
        )

    @property
    def _idle(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The sets of contexts that may not matter while others do."""
        found, contexts = list[tuple[tuple[int, ...], ...]](), self.contexts or ()
        for needed in range(1, len(contexts) if self.selects else 0):
            if len(found) + math.comb(len(contexts), needed) > MOST_SETS:
                break
            found.extend(itertools.combinations(contexts, len(contexts) - needed))
        return tuple(found)

    @property
    def weights(self) -> tuple[float, ...]:
        """How likely each structure is at first: as any other, but for sets of contexts.

        All sets of as many contexts share what one structure has: of n contexts, i of them idle,

            w ~ 1 / C(n, i)

        >>> three = Structured(contexts=((1,), (2,), (3,)), selects=True)
        >>> [round(30 * weight) for weight in three.weights[:8]]
        [3, 3, 3, 3, 3, 3, 1, 1]
        """
        sets = [math.comb(len(self.contexts or ()), len(each.idle)) for each in self.structures]
        total = sum(1.0 / count for count in sets)
        return tuple(1.0 / count / total for count in sets)

    @property
    def constant_share(self) -> float:
        """How much of a coordinate's kernel is constant where features are chosen.

        That is the mean over the structures; under contexts that of the widest, whose features
        serve the others.
        """
        return 0.0 if self.contexts else sum(SHARES) / len(SHARES)

    def check(self, dimension: int) -> None:
        """Refuse a dimension that lacks one of the columns."""
        every = (*self.categories, *(self.contexts or ()))
        columns = [column for columns in every for column in columns]
        if columns and max(columns) >= dimension:
            raise InvalidArgument("columns", f"column numbers below {dimension}", max(columns))

    def factors(self, columns: tuple[int, ...]) -> tuple[Simple, ...]:
        """The different kernels of one coordinate."""
        return tuple(dict.fromkeys(self.part(each, columns)[0] for each in self.structures))

    def part(self, structure: Structure, columns: tuple[int, ...]) -> tuple[Simple, float]:
        """What a structure says of one coordinate: its kernel k_j, and its share a_j."""
        is_context = columns in (self.contexts or ())
        own = structure.factor(is_category=columns in self.categories, is_context=is_context)
        if columns in structure.idle:
            return own, 1.0
        return own, structure.share_of(is_context=is_context)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The average of the structures, as likely as they are at first."""
        left, right = pair(x, y)
        self.check(left.shape[1])
        each = [self.under(structure, left, right) for structure in self.structures]
        return np.average(each, axis=0, weights=self.weights)

    def under(self, structure: Structure, x: Floats, y: Floats) -> Floats:
        """k(x, y) for each pair of rows, as one structure has it."""
        whole = np.ones((len(x), len(y)))
        for columns in self._coordinates(x.shape[1]):
            own, share = self.part(structure, columns)
            whole *= share + (1.0 - share) * own(x[:, list(columns)], y[:, list(columns)])
        return whole

    def _coordinates(self, dimension: int) -> tuple[tuple[int, ...], ...]:
        """The columns of each coordinate, categories as one."""
        named = {column for columns in self.categories for column in columns}
        numbers = ((column,) for column in range(dimension) if column not in named)
        return (*numbers, *self.categories)


def _columns(given: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(column) for column in columns) for columns in given)
