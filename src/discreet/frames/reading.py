"""Tables as people have them: data frames, Arrow tables, arrays, columns by name.

A table is read by the names that a domain gives; a column says what kind of values it holds, so
that one of the wrong kind is refused as a whole, before anyone has asked. What is wrong in a row is
for the row. No value is in an error, and no name but the domain's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument

Kind = Literal["float", "integer", "truth", "text", "any", "other"]
_KINDS: dict[str, Kind] = {
    "f": "float",
    "i": "integer",
    "u": "integer",
    "b": "truth",
    "U": "text",
    "T": "text",
    "O": "any",
}


@dataclass(frozen=True, eq=False)
class Column:
    """One value a row, and what kind they are: `any` where each row has its own."""

    values: "NDArray[Any] | list[object]" = field(repr=False)
    kind: Kind = "any"

    def __len__(self) -> int:
        return len(self.values)

    def listed(self) -> list[object]:
        """The values as Python's own."""
        return self.values if isinstance(self.values, list) else self.values.tolist()


def is_table(given: object) -> bool:
    """Whether it has columns by name, or is an array with a row for each point.

    >>> is_table({"age": [61]}), is_table(np.zeros((3, 1))), is_table([{"age": 61}])
    (True, True, False)
    """
    if isinstance(given, np.ndarray):
        array = cast(NDArray[Any], given)
        return array.dtype.names is not None or array.ndim == 2
    if isinstance(given, Mapping):
        return all(_is_column(each) for each in cast(Mapping[object, object], given).values())
    return _is_frame(given)


def columns(argument: str, table: object, names: Sequence[str]) -> dict[str, Column]:
    """The columns of these names, all of one length; an array has them in this order.

    >>> found = columns("contexts", {"age": [61, 40]}, ["age"])
    >>> found["age"].listed()
    [61, 40]
    """
    found = _named(argument, table, names)
    missing = [name for name in names if name not in found]
    if missing:
        raise InvalidArgument(argument, f"a column for {_listing(missing)}: rename yours")
    if len(found) > len(names):
        words = f"no columns but {_listing(names)}: select them, frame[[...]]"
        raise InvalidArgument(argument, words)
    if len({len(column) for column in found.values()}) > 1:
        raise InvalidArgument(argument, "columns of one length")
    return {name: found[name] for name in names}


def column(argument: str, given: object, rows: int) -> list[object]:
    """One value a row, of a list, an array, or a data frame's column.

    >>> column("users", np.array([17, 18]), 2)
    [17, 18]
    """
    if not _is_column(given):
        raise InvalidArgument(argument, "a list, an array or a column: one value a row")
    if is_table(given):
        raise InvalidArgument(argument, "one column of the table: frame['name'], or array[:, 0]")
    listed = _column(given).listed()
    if len(listed) != rows:
        raise InvalidArgument(argument, f"{rows} values, one a row", len(listed))
    return listed


def numbers(argument: str, given: object, rows: int) -> list[float]:
    """One finite number a row, True and False for 1 and 0; a wrong one is said by its row alone.

    >>> numbers("rewards", [0.5, True], 2)
    [0.5, 1.0]
    """
    listed = column(argument, given, rows)
    if not {type(each) for each in listed} <= {float, int, bool}:
        listed = [_number(each) for each in listed]
    try:
        values = np.array(listed, dtype=np.float64)
    except OverflowError:  # a whole number beyond every float
        values = np.array([_number(each) for each in listed])
    if not np.isfinite(values).all():
        row = int(np.isfinite(values).argmin())
        words = f"a finite number, True or False in every row (row {row})"
        raise InvalidArgument(argument, f"{words}; abandon what has none")
    return values.tolist()


# -- tables


def _named(argument: str, table: object, names: Sequence[str]) -> dict[str, Column]:
    if isinstance(table, np.ndarray):
        return _array(argument, cast(NDArray[Any], table), names)
    if isinstance(table, Mapping):
        given = cast(Mapping[str, object], table)
        return {name: _column(values) for name, values in given.items()}
    return _frame(argument, table, names)


def _array(argument: str, table: NDArray[Any], names: Sequence[str]) -> dict[str, Column]:
    if table.dtype.names is not None and table.ndim == 1:
        return {name: _column(table[name]) for name in table.dtype.names}
    if table.ndim != 2 or table.shape[1] != len(names):
        words = f"an array with {len(names)} columns: {', '.join(names)}"
        raise InvalidArgument(argument, words)
    return {name: _column(table[:, i]) for i, name in enumerate(names)}


def _frame(argument: str, table: object, names: Sequence[str]) -> dict[str, Column]:
    """Whatever has an Arrow stream: pandas, polars, Arrow itself."""
    arrow = pyarrow(argument)
    try:
        read = arrow.table(table)
    except Exception:  # noqa: BLE001  # it quotes what came
        words = "a data frame that Arrow can read: one type a column"
        raise InvalidArgument(argument, words) from None
    given: list[str] = read.column_names
    # An index of pandas comes as a column; it counts only where the domain has its name.
    about = cast(dict[str, Any], read.schema.pandas_metadata or {})
    index: list[object] = about.get("index_columns", [])
    kept = [name for name in given if name not in index or name in names]
    if len(set(kept)) < len(kept):
        raise InvalidArgument(argument, "columns of different names")
    return {name: _column(read.column(name)) for name in kept}


def _is_column(given: object) -> bool:
    return hasattr(given, "__len__") and not isinstance(given, str | bytes | Mapping)


def _is_frame(given: object) -> bool:
    # A column has an Arrow stream, too, but no columns.
    return hasattr(given, "__arrow_c_stream__") and hasattr(given, "columns")


def pyarrow(argument: str) -> Any:
    """Arrow, loaded when a data frame comes or goes; or an error that says what to do without."""
    try:
        import pyarrow as arrow  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        words = (
            "pyarrow, for data frames (pip install 'discreet[frames]'), or plain columns by name"
        )
        raise InvalidArgument(argument, f"{words}: frame.to_dict('list')") from None
    return arrow


# -- columns


def _column(given: object) -> Column:
    values = cast(Any, given)
    if isinstance(given, np.ndarray) and values.ndim == 1:
        kind = _KINDS.get(values.dtype.kind, "other")
        return Column(values.tolist() if kind == "any" else values, kind)
    if hasattr(values, "to_pylist"):
        kind = _arrow_kind(values.type)
        whole = kind in ("float", "integer", "truth") and not values.null_count
        is_plain = whole and not hasattr(values.type, "value_type")
        plain = values.to_numpy(zero_copy_only=False) if is_plain else values.to_pylist()
        return Column(plain, kind)
    for way in ("to_list", "tolist"):
        if hasattr(values, way):
            return Column(list(getattr(values, way)()))
    return Column(list(values))


def _arrow_kind(arrow_type: Any) -> Kind:
    """What an Arrow type holds; of a category, its values'."""
    name = str(getattr(arrow_type, "value_type", arrow_type))
    kinds: list[Kind] = [kind for prefix, kind in _ARROW if name.startswith(prefix)]
    return kinds[0] if kinds else "other"


_ARROW: tuple[tuple[str, Kind], ...] = (
    ("string", "text"),
    ("large_string", "text"),
    ("int", "integer"),
    ("uint", "integer"),
    ("float", "float"),
    ("halffloat", "float"),
    ("double", "float"),
    ("bool", "truth"),
    ("null", "any"),
)


def _number(value: object) -> float:
    if isinstance(value, str | bytes):
        return np.nan
    try:
        return float(cast(Any, value))
    except (TypeError, ValueError):
        return np.nan
    except OverflowError:
        return np.inf


def _listing(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
