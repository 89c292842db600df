"""Finished runs as lines of a CSV file: one frozen dataclass a line, whole or not at all."""

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from discreet.errors import InvalidArgument

T = TypeVar("T")


def read_runs(kind: type[T], path: Path) -> list[T]:
    """The runs that a file holds; none where there is no file.

    A last line without its end was being written when the writer was killed: it is not a run.
    """
    if not path.exists():
        return []
    whole = path.read_bytes().rpartition(b"\n")[0].decode("utf-8")
    head, *rows = list(csv.reader(io.StringIO(whole))) or [[]]
    hints = get_type_hints(kind)
    if head != list(hints):
        raise InvalidArgument("table", "a table that this program wrote", str(path))
    readers: list[Any] = [hint if hint in (int, float) else str for hint in hints.values()]
    try:
        return [
            kind(*(read(text) for read, text in zip(readers, row, strict=True))) for row in rows
        ]
    except ValueError as error:
        raise InvalidArgument("table", f"a table that this program wrote ({error})") from None


def write_runs(kind: type[T], path: Path, runs: Iterable[T]) -> None:
    """Every run, in the order given; an earlier file is replaced whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    names = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType]
    draft.write_bytes(_line(names) + b"".join(_line(_values(run)) for run in runs))
    draft.replace(path)


def append_run(path: Path, run: object) -> None:
    """One more line at the end of a file that `write_runs` began, on the disk before it returns."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, _line(_values(run)))
        os.fsync(file)
    finally:
        os.close(file)


def _values(run: object) -> Iterable[object]:
    return astuple(run)  # pyright: ignore[reportArgumentType]


def _line(values: Iterable[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode("utf-8")
