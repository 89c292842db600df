"""Exports and journals as anyone may read them: public parts alone, and nothing is touched."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.places import ROOT

from discreet import (
    Bandit,
    Box,
    Client,
    Custodian,
    JointDP,
    LocalDP,
    NonPrivate,
    Plan,
    Publisher,
    Schedule,
    Server,
    Simulation,
)
from discreet.errors import (
    InvalidArgument,
    JournalDamaged,
    JournalForeign,
    JournalLocked,
)
from discreet.protocol.archive import read_archive
from discreet.protocol.messages import Answer, Ask
from discreet.storage import canonical, snapshot
from discreet.storage.journal import SQLiteJournal

BOX = Box({"dose": (0, 10)})
PRIVATE = Plan(domain=BOX, privacy=JointDP(4.0, 1e-3), schedule=Schedule(4), name="told")
LOCAL = Plan(domain=BOX, privacy=LocalDP(4.0, 1e-3), schedule=Schedule(3), name="sent")


def played(path, plan=PRIVATE, rounds=10, **options):
    """A study that is still running: its public record."""
    with Bandit(plan, path, **options) as bandit:
        for index in range(rounds):
            bandit.tell(bandit.ask(user=f"user {index}"), 0.73)
        return bandit.study


def same(found, study):
    return canonical.digest(found) == canonical.digest(study)


# -- every role


@pytest.mark.parametrize("plan", [PRIVATE, LOCAL, replace(PRIVATE, privacy=NonPrivate())])
def test_a_bandits_journal_reads_as_its_export(tmp_path, plan):
    study = played(tmp_path / "study.db", plan)
    study.save(tmp_path / "study.json")
    journal, export = (read_archive(tmp_path / name) for name in ("study.db", "study.json"))
    assert (journal.source, export.source) == ("bandit", "export")
    assert same(journal.study, study)
    assert same(export.study, study)
    assert journal.study.guarantee == export.study.guarantee == study.guarantee
    assert len(journal.study.releases) > 0
    assert journal.study.is_running


def test_a_simulation_is_marked_before_anything_is_released(tmp_path):
    played(tmp_path / "study.db", rounds=2, simulation=Simulation(1))
    found = read_archive(tmp_path / "study.db")
    assert found.study.is_simulated
    assert not found.study.releases
    assert found.study.guarantee.startswith("A simulation: nothing here is private.")


def test_custodian_and_publisher_hold_the_same_public_record(tmp_path):
    custodian = Custodian(PRIVATE, tmp_path / "custodian.db")
    publisher = Publisher(PRIVATE, tmp_path / "publisher.db")
    custodian.open(publisher.opening)
    for index in range(4):
        custodian.choose(Ask(f"{index:032x}", f"user {index}"))
        custodian.receive(Answer(f"{index:032x}", 0.4))
    custodian.open(publisher.publish(custodian.release()))
    custodian.close()
    publisher.close()
    mine, public = (read_archive(tmp_path / f"{name}.db") for name in ("custodian", "publisher"))
    assert (mine.source, public.source) == ("custodian", "publisher")
    assert same(mine.study, publisher.study)
    assert same(public.study, publisher.study)


def test_a_custodian_that_has_not_begun_has_a_plan(tmp_path):
    Custodian(PRIVATE, tmp_path / "custodian.db").close()
    found = read_archive(tmp_path / "custodian.db")
    assert (found.source, found.study.epochs) == ("custodian", ())


def test_a_servers_journal_holds_releases_and_a_clients_the_plan_alone(tmp_path):
    with Server(LOCAL, tmp_path / "server.db") as server:
        for index in range(4):
            with Client(LOCAL, tmp_path / f"client {index}.db") as client:
                client.choose(server.offer(client.request()))
                client.settle(server.receive(client.report(0.7)))
        study = server.study
    assert same(read_archive(tmp_path / "server.db").study, study)
    mine = read_archive(tmp_path / "client 3.db")
    assert (mine.source, mine.study.epochs, mine.study.releases) == ("client", (), ())
    assert mine.study.plan.digest == LOCAL.digest


# -- nothing is touched


def contents(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_reading_changes_no_byte_and_leaves_no_file(tmp_path):
    played(tmp_path / "study.db")
    before = contents(tmp_path)
    for _ in range(2):
        read_archive(tmp_path / "study.db")
    assert contents(tmp_path) == before


def test_reading_draws_no_noise(tmp_path, monkeypatch):
    played(tmp_path / "study.db")

    def drawn(size):
        raise AssertionError("bits were drawn")

    monkeypatch.setattr(os, "urandom", drawn)
    read_archive(tmp_path / "study.db")


def test_a_journal_that_may_only_be_read_is_read(tmp_path):
    study = played(tmp_path / "study.db")
    (tmp_path / "study.db").chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert same(read_archive(tmp_path / "study.db").study, study)
    finally:
        tmp_path.chmod(0o700)


WRITER = """
import sys
from pathlib import Path
from discreet import Bandit
from tests.protocol.test_archive import PRIVATE
with Bandit(PRIVATE, sys.argv[1]) as bandit:
    for line in sys.stdin:
        for index in range(int(line)):
            bandit.tell(bandit.ask(user=f"user {bandit.asked}"), 0.73)
        bandit.export(sys.argv[2])
        print("told", flush=True)
"""


def test_a_running_study_is_read_while_its_writer_holds_the_journal(tmp_path):
    journal, export = tmp_path / "study.db", tmp_path / "study.json"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(journal), str(export)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with writer:
        for rounds in (1, 9, 30):
            writer.stdin.write(f"{rounds}\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == "told\n"
            with pytest.raises(JournalLocked):
                SQLiteJournal(journal)  # a writer is at work
            assert same(read_archive(journal).study, read_archive(export).study)
        writer.stdin.close()
    assert writer.returncode == 0  # and it noticed nothing
    assert len(read_archive(journal).study.releases) > 2


def test_a_killed_writers_log_is_read_and_left_to_it(tmp_path):
    journal, export = tmp_path / "study.db", tmp_path / "study.json"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(journal), str(export)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with writer:
        writer.stdin.write("20\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "told\n"
        writer.kill()
    before = contents(tmp_path)
    assert "study.db-wal" in before
    assert same(read_archive(journal).study, read_archive(export).study)
    assert contents(tmp_path) == before


def test_the_writers_own_process_is_refused(tmp_path):
    with Bandit(PRIVATE, tmp_path / "study.db"):
        for read in (read_archive, snapshot.records):
            with pytest.raises(JournalLocked, match="is open in this process"):
                read(tmp_path / "study.db")
        code = "import sys; from discreet import Bandit\n"
        code += "from tests.protocol.test_archive import PRIVATE; Bandit(PRIVATE, sys.argv[1])"
        other = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "study.db")],
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
        assert "JournalLocked" in other.stderr  # the lock was kept


# -- what is not public stays where it is


def test_nothing_of_a_person_is_in_an_archive(tmp_path):
    reward, user = 0.7312345678, "Ada Lovelace"
    with Bandit(PRIVATE, tmp_path / "study.db") as bandit:
        for index in range(9):
            bandit.tell(bandit.ask(user=f"{user} {index}"), reward)
    records = [json.loads(record) for record in snapshot.records(tmp_path / "study.db")]
    secrets = {str(reward), user}
    secrets |= {record["key"] for record in records if record["type"] == "UserKey"}
    secrets |= {record["user"] for record in records if record["type"] == "Asked"}
    assert len(secrets) == 12
    archive = read_archive(tmp_path / "study.db")
    said = canonical.encode(archive.study).decode() + repr(archive) + archive.study.guarantee
    assert not [secret for secret in secrets if secret in said]


# -- damage


@pytest.mark.parametrize("name", ["study.db", "study.json"])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_a_file_that_was_cut_off_is_refused(tmp_path, name, share):
    played(tmp_path / "study.db").save(tmp_path / "study.json")
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises((JournalDamaged, JournalForeign)) as error:
        read_archive(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_a_changed_export_is_refused(tmp_path):
    played(tmp_path / "study.db").save(tmp_path / "study.json")
    path = tmp_path / "study.json"
    text = path.read_text()
    assert '"epsilon":4.0' in text
    path.write_text(text.replace('"epsilon":4.0', '"epsilon":1.0'))
    with pytest.raises(JournalForeign, match="cut off or changed"):
        read_archive(path)


def test_a_changed_record_is_refused(tmp_path):
    played(tmp_path / "study.db")
    with sqlite3.connect(tmp_path / "study.db") as connection:
        connection.execute("UPDATE record SET body = ? WHERE seq = 5", (b"{}",))
    connection.close()
    with pytest.raises(JournalDamaged, match="record 5 is not what was written"):
        read_archive(tmp_path / "study.db")


def test_flipped_bits_never_give_another_record(tmp_path):
    """Whatever one byte is changed to, what is read is what was written, or nothing."""
    played(tmp_path / "study.db")
    path = tmp_path / "study.db"
    whole, records = path.read_bytes(), snapshot.records(path)
    for at in range(0, len(whole), len(whole) // 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
        with suppress(JournalDamaged, JournalForeign):
            assert snapshot.records(path) == records


def test_a_damaged_log_gives_what_came_before_it(tmp_path):
    """As SQLite does: a log is read up to the first frame that does not fit."""
    journal, copy = tmp_path / "study.db", tmp_path / "copy.db"
    code = "import sys, os; from discreet.storage.journal import SQLiteJournal\n"
    code += "j = SQLiteJournal(sys.argv[1])\n"
    code += "for i in range(9): j.append(b'%d' % i)\nos._exit(0)"
    subprocess.run([sys.executable, "-c", code, str(journal)], check=True)
    log = Path(f"{journal}-wal").read_bytes()
    whole = [b"%d" % index for index in range(9)]
    assert snapshot.records(journal) == whole
    seen = set()
    for at in range(0, len(log), len(log) // 23):
        for name, cut in (("-wal", log[:at]), ("-wal", log[:at] + b"\xff" * (len(log) - at))):
            copy.write_bytes(journal.read_bytes())
            Path(f"{copy}{name}").write_bytes(cut)
            found = snapshot.records(copy)
            assert found == whole[: len(found)]
            seen.add(len(found))
            with SQLiteJournal(copy) as real:
                assert list(real.records()) == found
            Path(f"{copy}-wal").unlink(missing_ok=True)
    assert len(seen) > 5


@pytest.mark.parametrize(
    ("records", "kind"),
    [
        ([], JournalForeign),
        ([b"hello"], JournalDamaged),
        ([b'{"type":"Other"}'], JournalForeign),
        ([canonical.encode(PRIVATE)], JournalForeign),
        ([canonical.encode(PRIVATE), b'{"type":"Epoch"}'], JournalDamaged),
        ([b'{"type":"Plan"}', b'{"type":"Epoch"}'], JournalDamaged),
        ([b"[1,2]", b"[]"], JournalDamaged),
    ],
    ids=["empty", "no records", "other", "plan alone", "broken epoch", "broken plan", "lists"],
)
def test_a_journal_of_something_else_is_refused(tmp_path, records, kind):
    with SQLiteJournal(tmp_path / "study.db") as journal:
        journal.append(*records)
    with pytest.raises(kind) as error:
        read_archive(tmp_path / "study.db")
    assert "\n" not in str(error.value)


def test_a_database_of_something_else_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE people (name TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(JournalForeign, match="another program's database"):
        read_archive(tmp_path / "other.db")


@pytest.mark.parametrize("name", ["missing", "."])
def test_what_is_no_file_is_refused(tmp_path, name):
    with pytest.raises(JournalForeign, match="expected the export or the journal of a study"):
        read_archive(tmp_path / name)
    with pytest.raises(InvalidArgument, match="path: expected a journal that exists"):
        snapshot.records(tmp_path / name)
