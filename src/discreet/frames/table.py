"""Tables to take away: named columns that data frames, CSV and Parquet understand."""

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from discreet.errors import InvalidArgument
from discreet.frames.reading import pyarrow

Cell = float | int | str | bool | None


class Table(Mapping[str, tuple[Cell, ...]]):
    """Columns of one length by name: `dict(table)` has them, and anything that reads Arrow streams.

        polars.DataFrame(table)    pandas.DataFrame(dict(table))    pyarrow.table(table)

    >>> table = Table({"dose": [2.5, 5.0], "mean reward": [0.3, 0.7]})
    >>> list(table), table["dose"], table.rows[1]
    (['dose', 'mean reward'], (2.5, 5.0), {'dose': 5.0, 'mean reward': 0.7})
    """

    def __init__(self, columns: Mapping[str, Sequence[Cell]]) -> None:
        self._columns = MappingProxyType({name: tuple(each) for name, each in columns.items()})
        if len({len(each) for each in self._columns.values()}) > 1:
            raise InvalidArgument("columns", "columns of one length")

    def __getitem__(self, name: str) -> tuple[Cell, ...]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def rows(self) -> list[dict[str, Cell]]:
        """A mapping for each row."""
        lines = zip(*self._columns.values(), strict=True)
        return [dict(zip(self._columns, line, strict=True)) for line in lines]

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The Arrow stream of the columns; it takes pyarrow."""
        return self._arrow().__arrow_c_stream__(requested_schema)

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write a .csv, or with pyarrow a .parquet; an older file of this name is replaced."""
        place = Path(path)
        if check_suffix("path", place) == ".parquet":
            pyarrow("path")
            import pyarrow.parquet as parquet  # pyright: ignore[reportMissingTypeStubs]

            writer: Any = parquet
            writer.write_table(self._arrow(), place)
            return
        with place.open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file)
            lines.writerow(self._columns)
            lines.writerows(zip(*self._columns.values(), strict=True))

    def _arrow(self) -> Any:
        return pyarrow("table").table({name: list(each) for name, each in self._columns.items()})


def check_suffix(argument: str, path: Path) -> str:
    """How a table is written, by the file's name.

    >>> check_suffix("path", Path("releases.csv"))
    '.csv'
    """
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InvalidArgument(argument, "a file name that ends in .csv or .parquet", str(path))
    return suffix
