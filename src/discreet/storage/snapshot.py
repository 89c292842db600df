"""The records of a journal, read without a lock: a writer may be at work and notices nothing.

Opening the file with SQLite would take its lock, make files beside it, and keep a writer out. So
its bytes are copied into memory, with what the write-ahead log adds to them, and SQLite reads the
copy. What was being written at that moment is missing or whole: frames of the log carry a checksum,
the database itself only changes when the log is folded into it, which shows in its time, and the
chain of records is verified as ever.

The log: https://www.sqlite.org/fileformat.html#the_write_ahead_log.
"""

import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from discreet.errors import InvalidArgument, JournalDamaged, JournalFailed, JournalLocked
from discreet.storage.journal import READ_ONLY, check_header, is_held, verify

#: A writer folds its log in once in a while: within this many tries it is between two times.
TRIES = 5


def records(path: str | os.PathLike[str]) -> list[bytes]:
    """Every record of the journal, first to last.

    While this process itself has the journal open it is refused: closing a second descriptor
    would drop the writer's lock (POSIX).

    >>> records("no-such.db")
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: path: expected a journal that exists, got 'no-such.db'
    """
    place = Path(path)
    if not place.is_file():
        raise InvalidArgument("path", "a journal that exists", str(path))
    if is_held(place):
        raise JournalLocked(f"{path} is open in this process: close that journal first")
    for _ in range(TRIES - 1):
        with suppress(JournalDamaged):
            return _read(place, *_copied(place))
    return _read(place, *_copied(place))


def _read(path: Path, database: bytes, log: bytes) -> list[bytes]:
    """The records of a copied database and its log."""
    check_header(path, database[:100])
    image = bytearray(database)
    for page, content in _frames(log):
        end = page * len(content)
        image.extend(bytes(max(0, end - len(image))))
        image[end - len(content) : end] = content
    image[18:20] = b"\1\1"  # no log any more: a database in memory cannot have one
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(bytes(image))
            verify(connection, str(path))
            rows = connection.execute("SELECT body FROM record ORDER BY seq").fetchall()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise JournalDamaged(f"{path}: {error}; {READ_ONLY}") from error
    return [body for (body,) in rows]


def _copied(path: Path) -> tuple[bytes, bytes]:
    """The bytes of the database and of its log, at one moment."""
    log = Path(f"{path}-wal")
    try:
        for _ in range(TRIES):
            before = path.stat()
            found = path.read_bytes(), log.read_bytes() if log.exists() else b""
            after = path.stat()
            if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
                return found
    except OSError as error:
        raise InvalidArgument("path", f"a readable file ({error.strerror})", str(path)) from None
    raise JournalFailed(f"{path} is being written to all the time: try again")


def _frames(log: bytes) -> Iterator[tuple[int, bytes]]:
    """The pages that a log holds, up to its last whole transaction: their numbers and bytes."""
    if len(log) < 32:
        return
    magic, _, size, _, *salts = struct.unpack_from(">6I", log)
    if magic & ~1 != 0x377F0682 or not 512 <= size <= 65536:
        return
    order = ">" if magic & 1 else "<"
    sums = _checksum(order, log[:24], (0, 0))
    if sums != struct.unpack_from(">2I", log, 24):
        return
    pending: list[tuple[int, bytes]] = []
    for at in range(32, len(log) - size - 23, size + 24):
        page, is_last, *stated = struct.unpack_from(">4I", log, at)
        content = log[at + 24 : at + 24 + size]
        sums = _checksum(order, log[at : at + 8] + content, sums)
        if stated != salts or sums != struct.unpack_from(">2I", log, at + 16) or not page:
            return
        pending.append((page, content))
        if is_last:
            yield from pending
            pending.clear()


def _checksum(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    """SQLite's own: s0 += x_i + s1, s1 += x_{i+1} + s0, over pairs of 32-bit words."""
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
