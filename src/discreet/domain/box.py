"""The public set that actions and contexts live in, and its picture in the unit cube.

Everything in a domain is public. The points that pass through it are not: an error about a
candidate or a context names the coordinate, what it may be and the row, never what came.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from types import MappingProxyType, UnionType
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.arrays import Floats, Mask, as_rows, frozen
from discreet.domain.coordinates import (
    LARGEST_SWEEP,
    Categorical,
    Continuous,
    Coordinate,
    Integer,
    check_shape,
    is_listable,
    listing,
    read_context_names,
    read_coordinate,
    read_coordinates,
)
from discreet.domain.feasibility import Predicate
from discreet.domain.points import (
    check_holds,
    check_rows,
    read_context,
    read_points,
    read_table,
    scaled_rows,
)
from discreet.domain.unit_cube import even_points, fill_ball, in_ball, pull_into_ball, radius_left
from discreet.errors import InvalidArgument

__all__ = ["Box", "Categorical", "Continuous", "Coordinate", "Integer"]

# How many spread points the predicate is tried on before it counts as never satisfied.
FEASIBILITY_TRIALS = 4096


@dataclass(frozen=True)
class Box:
    """Named coordinates; those in `context` come with the user, the rest are ours to choose.

    In the unit cube a `Continuous` or `Integer` x is the column (x - low) / (high - low). A
    `Categorical` with k values is k - 1 columns, the vertices of a regular simplex with edge
    length 1: any two categories are at distance 1, and no order is invented. A pair (low, high)
    is short for `Continuous(low, high)`. `shape="ball"` is the ellipsoid inscribed in the box,
    |u - 1/2| ≤ 1/2. `feasible` is a public predicate in natural units (see `feasibility`).

    Two boxes are equal if they have the same coordinates in the same order.

    >>> box = Box(
    ...     {"dose": (0, 10), "arm": Categorical(("a", "b")), "age": (18, 90)},
    ...     context=["age"],
    ...     feasible="arm == 'a' or dose <= 5",
    ... )
    >>> box.encode([{"dose": 5, "arm": "b", "age": 36}])
    array([[0.5 , 1.  , 0.25]])
    >>> box.decode([0.5, 1.0, 0.25])
    {'dose': 5.0, 'arm': 'b', 'age': 36.0}
    """

    coordinates: Mapping[str, Coordinate | tuple[float, float]]
    context: tuple[str, ...] = ()
    feasible: str | None = None
    shape: Literal["box", "ball"] = "box"

    def __post_init__(self) -> None:
        coordinates = MappingProxyType(read_coordinates(self.coordinates))
        object.__setattr__(self, "coordinates", coordinates)
        object.__setattr__(self, "context", read_context_names(self.context, self.names))
        check_shape(self.shape, coordinates)
        if self._predicate is not None:
            trials = even_points(FEASIBILITY_TRIALS, len(self.names))
            if not len(self.spread(trials)):
                expectation = "a predicate that some points of the box satisfy"
                raise InvalidArgument("feasible", expectation, self.feasible)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Box) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only mapping cannot be pickled.
        return type(self), (dict(self.coordinates), self.context, self.feasible, self.shape)

    @property
    def _key(self) -> tuple[object, ...]:
        return tuple(self.coordinates.items()), self.context, self.feasible, self.shape

    @cached_property
    def _table(self) -> dict[str, Coordinate]:
        return {name: read_coordinate(name, given) for name, given in self.coordinates.items()}

    @cached_property
    def _contexts(self) -> dict[str, Coordinate]:
        return {name: self._table[name] for name in self.context}

    @cached_property
    def _slices(self) -> dict[str, slice]:
        ends = accumulate(coordinate.columns for coordinate in self._table.values())
        pairs = zip(self._table.items(), ends, strict=True)
        return {name: slice(end - coordinate.columns, end) for (name, coordinate), end in pairs}

    @cached_property
    def _predicate(self) -> Predicate | None:
        if self.feasible is None:
            return None
        kinds = {
            name: coordinate.values if isinstance(coordinate, Categorical) else None
            for name, coordinate in self._table.items()
        }
        return Predicate(self.feasible, kinds)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The coordinate names, in order.

        >>> Box({"dose": (0, 10), "age": (18, 90)}).names
        ('dose', 'age')
        """
        return tuple(self.coordinates)

    @cached_property
    def dimension(self) -> int:
        """How many columns: 1 a number, k - 1 a choice of k.

        >>> Box({"dose": (0, 10), "arm": Categorical(("a", "b", "c"))}).dimension
        3
        """
        return sum(coordinate.columns for coordinate in self._table.values())

    def coordinate(self, name: str) -> Coordinate:
        """The coordinate of this name.

        >>> Box({"dose": (0, 10)}).coordinate("dose")
        Continuous(low=0.0, high=10.0)
        """
        if name not in self._table:
            raise InvalidArgument("name", f"one of {listing(self.names)}", name)
        return self._table[name]

    def columns(self, name: str) -> tuple[int, ...]:
        """Which columns stand for a coordinate.

        >>> Box({"dose": (0, 10), "arm": Categorical(("a", "b", "c"))}).columns("arm")
        (1, 2)
        """
        self.coordinate(name)
        return tuple(range(self.dimension)[self._slices[name]])

    @cached_property
    def continuous(self) -> Mask:
        """Which columns may take any number.

        >>> Box({"dose": (0, 10), "pills": Integer(1, 3)}).continuous
        array([ True, False])
        """
        return self._mask(Continuous)

    @cached_property
    def movable(self) -> Mask:
        """Which columns a gradient may move before `snap`: numbers, also whole ones.

        >>> Box({"pills": Integer(1, 3), "arm": Categorical(("a", "b"))}).movable
        array([ True, False])
        """
        return self._mask(Continuous | Integer)

    @cached_property
    def discrete(self) -> tuple[str, ...]:
        """The coordinates with values few enough for `settings` to list.

        >>> Box({"dose": (0, 10), "pills": Integer(1, 3)}).discrete
        ('pills',)
        """
        return tuple(name for name, c in self._table.items() if is_listable(c))

    @cached_property
    def context_columns(self) -> tuple[int, ...]:
        """The columns that come with the user.

        >>> Box({"dose": (0, 10), "age": (18, 90)}, context=["age"]).context_columns
        (1,)
        """
        return tuple(column for name in self.context for column in self.columns(name))

    @property
    def free(self) -> tuple[str, ...]:
        """The coordinates that are ours to choose.

        >>> Box({"dose": (0, 10), "age": (18, 90)}, context=["age"]).free
        ('dose',)
        """
        return tuple(name for name in self.names if name not in self.context)

    @cached_property
    def free_columns(self) -> tuple[int, ...]:
        """The columns that are ours to choose.

        >>> Box({"dose": (0, 10), "age": (18, 90)}, context=["age"]).free_columns
        (0,)
        """
        return tuple(c for c in range(self.dimension) if c not in set(self.context_columns))

    @property
    def has_context(self) -> bool:
        """Whether users bring anything."""
        return bool(self.context)

    @cached_property
    def widths(self) -> Floats:
        """max - min of each column over the encoded set: 1, and a simplex's heights.

        >>> Box({"dose": (0, 10), "arm": Categorical(("a", "b", "c"))}).widths.round(3)
        array([1.   , 1.   , 0.866])
        """
        return frozen(np.concatenate([c.extents for c in self._table.values()]))

    @property
    def diameter(self) -> float:
        """The largest distance between encoded points: √(number of coordinates), a ball's is 1.

        >>> Box({"dose": (0, 10), "age": (18, 90)}).diameter == 2**0.5
        True
        """
        return 1.0 if self.shape == "ball" else math.sqrt(len(self.names))

    def encode(
        self,
        points: Sequence[Mapping[str, object]] | Sequence[Sequence[object]] | NDArray[Any],
        *,
        argument: str = "candidates",
    ) -> Floats:
        """Points in natural units as rows of the unit cube, (n, dimension); refuses bad ones.

        A point is a mapping from every name to a value, or the values in order.

        >>> box = Box({"dose": (0, 10), "age": (18, 90)})
        >>> box.encode([{"age": 36, "dose": 5}, {"age": 90, "dose": 0}])
        array([[0.5 , 0.25],
               [0.  , 1.  ]])
        >>> box.encode(np.array([[5.0, 36.0]]))
        array([[0.5 , 0.25]])
        >>> box.encode([[5.0, 36.0], [5.0, 12.0]])
        Traceback (most recent call last):
        discreet.errors.InvalidArgument: candidates: expected age to be a finite number within \
[18.0, 90.0] (row 1)
        """
        return self._encoded(read_points(points, self._table, argument), argument)

    def encode_numbers(self, numbers: Floats) -> Floats:
        """As `encode`, of rows that are numbers already: a category is its position.

        >>> box = Box({"dose": (0, 10), "arm": Categorical(("a", "b"))})
        >>> box.encode_numbers(np.array([[5.0, 1.0]]))
        array([[0.5, 1. ]])
        """
        check_holds(numbers, self._table, "candidates")
        return self._encoded(numbers, "candidates")

    def _encoded(self, numbers: Floats, argument: str) -> Floats:
        scaled = scaled_rows(self._table, numbers)
        check_rows(self._inside(scaled), argument, "points inside the ball")
        check_rows(self._satisfied(numbers), argument, f"points that satisfy {self.feasible!r}")
        return scaled

    def decode(self, point: ArrayLike) -> dict[str, float | int | str]:
        """A row of the unit cube in natural units, each coordinate at its nearest value.

        >>> Box({"dose": (0, 10), "pills": Integer(1, 3)}).decode([1.0, 0.6])
        {'dose': 10.0, 'pills': 2}
        """
        numbers = self._natural(as_rows("point", cast(ArrayLike, [point]), self.dimension))[
            0
        ].tolist()
        pairs = zip(self._table.items(), numbers, strict=True)
        return {name: coordinate.value(number) for (name, coordinate), number in pairs}

    def decode_all(self, points: Floats) -> dict[str, list[float | int | str]]:
        """Rows of the unit cube as columns in natural units, by name.

        >>> Box({"dose": (0, 10), "pills": Integer(1, 3)}).decode_all(np.array([[1.0, 0.6]]))
        {'dose': [10.0], 'pills': [2]}
        """
        numbers = self._natural(points).T.tolist()
        return {
            name: [coordinate.value(number) for number in column]
            for (name, coordinate), column in zip(self._table.items(), numbers, strict=True)
        }

    def numbers(self, points: Floats) -> Floats:
        """Rows of the unit cube as numbers in natural units; a category is its position.

        >>> Box({"dose": (0, 10), "arm": Categorical(("a", "b"))}).numbers(np.array([[0.5, 0.9]]))
        array([[5., 1.]])
        """
        return self._natural(as_rows("points", points, self.dimension))

    def encode_context(self, context: Mapping[str, object]) -> Floats:
        """What the user brings, as values for `context_columns`.

        >>> box = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
        >>> box.encode_context({"age": 36})
        array([0.25])
        >>> box.encode_context({"dose": 1})
        Traceback (most recent call last):
        discreet.errors.InvalidArgument: context: expected a value for 'age'
        """
        encoded = scaled_rows(self._contexts, read_context(context, self._contexts)[None, :])
        if not self._inside(encoded).all():
            raise InvalidArgument("context", "values inside the ball")
        return encoded[0]

    def encode_table(self, table: object, *, argument: str = "candidates") -> tuple[Floats, Mask]:
        """A table's rows in the unit cube, and which of them are points of the domain.

        >>> Box({"dose": (0, 10)}).encode_table({"dose": [11]})
        (array([[0.]]), array([False]))
        """
        numbers, holds = read_table(table, self._table, argument)
        scaled = scaled_rows(self._table, numbers)
        return scaled, holds & self._inside(scaled) & self._satisfied(numbers)

    def encode_contexts(self, table: object) -> tuple[Floats, Mask]:
        """A context a row, as `encode_context` has it, and which rows are contexts at all."""
        numbers, holds = read_table(table, self._contexts, "contexts")
        scaled = scaled_rows(self._contexts, numbers)
        return scaled, holds & self._inside(scaled)

    def snap(self, points: ArrayLike) -> Floats:
        """The nearest rows that are encodings; the predicate is left to `admits`.

        In a ball, radially onto it: the context first, then the rest in what room it leaves.

        >>> Box({"dose": (0, 10), "pills": Integer(1, 3)}).snap([[1.5, 0.6]])
        array([[1. , 0.5]])
        >>> Box({"x": (-1, 1), "y": (-1, 1)}, shape="ball").snap([[1.5, 0.5]])
        array([[1. , 0.5]])
        """
        given = as_rows("points", points, self.dimension)
        if self.shape == "ball":
            given = pull_into_ball(given, self.context_columns)
            room = radius_left(given, taken=self.context_columns)
            given = pull_into_ball(given, self.free_columns, room)
        nearest = given if self.continuous.all() else scaled_rows(self._table, self._natural(given))
        return np.where(self.continuous, np.clip(given, 0.0, 1.0), nearest)

    def admits(self, points: ArrayLike) -> Mask:
        """Which rows are inside the ball and satisfy the predicate.

        >>> Box({"dose": (0, 10)}, feasible="dose <= 5").admits([[0.4], [0.6]])
        array([ True, False])
        """
        given = as_rows("points", points, self.dimension)
        inside = self._inside(given)
        return inside if self._predicate is None else inside & self._satisfied(self._natural(given))

    def spread(self, uniforms: ArrayLike, *, context: Floats | None = None) -> Floats:
        """Uniform numbers in [0, 1], one a coordinate, as admitted rows; drops the others.

        Integers and categories are equally likely; a ball is filled evenly and without loss.
        `context`, from `encode_context`, fixes those columns (and leaves a slice of the ball).

        >>> Box({"dose": (0, 10), "pills": Integer(1, 3)}).spread([[0.2, 0.1], [0.7, 0.9]])
        array([[0.2, 0. ],
               [0.7, 1. ]])
        """
        points = self.place(uniforms, context=context)
        return points[self.admits(points)]

    def place(self, uniforms: ArrayLike, *, context: Floats | None = None) -> Floats:
        """As `spread`, but no row is dropped; `context` may also have a row for each.

        >>> Box({"dose": (0, 10)}, feasible="dose <= 5").place([[0.2], [0.7]]).tolist()
        [[0.2], [0.7]]
        """
        given = as_rows("uniforms", uniforms, len(self.names))
        if given.min(initial=0.0) < 0.0 or given.max(initial=1.0) > 1.0:
            raise InvalidArgument("uniforms", "numbers within [0, 1]")
        placed = [c.place(given[:, i]) for i, c in enumerate(self._table.values())]
        points = np.concatenate(placed, axis=1)
        if context is not None:
            points[:, self.context_columns] = context
        if self.shape == "ball":
            taken = () if context is None else self.context_columns
            free = range(self.dimension) if context is None else self.free_columns
            points[:, free] = fill_ball(points[:, free], radius_left(points, taken))
        return points

    def under(self, uniforms: Floats, contexts: Floats) -> Floats:
        """The same uniform numbers, one a free coordinate, under each context: (n, rows, columns).

        Nothing is dropped: which of them are admitted depends on the context.

        >>> box = Box({"dose": (0, 10), "age": (0, 100)}, context=["age"])
        >>> box.under(np.array([[0.2], [0.7]]), np.array([[0.5]])).tolist()
        [[[0.2, 0.5], [0.7, 0.5]]]
        """
        points = np.empty((len(contexts), len(uniforms), self.dimension))
        for i, name in enumerate(self.free):
            points[:, :, self.columns(name)] = self._table[name].place(uniforms[:, i])
        points[:, :, self.context_columns] = contexts[:, None, :]
        if self.shape == "ball":
            flat, free = points.reshape(-1, self.dimension), list(self.free_columns)
            flat[:, free] = fill_ball(flat[:, free], radius_left(flat, self.context_columns))
        return points

    def settings(self, name: str) -> Floats:
        """Every encoding of an integer or categorical coordinate, (values, its columns).

        >>> Box({"pills": Integer(1, 3)}).settings("pills")
        array([[0. ],
               [0.5],
               [1. ]])
        """
        coordinate = self.coordinate(name)
        if not is_listable(coordinate):
            expectation = f"a coordinate of at most {LARGEST_SWEEP} values"
            raise InvalidArgument("name", expectation, name)
        first = coordinate.low if isinstance(coordinate, Integer) else 0
        return coordinate.scale(np.arange(coordinate.count, dtype=np.float64) + first)

    def _mask(self, kind: type[Continuous] | UnionType) -> Mask:
        masks = [np.full(c.columns, isinstance(c, kind)) for c in self._table.values()]
        return frozen(np.concatenate(masks))

    def _natural(self, points: Floats) -> Floats:
        pairs = zip(self._table.values(), self._slices.values(), strict=True)
        return np.stack([c.unscale(points[:, columns]) for c, columns in pairs], axis=1)

    def _satisfied(self, numbers: Floats) -> Mask:
        if self._predicate is None:
            return np.ones(len(numbers), dtype=np.bool_)
        values = {name: numbers[:, i] for i, name in enumerate(self.names)}
        return self._predicate(values, count=len(numbers))

    def _inside(self, points: Floats) -> Mask:
        return in_ball(points) if self.shape == "ball" else np.ones(len(points), dtype=np.bool_)
