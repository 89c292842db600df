"""Tables as people have them: mappings of columns, records, arrays."""

from collections.abc import Mapping, Sequence, Sized
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

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
    except (TypeError, ValueError, OverflowError):
        values = np.array([np.nan])
    if values.shape != (rows,) or not np.isfinite(values).all():
        wrong = [i for i, each in enumerate(listed) if not _is_number(each)]
        raise InvalidArgument(
            argument, f"a finite number in every row (row {wrong[0] if wrong else 0})"
        )
    return values.tolist()


def rows_of(argument: str, table: object, names: Sequence[str]) -> list[object]:
    """A row for each person: a mapping; of an array its columns have the order of the names.

    >>> rows_of("contexts", {"age": [61, 40]}, ["age"])
    [{'age': 61}, {'age': 40}]
    """
    if isinstance(table, np.ndarray):
        numbers = _array(argument, cast(NDArray[Any], table), names)
        return [dict(zip(names, row, strict=True)) for row in numbers.tolist()]
    if isinstance(table, Mapping):
        given = cast(Mapping[str, object], table)
        rows = _length(argument, given)
        cells = [column(argument, values, rows) for values in given.values()]
        return [dict(zip(given, row, strict=True)) for row in zip(*cells, strict=True)]
    if isinstance(table, str | bytes) or not isinstance(table, Sequence):
        expected = "a mapping of names to columns, a list of mappings, or an array"
        raise InvalidArgument(argument, f"{expected} (of a data frame: frame.to_dict('list'))")
    return list(cast(Sequence[object], table))


def _array(argument: str, table: NDArray[Any], names: Sequence[str]) -> Floats:
    if table.ndim != 2 or table.shape[1] != len(names) or table.dtype.kind not in "fiub":
        raise InvalidArgument(
            argument, f"an array of numbers with {len(names)} columns: {', '.join(names)}"
        )
    return table.astype(np.float64)


def _length(argument: str, table: Mapping[str, object]) -> int:
    lengths = {len(values) for values in table.values() if isinstance(values, Sized)}
    if len(lengths) != 1:
        raise InvalidArgument(argument, "columns of one length")
    return lengths.pop()


def _is_number(value: object) -> bool:
    try:
        return bool(np.isfinite(float(cast(Any, value))))
    except (TypeError, ValueError, OverflowError):
        return False
