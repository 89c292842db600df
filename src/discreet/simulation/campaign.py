"""Long campaigns that go on where they stopped: a finished run is a line of a file at once.

The first line says what is played; a file of anything else is refused. Every other line is a run:
its name and its row, as JSON. A line is on the disk before the next run begins, and one that was
cut short when the writer was killed is not a run.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from discreet.errors import InvalidArgument

Row = TypeVar("Row", bound=Mapping[str, Any])


class Campaign:
    """Rows by name, kept in a file where there is one.

    >>> campaign = Campaign(None, {"seed": 0})
    >>> campaign.run("run 0", lambda: {"regret": 3.5})
    {'regret': 3.5}
    """

    def __init__(self, path: Path | None, settings: Mapping[str, Any]) -> None:
        self._path, self._rows = path, dict[str, Any]()
        if path is not None:
            head = {"settings": dict(settings)}
            if not _lines(path):
                _begin(path, head)
            self._rows = _read(path, head)

    def has(self, name: str) -> bool:
        """Whether this run is finished."""
        return name in self._rows

    def run(self, name: str, play: Callable[[], Row]) -> Row:
        """The row of this run: from the file, or played now and kept."""
        if name not in self._rows:
            row = play()
            if self._path is not None:
                _append(self._path, {"run": name, "row": row})
            self._rows[name] = row
        return self._rows[name]


def _lines(path: Path) -> list[bytes]:
    """The whole lines of a file; none where there is no file."""
    try:
        return path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    except OSError as error:
        raise InvalidArgument("resume", f"a file to go on from ({error.strerror})") from None


def _read(path: Path, head: object) -> dict[str, Any]:
    try:
        first, *rest = map(json.loads, _lines(path))
        rows = {each["run"]: each["row"] for each in rest}
        known: Any = first["settings"]
    except (ValueError, KeyError, TypeError):
        raise InvalidArgument("resume", "a file that this command wrote", str(path)) from None
    if first != json.loads(json.dumps(head)):
        words = f"a file of these settings, not of {json.dumps(known)}"
        raise InvalidArgument("resume", words, str(path))
    # What was cut short goes, or the next line would be joined to it.
    whole = b"".join(line + b"\n" for line in _lines(path))
    if whole != path.read_bytes():
        _replace(path, whole)
    return rows


def _begin(path: Path, head: object) -> None:
    if path.exists() and path.stat().st_size:
        raise InvalidArgument("resume", "a file that this command wrote", str(path))
    _replace(path, _line(head))


def _replace(path: Path, data: bytes) -> None:
    draft = path.with_name(path.name + ".part")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    except OSError as error:
        raise InvalidArgument("resume", f"a file that can be written ({error.strerror})") from None


def _append(path: Path, line: object) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, _line(line))
        os.fsync(file)
    finally:
        os.close(file)


def _line(value: object) -> bytes:
    return json.dumps(value, allow_nan=False).encode() + b"\n"
