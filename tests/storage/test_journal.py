"""The SQLite journal: one writer, nothing lost after a kill, damage noticed."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.contracts.journal import JournalContract

from discreet.errors import (
    InvalidArgument,
    JournalDamaged,
    JournalFailed,
    JournalForeign,
    JournalLocked,
)
from discreet.storage import snapshot
from discreet.storage.journal import SQLiteJournal

BODIES = [b"record %d " % number * (1 + number * 7 % 40) for number in range(60)]


class TestSQLiteJournal(JournalContract):
    @pytest.fixture
    def open_journal(self, tmp_path):
        return lambda: SQLiteJournal(tmp_path / "study.db")


@pytest.fixture
def path(tmp_path):
    """A closed journal that holds BODIES."""
    path = tmp_path / "study.db"
    with SQLiteJournal(path) as journal:
        journal.append(*BODIES)
    return path


def python(code, *arguments, **options):
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def read(path):
    with SQLiteJournal(path) as journal:
        return list(journal.records())


def edit(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def leave_unclosed(path):
    """Fill the journal in a process that is killed, so that records are in the -wal."""
    code = """
import os, signal, sys
from discreet.storage.journal import SQLiteJournal
journal = SQLiteJournal(sys.argv[1])
for number in range(60):
    journal.append(b"record %d " % number * (1 + number * 7 % 40))
os.kill(os.getpid(), signal.SIGKILL)
"""
    with python(code, path) as writer:
        assert writer.wait() == -signal.SIGKILL


# -- the file


def test_the_file_is_ours_and_for_its_owner_only(path):
    assert path.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (0x64736372,)
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


def test_commits_are_synced_and_go_through_a_write_ahead_log(path):
    with SQLiteJournal(path) as journal:
        connection = journal._connection
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_an_empty_file_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "empty.db"
    path.touch()
    for use in (SQLiteJournal, snapshot.records):
        with pytest.raises(JournalDamaged, match=r"empty.*choose another file, or delete it"):
            use(path)
    assert path.read_bytes() == b""
    path.unlink()
    assert read(path) == []


def test_a_new_file_appears_whole_and_alone(tmp_path, monkeypatch):
    seen = []
    link = os.link

    def watched(source, target, **words):
        seen.append((Path(target).exists(), Path(source).stat().st_size > 100))
        link(source, target, **words)

    monkeypatch.setattr(os, "link", watched)
    with SQLiteJournal(tmp_path / "study.db"):
        pass
    assert seen == [(False, True)]
    assert [file.name for file in tmp_path.iterdir()] == ["study.db"]


def test_a_file_that_someone_else_made_meanwhile_is_not_replaced(path, tmp_path, monkeypatch):
    place, link = tmp_path / "new.db", os.link

    def late(source, target, **words):
        path.rename(place)
        link(source, target, **words)

    monkeypatch.setattr(os, "link", late)
    assert read(place) == BODIES
    assert [file.name for file in tmp_path.iterdir()] == ["new.db"]


def test_a_file_system_without_links_has_journals_too(tmp_path, monkeypatch):
    def refuse(source, target, **words):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with SQLiteJournal(tmp_path / "study.db") as journal:
        journal.append(b"one")
    assert read(tmp_path / "study.db") == [b"one"]
    assert (tmp_path / "study.db").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["study.db"]


def test_a_journal_that_nobody_has_any_more_holds_no_file(path):
    SQLiteJournal(path)
    assert read(path) == BODIES


def test_memory_journals_are_independent():
    with SQLiteJournal(":memory:") as one, SQLiteJournal(":memory:") as other:
        one.append(b"one")
        assert list(one.records()) == [b"one"]
        assert list(other.records()) == []


def test_a_relative_path_keeps_its_meaning_when_the_folder_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SQLiteJournal("study.db") as journal:
        monkeypatch.chdir("/")
        journal.append(b"one")
    assert read(tmp_path / "study.db") == [b"one"]


@pytest.mark.parametrize(
    "name", ["missing/study.db", ".", "pipe", "dangling/study.db", "broken", "a" * 300]
)
def test_a_path_that_cannot_be_a_journal_is_named(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidArgument, match="path: expected a"):
        SQLiteJournal(f"{tmp_path}/{name}")


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    with pytest.raises(InvalidArgument, match="can be written"):
        SQLiteJournal(tmp_path / "study.db")


# -- foreign files


def make_text(path):
    path.write_text("dear diary\n" * 100)


def make_short_text(path):
    path.write_text("x")


def make_database(path):
    edit(path, "PRAGMA journal_mode = WAL", "CREATE TABLE notes (text)")


def make_database_with_a_log(path):
    code = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL").fetchall()
connection.execute("CREATE TABLE notes (text)")
os.kill(os.getpid(), signal.SIGKILL)
"""
    with python(code, path) as writer:
        writer.wait()


def make_newer(path):
    SQLiteJournal(path).close()
    edit(path, "PRAGMA user_version = 2")


@pytest.mark.parametrize(
    "make",
    [make_text, make_short_text, make_database, make_database_with_a_log, make_newer],
)
def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path, make):
    make(tmp_path / "other")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(JournalForeign, match="other"):
        SQLiteJournal(tmp_path / "other")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


# -- damage


@pytest.mark.parametrize(
    "statements",
    [
        ["DELETE FROM record WHERE seq = 7"],
        ["DELETE FROM record WHERE seq = 1"],
        ["DELETE FROM record WHERE seq = 60"],
        ["DELETE FROM record"],
        ["DELETE FROM record", "DELETE FROM sqlite_sequence WHERE 0"],
        ["UPDATE record SET body = x'00' WHERE seq = 60"],
        ["UPDATE record SET body = cast(body AS TEXT) WHERE seq = 3"],
        ["UPDATE record SET body = x'ff', chain = cast(x'ff' AS TEXT) WHERE seq = 3"],
        ["UPDATE record SET chain = zeroblob(32) WHERE seq = 60"],
        ["UPDATE record SET seq = -seq WHERE seq IN (3, 4)", "UPDATE record SET seq = 7 + seq "
         "WHERE seq < 0"],
        ["UPDATE record SET seq = 99 WHERE seq = 60"],
        ["INSERT INTO record SELECT 61, body, chain FROM record WHERE seq = 60"],
        ["INSERT INTO record SELECT 0, body, chain FROM record WHERE seq = 60"],
        ["DROP TABLE record"],
        ["CREATE TABLE notes (text)"],
        ["CREATE TRIGGER late AFTER INSERT ON record BEGIN DELETE FROM record; END"],
    ],
)  # fmt: skip
def test_an_edited_journal_is_damaged(path, statements):
    edit(path, *statements)
    for _ in range(2):
        with pytest.raises(JournalDamaged, match=r"study\.db.*may be read .* but not continued"):
            SQLiteJournal(path)


def test_damage_after_opening_is_found_while_reading(path):
    with SQLiteJournal(path) as journal:
        journal._connection.execute("UPDATE record SET body = x'00' WHERE seq = 30")
        reading = journal.records()
        assert [next(reading) for _ in range(29)] == BODIES[:29]
        with pytest.raises(JournalDamaged, match="record 30"):
            next(reading)


def test_no_flipped_byte_goes_unnoticed(path):
    whole = path.read_bytes()
    places = [*range(100), *range(100, len(whole), 61)]
    found = 0
    for place in places:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        try:
            assert read(path) == BODIES
        except (JournalDamaged, JournalForeign):
            found += 1
    assert found > len(places) / 2


def test_a_flipped_record_byte_is_always_noticed(path):
    whole = path.read_bytes()
    start = whole.index(b"record 59 record 59")
    for place in range(start, start + 40):
        flipped = bytearray(whole)
        flipped[place] ^= 0x10
        path.write_bytes(flipped)
        with pytest.raises(JournalDamaged):
            SQLiteJournal(path)


def test_a_truncated_file_is_damaged(path):
    whole = path.read_bytes()
    for size in [17, 99, 100, 1000, 4096, 8192, len(whole) - 4096, len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(JournalDamaged):
            SQLiteJournal(path)


@pytest.mark.parametrize("empty", [True, False])
def test_a_log_without_its_file_is_kept_and_reported(tmp_path, empty):
    path = tmp_path / "study.db"
    leave_unclosed(path)
    path.unlink()
    if empty:
        path.touch()
    log = (tmp_path / "study.db-wal").read_bytes()
    with pytest.raises(JournalDamaged, match="-wal"):
        SQLiteJournal(path)
    assert (tmp_path / "study.db-wal").read_bytes() == log


def test_flipped_bytes_in_the_log_leave_whole_records_only(tmp_path):
    path, log = tmp_path / "study.db", tmp_path / "study.db-wal"
    leave_unclosed(path)
    whole, tail = path.read_bytes(), log.read_bytes()
    for place in range(0, len(tail), 9973):
        flipped = bytearray(tail)
        flipped[place] ^= 1
        path.write_bytes(whole)
        log.write_bytes(flipped)
        try:
            bodies = read(path)
        except JournalDamaged:
            continue
        assert bodies == BODIES[: len(bodies)]


# -- one writer


def test_another_process_is_refused_at_once(path):
    code = """
import sys
from discreet.errors import JournalLocked, SecondCopy
from discreet.storage.journal import SQLiteJournal
try:
    SQLiteJournal(sys.argv[1]).close()
    print("opened")
except JournalLocked as error:
    print(error)
"""
    with SQLiteJournal(path) as journal:
        with pytest.raises(JournalLocked, match="this process"):
            SQLiteJournal(path)
        with python(code, path) as other:
            assert "in use by another process" in other.communicate()[0]
        journal.append(b"more")
    with python(code, path) as other:
        assert other.communicate()[0] == "opened\n"


def test_a_link_is_the_same_journal(path, tmp_path):
    os.link(path, tmp_path / "hard.db")
    (tmp_path / "soft.db").symlink_to(path)
    with SQLiteJournal(path):
        for name in ("hard.db", "soft.db"):
            with pytest.raises(JournalLocked):
                SQLiteJournal(tmp_path / name)


def test_a_failed_opening_releases_the_file(path):
    whole = path.read_bytes()
    edit(path, "DELETE FROM record WHERE seq = 7")
    with pytest.raises(JournalDamaged):
        SQLiteJournal(path)
    path.write_bytes(whole)
    assert read(path) == BODIES


FORKED = """
import os, sys
from discreet.errors import JournalLocked, SecondCopy
from discreet.storage.journal import SQLiteJournal
path = sys.argv[1]
def refused(use):
    try:
        use()
    except (JournalLocked, SecondCopy):
        return True
journal = SQLiteJournal(path)
journal.append(b"before")
reading = journal.records()
child = os.fork()
if not child:
    uses = [lambda: journal.append(b"x"), journal.records, lambda: next(reading),
            lambda: SQLiteJournal(path)]
    good = all(refused(use) for use in uses)
    journal.close()
    del journal, uses, reading
    sys.exit(0 if good else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(os.path.getsize(path + "-wal") > 0)
journal.append(b"after")
sys.stdout.flush()
os.kill(os.getpid(), 9)
"""


def test_a_forked_child_is_refused_and_cannot_harm_its_parent(tmp_path):
    with python(FORKED, tmp_path / "study.db") as parent:
        assert parent.communicate()[0] == "0\nTrue\n"
    assert read(tmp_path / "study.db") == [b"before", b"after"]


# -- failures


KILLED = """
import sys
from discreet.storage.journal import SQLiteJournal
journal = SQLiteJournal(sys.argv[1])
number = sum(1 for _ in journal.records())
while True:
    journal.append(b"%d " % number * 50, b"%d " % (number + 1) * 900)
    number += 2
    print(number, flush=True)
"""


def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(tmp_path):
    path = tmp_path / "study.db"
    for kill in range(10):
        with python(KILLED, path) as writer:
            for _ in range(1 + 7 * kill):
                writer.stdout.readline()
            writer.kill()
            rest = writer.stdout.read().rpartition("\n")[0].split()
        with SQLiteJournal(path) as journal:
            bodies = list(journal.records())
            numbers = [int(body.split()[0]) for body in bodies]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) % 2 == 0
        assert len(numbers) >= int(rest[-1] if rest else 2)


def test_a_full_disk_leaves_whole_batches_only(path):
    with SQLiteJournal(path) as journal:
        pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]
        journal._connection.execute(f"PRAGMA max_page_count = {pages}").close()
        with pytest.raises(JournalFailed, match="full"):
            journal.append(b"small", bytes(100_000))
        assert list(journal.records()) == BODIES
        journal._connection.execute("PRAGMA max_page_count = 100000").close()
        journal.append(b"small")
    assert read(path) == [*BODIES, b"small"]


FULL = """
import resource, signal, sys
from discreet.errors import JournalFailed, Refused
from discreet.storage.journal import SQLiteJournal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = SQLiteJournal(sys.argv[1])
journal.append(b"one")
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
for use in (lambda: journal.append(b"two", bytes(100_000)), lambda: journal.append(b"three")):
    try:
        use()
    except (JournalFailed, Refused) as error:
        print(type(error).__name__)
"""


def test_a_failed_commit_closes_the_journal_and_keeps_what_was_there(tmp_path):
    with python(FULL, tmp_path / "study.db") as writer:
        assert writer.communicate()[0] == "JournalFailed\nRefused\n"
    assert read(tmp_path / "study.db") == [b"one"]


def test_an_interrupted_append_leaves_nothing_behind(path, monkeypatch):
    def interrupt(chain, body):
        raise KeyboardInterrupt

    with SQLiteJournal(path) as journal:
        with monkeypatch.context() as patch:
            patch.setattr("discreet.storage.journal._link", interrupt)
            with pytest.raises(KeyboardInterrupt):
                journal.append(b"one", b"two")
        journal.append(b"three")
        assert list(journal.records()) == [*BODIES, b"three"]
