"""One coordinate of a domain, and the columns of the unit cube that stand for it.

Three views of the same thing: the *value* a person writes (7.5, 3, "b"), its *number* (7.5, 3.0,
and for a category its position 1.0), and its *columns* in the unit cube. Every coordinate
offers the same methods, so that a domain need not know its kind:

- `columns`, `extents`: how many columns, and how far each reaches
- `expected`: its values in words, for error messages
- `number(value)`: the value as a number, not-a-number if it is none; `value(number)` goes back
- `takes(kind)`: whether a column of this kind can hold its values; `numbers(column)`: all of them
- `holds(numbers)`: which numbers are allowed
- `scale(numbers)`, `unscale(columns)`: to the unit cube, and back to the nearest allowed number
- `place(uniforms)`: uniform numbers in [0, 1] to columns, each value equally likely
"""

import keyword
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard, cast

import numpy as np

from discreet import checks
from discreet.arrays import Floats, Mask, frozen
from discreet.errors import InvalidArgument
from discreet.frames.reading import Column, Kind

# With fewer floats between its ends, rounding would move a scaled point by more than 1e-10.
FEWEST_STEPS = 1e10
# Discrete coordinates with more values are not listed.
LARGEST_SWEEP = 2**16
# Whole numbers up to here survive the way to the unit cube and back.
LARGEST_INTEGER = 2**48


class _Number:
    """What numbers between two ends share: one column."""

    low: Any
    high: Any

    @property
    def columns(self) -> int:
        """One."""
        return 1

    @property
    def extents(self) -> tuple[float, ...]:
        """The whole unit interval."""
        return (1.0,)

    def number(self, value: object) -> float:
        """The value itself, not-a-number if it is no number.

        True and False are 1 and 0 where a coordinate runs from 0 to 1: elsewhere they are mistakes.
        """
        if type(value) is float:
            return value
        given = checks.plain(value)
        if isinstance(given, bool) and self.takes("truth"):
            return float(given)
        return _number(given)

    def takes(self, kind: Kind) -> bool:
        """Numbers; True and False from 0 to 1; and what each row says for itself."""
        return kind in ("float", "integer", "any") or (
            kind == "truth" and (self.low, self.high) == (0, 1)
        )

    def numbers(self, column: Column) -> Floats:
        """Every value as `number` has it."""
        if isinstance(column.values, np.ndarray):
            with np.errstate(over="ignore"):
                return column.values.astype(np.float64)
        return np.array([self.number(value) for value in column.values], dtype=np.float64)


@dataclass(frozen=True)
class Continuous(_Number):
    """A real number x in [low, high]; one column, (x - low) / (high - low).

    >>> dose = Continuous(0, 10)
    >>> dose.scale(np.array([0.0, 2.5, 10.0])).ravel()
    array([0.  , 0.25, 1.  ])
    >>> Continuous(10, 0)
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: high: expected a number above low = 10.0, got 0.0
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            object.__setattr__(self, end, checks.number(end, getattr(self, end)) + 0.0)
        if self.low >= self.high:
            raise InvalidArgument("high", f"a number above low = {self.low!r}", self.high)
        step = math.ulp(max(abs(self.low), abs(self.high)))
        if not FEWEST_STEPS * step <= self.high - self.low < math.inf:
            expectation = (
                f"high - low finite and at least {FEWEST_STEPS * step!r}, or rounding shows"
            )
            raise InvalidArgument("high", expectation, self.high)

    @property
    def expected(self) -> str:
        """Its values in words."""
        return f"a finite number within [{self.low!r}, {self.high!r}]"

    def value(self, number: float) -> float:
        """The number itself."""
        return float(number)

    def holds(self, numbers: Floats) -> Mask:
        """low ≤ x ≤ high; exactly on the border is fine."""
        return (numbers >= self.low) & (numbers <= self.high)

    def scale(self, numbers: Floats) -> Floats:
        """(x - low) / (high - low)."""
        # Adding zero turns -0.0 into 0.0: equal points have equal bytes.
        return ((numbers - self.low) / (self.high - self.low) + 0.0)[:, None]

    def unscale(self, columns: Floats) -> Floats:
        """low + u (high - low), with the exact ends at u ≤ 0 and u ≥ 1."""
        scaled = np.clip(columns[:, 0], 0.0, 1.0)
        inner = np.clip(self.low + scaled * (self.high - self.low), self.low, self.high)
        return np.where(scaled == 1.0, self.high, inner)

    def place(self, uniforms: Floats) -> Floats:
        """The uniform number itself."""
        return uniforms[:, None]


@dataclass(frozen=True)
class Integer(_Number):
    """A whole number i in [low, high]; one column, (i - low) / (high - low), on a lattice.

    >>> pills = Integer(1, 5)
    >>> pills.scale(np.array([1.0, 2.0, 5.0])).ravel()
    array([0.  , 0.25, 1.  ])
    >>> Integer(3, 3)
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: high: expected a whole number above low = 3, got 3
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            object.__setattr__(self, end, _whole(end, getattr(self, end)))
        if self.low >= self.high:
            raise InvalidArgument("high", f"a whole number above low = {self.low}", self.high)

    @property
    def count(self) -> int:
        """How many values: high - low + 1."""
        return self.high - self.low + 1

    @property
    def expected(self) -> str:
        """Its values in words."""
        return f"a whole number within [{self.low}, {self.high}]"

    def value(self, number: float) -> int:
        """The number itself."""
        return int(number)

    def holds(self, numbers: Floats) -> Mask:
        """Whole, and low ≤ i ≤ high."""
        return (numbers >= self.low) & (numbers <= self.high) & (numbers == np.rint(numbers))

    def scale(self, numbers: Floats) -> Floats:
        """(i - low) / (high - low)."""
        return ((numbers - self.low) / (self.high - self.low) + 0.0)[:, None]

    def unscale(self, columns: Floats) -> Floats:
        """The nearest whole number."""
        return self.low + np.rint(np.clip(columns[:, 0], 0.0, 1.0) * (self.high - self.low))

    def place(self, uniforms: Floats) -> Floats:
        """The i-th of `count` equal parts of [0, 1] becomes the i-th value."""
        return self.scale(self.low + _part(uniforms, self.count))


@dataclass(frozen=True)
class Categorical:
    """One of k names; k - 1 columns, the vertices of a regular simplex with edge length 1.

    Any two categories are at distance 1, the width of a continuous coordinate: no order is
    invented. Vertex j lies above the centroid of those before it, at height √((j+1) / 2j) in
    column j - 1, so that all fit in the unit cube; k = 2 is 0 and 1.

    >>> Categorical(("a", "b")).vertices.ravel()
    array([0., 1.])
    >>> Categorical(("a", "b", "c")).vertices.round(3)
    array([[0.   , 0.   ],
           [1.   , 0.   ],
           [0.5  , 0.866]])
    """

    values: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _categories(self.values))

    @cached_property
    def vertices(self) -> Floats:
        """(k, k - 1): the columns of each value."""
        corners = np.zeros((self.count, self.columns))
        for j in range(1, self.count):
            corners[j] = corners[:j].mean(axis=0)
            corners[j, j - 1] = math.sqrt((j + 1) / (2 * j))
        return frozen(corners)

    @property
    def columns(self) -> int:
        """k - 1."""
        return self.count - 1

    @property
    def extents(self) -> tuple[float, ...]:
        """The heights √((j+1) / 2j)."""
        return tuple(float(height) for height in self.vertices.max(axis=0))

    @property
    def count(self) -> int:
        """How many values: k."""
        return len(self.values)

    @property
    def expected(self) -> str:
        """Its values in words."""
        return f"one of {', '.join(map(repr, self.values))}"

    @cached_property
    def _positions(self) -> dict[str, float]:
        return {value: float(position) for position, value in enumerate(self.values)}

    def number(self, value: object) -> float:
        """The position of the value, not-a-number if it is not among them.

        A whole number, or True or False, stands for its text.

        >>> Categorical(("1", "2", "True")).number(2)
        1.0
        """
        given = checks.plain(value)
        if isinstance(given, int):
            given = str(bool(given) if isinstance(given, bool) else int(given))
        # An enumeration of strings hashes by its own rule.
        text = str.__str__(given) if isinstance(given, str) else None
        return math.nan if text is None else self._positions.get(text, math.nan)

    def takes(self, kind: Kind) -> bool:
        """Text, whole numbers, truth values, and what each row says for itself."""
        return kind in ("text", "integer", "truth", "any")

    def numbers(self, column: Column) -> Floats:
        """Every value as `number` has it."""
        return np.array([self.number(value) for value in column.listed()], dtype=np.float64)

    def value(self, number: float) -> str:
        """The value at this position."""
        return self.values[int(number)]

    def holds(self, numbers: Floats) -> Mask:
        """Positions of values."""
        return (numbers >= 0) & (numbers < self.count) & (numbers == np.rint(numbers))

    def scale(self, numbers: Floats) -> Floats:
        """The vertex of each position."""
        return self.vertices[numbers.astype(np.intp)]

    def unscale(self, columns: Floats) -> Floats:
        """The position of the nearest vertex: argmax of p·v - |v|² / 2."""
        scores = columns @ self.vertices.T - (self.vertices**2).sum(axis=1) / 2
        return scores.argmax(axis=1).astype(np.float64)

    def place(self, uniforms: Floats) -> Floats:
        """The j-th of k equal parts of [0, 1] becomes the j-th value."""
        return self.scale(_part(uniforms, self.count))


Coordinate = Continuous | Integer | Categorical


def read_coordinates(given: object) -> dict[str, Coordinate]:
    """A mapping of names to coordinates or pairs, checked.

    >>> read_coordinates({"dose": (0, 10)})
    {'dose': Continuous(low=0.0, high=10.0)}
    """
    if not isinstance(given, Mapping) or not given:
        raise InvalidArgument("coordinates", "a non-empty mapping from names to coordinates")
    pairs = cast(Mapping[object, object], given).items()
    return {_name(name): read_coordinate(name, coordinate) for name, coordinate in pairs}


def read_context_names(given: object, names: tuple[str, ...]) -> tuple[str, ...]:
    """The coordinates that come with the user, checked."""
    chosen = sequence(given)
    # In the order of the coordinates: how it was written makes no other box.
    ordered = tuple(name for name in names if name in (chosen or ()))
    if chosen is None or len(ordered) != len(chosen):
        raise InvalidArgument("context", f"different names out of {listing(names)}", given)
    if len(ordered) == len(names):
        raise InvalidArgument("context", "at least one coordinate left to choose", given)
    return ordered


def _name(name: object) -> str:
    # Python reads names in this normal form; others could never be written in a predicate.
    normal = isinstance(name, str) and unicodedata.normalize("NFKC", name) == name
    if not isinstance(name, str) or not normal or not name.isidentifier():
        raise InvalidArgument("coordinates", "names that are identifiers", name)
    if keyword.iskeyword(name):
        raise InvalidArgument("coordinates", "names that are not Python keywords", name)
    return str.__str__(name)


def read_coordinate(name: object, given: object) -> Coordinate:
    """A coordinate as it is, a pair (low, high) as `Continuous`.

    >>> read_coordinate("dose", (0, 10))
    Continuous(low=0.0, high=10.0)
    """
    if isinstance(given, Continuous | Integer | Categorical):
        return given
    argument = f"coordinates[{name!r}]"
    ends = sequence(given)
    if ends is None or len(ends) != 2:
        expectation = "Continuous, Integer, Categorical or a pair (low, high)"
        raise InvalidArgument(argument, expectation, given)
    try:
        return Continuous(*cast(Sequence[float], ends))
    except InvalidArgument as error:
        expectation = f"a pair low < high of numbers fit for Continuous ({error})"
        raise InvalidArgument(argument, expectation) from error


def sequence(given: object) -> Sequence[object] | None:
    """What came, if it is a list of things; None for text and all else.

    >>> sequence(np.array([1.0, 2.0])), sequence("ab")
    ([1.0, 2.0], None)
    """
    if isinstance(given, np.ndarray) and given.ndim > 0:
        return cast(list[object], given.tolist())
    if isinstance(given, str | bytes | bytearray) or not isinstance(given, Sequence):
        return None
    return cast(Sequence[object], given)


def mapping(given: object) -> Mapping[object, object] | None:
    """What came, if it has values by name, as a row of pandas or sqlite3 does; None for all else.

    >>> mapping({"age": 36}), mapping([36])
    ({'age': 36}, None)
    """
    if isinstance(given, Mapping):
        return cast(Mapping[object, object], given)
    named = callable(getattr(given, "keys", None)) and hasattr(given, "__getitem__")
    return dict(cast(Any, given)) if named else None


def listing(names: Sequence[str]) -> str:
    """Names in words.

    >>> listing(("dose", "age"))
    "'dose', 'age'"
    """
    return ", ".join(map(repr, names)) or "(none)"


def _part(uniforms: Floats, count: int) -> Floats:
    return np.minimum(np.floor(uniforms * count), count - 1)


def _number(value: object) -> float:
    """A number as a float; not-a-number for anything else, booleans included."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(cast(float, value))
    except OverflowError:
        return math.inf


def _whole(argument: str, value: object) -> int:
    expectation = f"a whole number between -{LARGEST_INTEGER} and {LARGEST_INTEGER}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidArgument(argument, expectation, value)
    number = int(cast(int, value))
    if abs(number) > LARGEST_INTEGER:
        raise InvalidArgument(argument, expectation)
    return number


def _categories(values: object) -> tuple[str, ...]:
    expectation = "at least 2 distinct, non-empty, printable strings"
    given = sequence(values)
    if given is None:
        raise InvalidArgument("values", expectation, values)
    names: list[str] = []
    for value in given:
        # Printable excludes lone surrogates, which have no canonical bytes.
        if not isinstance(value, str) or not value or not value.isprintable():
            raise InvalidArgument("values", expectation, value)
        names.append(str.__str__(value))
    if len(names) < 2 or len(set(names)) < len(names):
        raise InvalidArgument("values", expectation, tuple(names))
    return tuple(names)


def check_shape(shape: object, coordinates: Mapping[str, Coordinate]) -> None:
    """Refuse a shape that is none, or not one of these coordinates."""
    if not isinstance(shape, str) or shape not in ("box", "ball"):
        raise InvalidArgument("shape", "'box' or 'ball'", shape)
    for name, coordinate in coordinates.items():
        if shape == "ball" and not isinstance(coordinate, Continuous):
            raise InvalidArgument("shape", f"'box', because {name} is not Continuous", shape)


def is_listable(coordinate: Coordinate) -> TypeGuard[Integer | Categorical]:
    """Whether its values are few enough to be tried one by one."""
    return not isinstance(coordinate, Continuous) and coordinate.count <= LARGEST_SWEEP
