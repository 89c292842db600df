"""Tables as people have them: data frames, mappings of columns, records, arrays.

Anything with an Arrow stream will do (pandas with pyarrow, polars, Arrow itself).
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from discreet.arrays import Floats
from discreet.errors import InvalidArgument


def column(argument: str, given: object, rows: int) -> list[object]:
    """One value a row, of a list, an array, or a data frame's column.

    >>> column("users", np.array([17, 18]), 2)
    [17, 18]
    """
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__len__"):
        raise InvalidArgument(argument, "a list, an array or a column: one value a row")
    values = cast(Any, given)
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(listed) != rows:
        raise InvalidArgument(argument, f"{rows} values, one a row", len(listed))
    return [each.as_py() if hasattr(each, "as_py") else each for each in listed]


def numbers(argument: str, given: object, rows: int) -> list[float]:
    """One finite number a row; which one is not is said by its row alone.

    >>> numbers("rewards", [0.5, True], 2)
    [0.5, 1.0]
    """
    listed = column(argument, given, rows)
    try:
        values = np.array(listed, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if values.shape != (rows,) or not np.isfinite(values).all():
        wrong = [i for i, each in enumerate(listed) if not _is_number(each)]
        raise InvalidArgument(
            argument, f"a finite number in every row (row {wrong[0] if wrong else 0})"
        )
    return values.tolist()


def rows_of(
    argument: str, table: object, names: Sequence[str]
) -> list[Mapping[str, object]] | Floats:
    """A table's rows by name, or an array's as they are: its columns have the order of the names.

    >>> rows_of("contexts", {"age": [61, 40]}, ["age"])
    [{'age': 61}, {'age': 40}]
    """
    if isinstance(table, np.ndarray):
        return _array(argument, table, names)
    if hasattr(table, "__arrow_c_stream__"):
        table = _from_arrow(argument, table)
    if isinstance(table, Mapping):
        columns = {
            str(name): column(f"{argument}[{name!r}]", values, _length(argument, table))
            for name, values in table.items()
        }
        keys, cells = list(columns), list(columns.values())
        return [dict(zip(keys, row, strict=True)) for row in zip(*cells, strict=True)]
    if isinstance(table, str | bytes) or not isinstance(table, Sequence):
        raise InvalidArgument(
            argument,
            "a data frame, a mapping of names to columns, a list of mappings, or an array",
        )
    return list(cast(Sequence[Mapping[str, object]], table))


def _array(argument: str, table: Any, names: Sequence[str]) -> Floats:
    if table.ndim != 2 or table.shape[1] != len(names) or table.dtype.kind not in "fiub":
        raise InvalidArgument(
            argument, f"an array of numbers with {len(names)} columns: {', '.join(names)}"
        )
    return table.astype(np.float64)


def _length(argument: str, table: Mapping[Any, Any]) -> int:
    lengths = {len(values) for values in table.values() if hasattr(values, "__len__")}
    if len(lengths) != 1:
        raise InvalidArgument(argument, "columns of one length")
    return lengths.pop()


def _from_arrow(argument: str, table: Any) -> Mapping[str, object]:
    try:
        import pyarrow
    except ImportError as error:
        raise InvalidArgument(
            argument, "pyarrow to read data frames with: pip install 'discreet[frames]'"
        ) from error
    return pyarrow.table(table).to_pydict()


def _is_number(value: object) -> bool:
    try:
        return bool(np.isfinite(float(cast(Any, value))))
    except (TypeError, ValueError):
        return False
