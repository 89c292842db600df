"""Points as people bring them, turned into numbers or refused without saying what came.

Candidates and contexts are private: an error names the coordinate, what it may be, and the row.
Not even an unknown name is repeated, for it came from the same hands.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats, Mask
from discreet.domain.coordinates import Categorical, Coordinate, listing, mapping, sequence
from discreet.errors import InvalidArgument
from discreet.frames.reading import columns, is_table

Table = Mapping[str, Coordinate]


def read_points(points: object, table: Table, argument: str) -> Floats:
    """Mappings, or rows of values in order, as numbers in natural units: (n, coordinates).

    >>> from discreet.domain.coordinates import Continuous
    >>> read_points([{"x": 1, "y": 2}, (3, 4)], {"x": Continuous(0, 9), "y": Continuous(0, 9)}, "p")
    array([[1., 2.],
           [3., 4.]])
    """
    numbers = _as_numbers(points, table, argument)
    check_holds(numbers, table, argument)
    return numbers


def check_holds(numbers: Floats, table: Table, argument: str) -> None:
    """Refuse rows of numbers that a coordinate does not allow."""
    for position, (name, coordinate) in enumerate(table.items()):
        holds = coordinate.holds(numbers[:, position])
        check_rows(holds, argument, f"{name} to be {coordinate.expected}")


def as_numbers(coordinate: Coordinate, values: Sequence[object] | NDArray[Any]) -> Floats:
    """A column of values as numbers in natural units.

    >>> from discreet.domain.coordinates import Categorical
    >>> as_numbers(Categorical(("a", "b")), ["b", "a"])
    array([1., 0.])
    """
    array = np.asarray(values)
    if array.dtype.kind in "fiu" and not isinstance(coordinate, Categorical):
        return array.astype(np.float64)
    return np.array([coordinate.number(value) for value in values], dtype=np.float64)


def read_context(context: object, table: Table) -> Floats:
    """One mapping with exactly these names, as numbers in natural units.

    >>> from discreet.domain.coordinates import Continuous
    >>> read_context({"age": 36}, {"age": Continuous(18, 90)})
    array([36.])
    """
    names = tuple(table)
    given = mapping(context)
    if given is None:
        raise InvalidArgument("context", f"a mapping with the names {listing(names)}")
    values = _by_name(given, names, "context", "")
    numbers = np.empty(len(names))
    for position, (name, value) in enumerate(zip(names, values, strict=True)):
        numbers[position] = table[name].number(value)
        if not table[name].holds(numbers[position : position + 1]).all():
            raise InvalidArgument("context", f"{name} to be {table[name].expected}")
    return numbers


def read_table(given: object, table: Table, argument: str) -> tuple[Floats, Mask]:
    """The rows of a table in natural units, and which hold values of every coordinate.

    A row that does not hold is at the coordinates' first values: others read on. A column of the
    wrong kind is refused: no row of it could hold, and nobody is to lose a round by it.

    >>> from discreet.domain.coordinates import Continuous
    >>> read_table({"age": [36, 361]}, {"age": Continuous(18, 90)}, "contexts")
    (array([[36.],
           [18.]]), array([ True, False]))
    """
    found = columns(argument, given, tuple(table))
    numbers = np.empty((len(next(iter(found.values()))), len(table)))
    holds = np.ones(len(numbers), dtype=np.bool_)
    for position, (name, coordinate) in enumerate(table.items()):
        if not coordinate.takes(found[name].kind):
            raise InvalidArgument(argument, f"{name} to be {coordinate.expected}: cast the column")
        numbers[:, position] = coordinate.numbers(found[name])
        holds &= coordinate.holds(numbers[:, position])
    first = [0 if isinstance(each, Categorical) else each.low for each in table.values()]
    return np.where(holds[:, None], numbers, first), holds


def check_rows(holds: Mask, argument: str, expectation: str) -> None:
    """Refuse the first row that does not hold, by its number.

    >>> check_rows(np.array([True, False]), "candidates", "something else")
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: candidates: expected something else (row 1)
    """
    if not holds.all():
        raise InvalidArgument(argument, f"{expectation} (row {holds.argmin()})")


def _as_numbers(points: object, table: Table, argument: str) -> Floats:
    """Not-a-number stands for what is no value at all; no coordinate allows it."""
    if isinstance(points, np.ndarray) and _is_numeric(cast(NDArray[Any], points), table):
        with np.errstate(over="ignore"):
            return np.asarray(points, dtype=np.float64)
    if _has_names(cast(Any, points)):
        found = columns(argument, cast(object, points), tuple(table))
        parts = [table[name].numbers(column) for name, column in found.items()]
        if len(parts[0]):
            return np.stack(parts, axis=1)
    rows = sequence(cast(object, points))
    if not rows:
        expectation = "a non-empty sequence of points, each a mapping or the values in order"
        raise InvalidArgument(argument, expectation)
    numbers = np.empty((len(rows), len(table)))
    for row, point in enumerate(rows):
        pairs = zip(table.values(), _values(point, tuple(table), argument, row), strict=True)
        numbers[row] = [coordinate.number(value) for coordinate, value in pairs]
    return numbers


def _has_names(points: object) -> bool:
    named: object = getattr(getattr(points, "dtype", None), "names", None)
    return is_table(points) and (named is not None or not isinstance(points, np.ndarray))


def _is_numeric(points: NDArray[Any], table: Table) -> bool:
    right_shape = points.ndim == 2 and points.shape[1] == len(table) and len(points) > 0
    categorical = any(isinstance(coordinate, Categorical) for coordinate in table.values())
    return right_shape and points.dtype.kind in "fiu" and not categorical


def _values(point: object, names: tuple[str, ...], argument: str, row: int) -> Sequence[object]:
    named = mapping(point)
    if named is not None:
        return _by_name(named, names, argument, f" (row {row})")
    values = sequence(point)
    if values is None or len(values) != len(names):
        raise InvalidArgument(argument, f"values for {listing(names)} (row {row})")
    return values


def _by_name(
    values: Mapping[object, object], names: tuple[str, ...], argument: str, where: str
) -> list[object]:
    missing = tuple(name for name in names if name not in values)
    if missing:
        raise InvalidArgument(argument, f"a value for {listing(missing)}{where}")
    if len(values) > len(names):
        raise InvalidArgument(argument, f"no names but {listing(names)}{where}")
    return [values[name] for name in names]


def scaled_rows(table: Table, numbers: Floats) -> Floats:
    """Rows of numbers in natural units as rows of the unit cube."""
    placed = [c.scale(numbers[:, i]) for i, c in enumerate(table.values())]
    return np.concatenate([np.empty((len(numbers), 0)), *placed], axis=1)
