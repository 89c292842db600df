"""Finished runs as lines of a CSV file: one frozen dataclass a line, whole or not at all."""

import csv
from collections.abc import Iterable
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from discreet.errors import InvalidArgument

T = TypeVar("T")


def read_runs(kind: type[T], path: Path) -> list[T]:
    """The runs that a file holds; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file)) or [[]]
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
    with draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(kind))  # pyright: ignore[reportArgumentType]
        writer.writerows(astuple(run) for run in runs)  # pyright: ignore[reportArgumentType]
    draft.replace(path)
