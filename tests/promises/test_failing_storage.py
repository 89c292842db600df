"""A disk that fails at any statement: an act is done once, or not at all, and says what to do."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.support.acts import ACTS, ROLES
from tests.support.forks import in_fork
from tests.support.stages import Stage

from discreet.errors import DiscreetError, JournalFailed, JournalLocked
from discreet.storage import journal

FAULTS = (
    (sqlite3.SQLITE_FULL, "database or disk is full"),
    (sqlite3.SQLITE_IOERR, "disk I/O error"),
)
BY_NAME = {act.name: act for act in ACTS}


class FailingConnection(journal._Connection):
    """Fails at one of its statements, before or after it has done what it was told."""

    countdown, after = -1, False

    def execute(self, statement, *values):
        self.countdown -= 1
        if self.countdown == 0:
            if self.after:
                super().execute(statement, *values).close()
            raise failure(*FAULTS[self.after])
        return super().execute(statement, *values)


def failure(code, words):
    error = sqlite3.OperationalError(words)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize("act", ACTS, ids=str)
def test_a_failing_statement_leaves_an_act_undone_or_done_once(act, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_Connection", FailingConnection)
    stage, failures = Stage(act, tmp_path), 0
    while True:

        def spoil(do, role, at=failures // 2 + 1, after=bool(failures % 2)):
            connection = role._journal._connection
            connection.countdown, connection.after = at, after
            try:
                do()
            except JournalFailed as error:
                connection.countdown = -1
                return str(error)

        advice = stage.disturb(spoil)
        if advice is None:
            break
        assert "then" in advice  # try again, or open it again
        failures += 1
    assert failures >= 8  # begin, read, insert and commit; before and after


@pytest.mark.parametrize(
    "name", ["Server.offer the next epoch", "Local bandit.ask for the next epoch"]
)
def test_a_full_disk_is_survived(name, tmp_path):
    def spoil(do, role):
        connection = role._journal._connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}").close()
        with pytest.raises(JournalFailed, match=r"full.*try again"):
            do()
        connection.execute("PRAGMA max_page_count = 1000000").close()

    Stage(BY_NAME[name], tmp_path).disturb(spoil)


def as_nobody(call):
    """Call in a child without rights to others' files."""

    def powerless():
        if not os.getuid():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        try:
            call()
        except DiscreetError as error:
            return f"{type(error).__name__}: {error}"

    return in_fork(powerless)


@pytest.mark.parametrize("begin", ROLES, ids=lambda begin: begin.__name__)
def test_a_file_or_folder_that_is_read_only_is_named_and_left_as_it_is(begin):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begin(folder / "study.db").close()
        before = (folder / "study.db").read_bytes()
        folder.chmod(0o777)
        (folder / "study.db").chmod(0o444)
        assert "can be read and written" in as_nobody(lambda: begin(folder / "study.db"))
        (folder / "study.db").chmod(0o666)
        folder.chmod(0o555)
        for path in (folder / "study.db", folder / "new.db"):
            assert "in a folder that can be written" in as_nobody(lambda path=path: begin(path))
        folder.chmod(0o700)
        assert [file.name for file in folder.iterdir()] == ["study.db"]
        assert (folder / "study.db").read_bytes() == before


HOLDER = """
import sys
from discreet.storage.journal import SQLiteJournal
journal = SQLiteJournal(sys.argv[1])
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("begin", ROLES, ids=lambda begin: begin.__name__)
def test_a_journal_in_use_by_another_process_is_refused_until_that_ends(begin, tmp_path):
    path = tmp_path / "study.db"
    begin(path).close()
    command = [sys.executable, "-c", HOLDER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as holder:
        assert holder.stdout.readline() == "held\n"
        for _ in range(2):
            with pytest.raises(JournalLocked, match="in use by another process: stop it"):
                begin(path)
        holder.communicate("\n")
    begin(path).close()
