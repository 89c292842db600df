"""Append-only records: SQLite from the standard library; one writer.

Row n holds `body_n` and `chain_n = SHA-256(chain_{n-1} || body_n)`, with `chain_0` 32 zero
bytes. SQLite remembers the highest row number ever given (AUTOINCREMENT), so a missing last row
shows too. The chain finds accidents, not forgers: it has no key. Nor can it miss records that
never reached the file it is given: an older copy, or a `-wal` lost after a crash.
"""

import ctypes
import hashlib
import os
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import NoReturn, Protocol, Self, TypeVar
from weakref import WeakSet

from discreet.errors import (
    InvalidArgument,
    JournalDamaged,
    JournalFailed,
    JournalForeign,
    JournalLocked,
    Refused,
)
from discreet.one_copy import OneCopy

__all__ = ["MAGIC", "READ_ONLY", "Journal", "SQLiteJournal", "check_header", "is_held", "verify"]

T = TypeVar("T")

#: How every SQLite file begins.
MAGIC = b"SQLite format 3\0"
#: What to do about a journal that is damaged.
READ_ONLY = (
    "the study cannot go on from it. A copy may be read (discreet inspect) but not continued: it "
    "would draw again what was released since"
)
_APPLICATION = int.from_bytes(b"dscr")
_VERSION = 1
_SCHEMA = (
    "CREATE TABLE record (seq INTEGER PRIMARY KEY AUTOINCREMENT, "
    "body BLOB NOT NULL, chain BLOB NOT NULL)"
)
_SETTINGS = (
    "PRAGMA locking_mode = EXCLUSIVE",  # before anything is read: no -shm file, one process
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA trusted_schema = OFF",
)
_START = bytes(32)


class Journal(Protocol):
    """Records in the order they were appended, kept once `append` returns.

    >>> def replay(journal: Journal) -> list[bytes]:
    ...     return list(journal.records())
    >>> with SQLiteJournal(":memory:") as journal:
    ...     replay(journal)
    []
    """

    def append(self, *records: bytes) -> None:
        """Add all records or none; they are durable when this returns.

        A `DiscreetError` says that none were added, or that the journal takes no more.
        """
        ...

    def records(self) -> Iterator[bytes]:
        """The records appended before this call, first to last."""
        ...

    def close(self) -> None:
        """Let go of the journal; closing again does nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *raised: object) -> None: ...


class _Connection(sqlite3.Connection):
    """A connection that can be weakly referenced."""


class SQLiteJournal(OneCopy):
    """A journal in one file (mode 0600 when new), or, not durable, in `":memory:"`.

    Threads may share it. A second writer is refused, and so is a forked child; the lock goes
    with the process that holds it, however that ends. While it is open, do not open the file by
    other means in the same process: closing any descriptor of it would drop the lock (POSIX).
    A new file appears whole, so an empty one is no new journal: it may have been one, and is
    refused.

    >>> with SQLiteJournal(":memory:") as journal:
    ...     journal.append(b"epoch 1", b"release 1")
    ...     list(journal.records())
    [b'epoch 1', b'release 1']
    """

    _identity: tuple[int, int] | None = None
    _connection: _Connection | None = None

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        super().__init__()
        self._path = ":memory:" if path == ":memory:" else str(Path(path).absolute())
        # Held by plain `with` alone: an interrupt in a context manager's own code would keep it.
        self._lock = threading.RLock()
        try:
            with _GATE:
                self._open()
            self._use(lambda connection: verify(connection, self._path))
        except BaseException:
            self._release()
            raise

    def append(self, *records: bytes) -> None:
        """Add all records or none, in one transaction; they are durable when this returns."""
        if not all(type(record) is bytes for record in records):
            raise InvalidArgument("records", "bytes only")
        self._use(lambda connection: self._write(connection, records))

    def records(self) -> Iterator[bytes]:
        """The records appended before this call, first to last, each checked as it is read."""
        return self._walk(self._use(_head)[0])

    def close(self) -> None:
        """Let go of the file; closing again, or in a forked child, does nothing."""
        if self.is_home:
            with self._lock:
                self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __del__(self) -> None:
        """A journal that nobody has any more, after an interrupt say, holds no file."""
        if self.is_home:
            self._release()

    # -- opening

    def _open(self) -> None:
        if self._path != ":memory:":
            self._claim()
        self._connection = _Connection(
            self._path, timeout=0, isolation_level=None, check_same_thread=False
        )
        _CONNECTIONS.add(self._connection)
        self._use(self._settle)

    def _settle(self, connection: sqlite3.Connection) -> None:
        for setting in _SETTINGS:
            connection.execute(setting).close()
        if self._path == ":memory:":
            _begin(connection)
        connection.execute("BEGIN EXCLUSIVE")  # from here on the file is ours
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL").fetchall()

    def _claim(self) -> None:
        """Refuse what is not ours by looking at it only; make the file if there is none."""
        path = Path(self._path)
        try:
            _check_place(path)
            if not path.exists():
                _create(path)
            identity = _identify(path)
        except OSError as error:
            raise InvalidArgument("path", f"a file to write to ({error})", self._path) from None
        if identity in _HELD:
            raise JournalLocked(f"{self._path} is open in this process: close that journal first")
        with path.open("rb") as file:
            check_header(path, file.read(100))
        self._identity = identity
        _HELD.add(identity)

    # -- reading and writing

    def _walk(self, last: int) -> Iterator[bytes]:
        chain = _START
        for seq in range(1, last + 1):
            read = partial(_checked, seq=seq, chain=chain, path=self._path)
            body, chain = self._use(read)
            yield body

    def _write(self, connection: sqlite3.Connection, records: tuple[bytes, ...]) -> None:
        try:
            connection.execute("BEGIN IMMEDIATE")
            _insert(connection, records)
            self._commit(connection)
        except BaseException:  # an interrupt, too, leaves no transaction behind
            if self._connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            # After a failed sync nobody knows what the disk kept: only reading it again tells.
            self._release()
            raise JournalFailed(
                f"{self._path}: {error}; the journal is closed: make room, then open it again"
            ) from error

    # -- states and errors

    def _use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Work with the connection, in one thread, with SQLite's errors turned into ours."""
        self._usable()  # before the lock: in a forked child it may be held for ever
        with self._lock:
            connection = self._usable()
            try:
                return work(connection)
            except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
                self._translate(error)

    def _usable(self) -> sqlite3.Connection:
        self.check_process()
        if self._connection is None:
            raise Refused(f"{self._path} is closed: open a new journal")
        return self._connection

    def _translate(self, error: Exception) -> NoReturn:
        if isinstance(error, OverflowError):
            raise InvalidArgument("records", "fewer bytes in each") from error
        if isinstance(error, sqlite3.ProgrammingError):  # it was interrupted while it closed
            raise Refused(f"{self._path} is closed: open a new journal") from error
        # Without a code: the sqlite3 module met bytes that should have been a text.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise JournalLocked(
                f"{self._path} is in use by another process: stop it, or choose another file"
            ) from error
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
            raise JournalDamaged(f"{self._path}: {error}; {READ_ONLY}") from error
        raise JournalFailed(
            f"{self._path}: {error}; nothing was written: see to the disk, then try again"
        ) from error

    def _release(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._identity is not None:
            _HELD.discard(self._identity)
            self._identity = None


def _link(chain: bytes, body: bytes) -> bytes:
    return hashlib.sha256(chain + body).digest()


def _head(connection: sqlite3.Connection) -> tuple[int, bytes]:
    newest = "SELECT seq, chain FROM record ORDER BY seq DESC LIMIT 1"
    return connection.execute(newest).fetchone() or (0, _START)


def _insert(connection: sqlite3.Connection, records: tuple[bytes, ...]) -> None:
    last, chain = _head(connection)
    for seq, body in enumerate(records, last + 1):
        chain = _link(chain, body)
        connection.execute("INSERT INTO record VALUES (?, ?, ?)", (seq, body, chain))


# -- a new file


def _begin(connection: sqlite3.Connection) -> None:
    """Make a database a journal that holds no record."""
    connection.execute(f"PRAGMA application_id = {_APPLICATION}").close()
    connection.execute(f"PRAGMA user_version = {_VERSION}").close()
    connection.execute(_SCHEMA)


def _create(path: Path) -> None:
    """Make a journal, for its owner's eyes only: whole or not at all, and in no other's place."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _begin(connection)
        image = connection.serialize()
    descriptor, name = tempfile.mkstemp(prefix=".new-journal-", dir=path.parent)
    try:
        _fill(descriptor, image)
        with suppress(FileExistsError):  # someone was quicker, and the lock decides
            _link_or_write(name, path, image)
    finally:
        Path(name).unlink()


def _link_or_write(name: str, path: Path, image: bytes) -> None:
    try:
        path.hardlink_to(name)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: an interrupt may leave what is refused later
        _fill(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), image)


def _fill(descriptor: int, image: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(image)
        file.flush()
        os.fsync(file.fileno())


# -- what a file holds, without changing it


def verify(connection: sqlite3.Connection, path: str) -> None:
    """Raise `JournalDamaged` unless every record ever written to this database is there."""
    if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        _damaged(path, "its pages do not fit together")
    schema = connection.execute("SELECT sql FROM sqlite_schema ORDER BY name").fetchall()
    if schema != [(_SCHEMA,), ("CREATE TABLE sqlite_sequence(name,seq)",)]:
        _damaged(path, "its tables were changed")
    given = connection.execute("SELECT seq FROM sqlite_sequence").fetchall() or [(0,)]
    span = connection.execute("SELECT count(*), min(seq), max(seq) FROM record").fetchone()
    last = span[0]
    if given != [(last,)] or (last and span[1:] != (1, last)):
        _damaged(path, "records are missing")
    chain = _START
    for seq in range(1, last + 1):
        chain = _checked(connection, seq, chain, path)[1]


def _checked(
    connection: sqlite3.Connection, seq: int, chain: bytes, path: str
) -> tuple[bytes, bytes]:
    row = connection.execute("SELECT body, chain FROM record WHERE seq = ?", (seq,)).fetchone()
    if row is None or type(row[0]) is not bytes or row[1] != _link(chain, row[0]):
        _damaged(path, f"record {seq} is not what was written")
    return row


def _damaged(path: str, what: str) -> NoReturn:
    raise JournalDamaged(f"{path}: {what}; {READ_ONLY}")


def is_held(path: Path) -> bool:
    """Whether this process has the journal at this path open."""
    return _identify(path) in _HELD


def _check_place(path: Path) -> None:
    if not path.parent.is_dir():
        raise InvalidArgument("path", "a file in a folder that exists", str(path))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InvalidArgument("path", "a file in a folder that can be written", str(path))
    if path.exists() and not path.is_file():
        raise InvalidArgument("path", "a regular file", str(path))
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        raise InvalidArgument("path", "a file that can be read and written", str(path))
    orphan = not path.exists() or not path.stat().st_size
    if orphan and Path(f"{path}-wal").exists():  # SQLite would delete it, and its records
        raise JournalDamaged(
            f"{path} is empty or missing beside its -wal: they belong together, so put the file "
            f"back where it was; without it {READ_ONLY}"
        )


def _identify(path: Path) -> tuple[int, int]:
    """Device and inode of the file."""
    status = path.stat()
    return status.st_dev, status.st_ino


def check_header(path: Path, header: bytes) -> None:
    """Refuse other files by their first 100 bytes.

    See https://www.sqlite.org/fileformat.html#the_database_header.
    """
    if not header:
        raise JournalDamaged(
            f"{path} is empty, and may have held a study that is lost: choose another file, or "
            "delete it if there never was one"
        )
    if header[:16] != MAGIC[: len(header)]:
        raise JournalForeign(f"{path} is not a journal: choose another file")
    if len(header) < 100:
        raise JournalDamaged(f"{path} was cut off: {READ_ONLY}")
    version, application = (int.from_bytes(header[at : at + 4]) for at in (60, 68))
    if application != _APPLICATION:
        raise JournalForeign(f"{path} is another program's database: choose another file")
    if version != _VERSION:
        raise JournalForeign(f"{path} has format {version}, not {_VERSION}: upgrade discreet")
    if header[18:20] not in (b"\1\1", b"\2\2"):
        raise JournalDamaged(f"{path}: its header is damaged; {READ_ONLY}")


# -- one writer within this process, and none in its forked children

_GATE = threading.RLock()
_HELD: set[tuple[int, int]] = set()
_CONNECTIONS: WeakSet[_Connection] = WeakSet()


def _after_fork() -> None:
    for connection in _CONNECTIONS:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    _GATE.release()


# In a child, SQLite believes that it holds the lock: closing the inherited connection, even at
# exit, would fold in and delete the parent's -wal under its feet. So it must never be freed.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_GATE.acquire, after_in_parent=_GATE.release, after_in_child=_after_fork
    )
