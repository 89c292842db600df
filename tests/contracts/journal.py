"""What every journal does; a suite inherits it and says how its journal is opened."""

import threading
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument, JournalLocked, Refused
from discreet.storage.journal import Journal


class JournalContract:
    @pytest.fixture
    def open_journal(self) -> Callable[[], Journal]:
        """A function that opens the same journal, empty at first, each time it is called."""
        raise NotImplementedError

    def test_a_new_journal_is_empty(self, open_journal):
        with open_journal() as journal:
            assert list(journal.records()) == []

    def test_records_come_back_in_order(self, open_journal):
        with open_journal() as journal:
            journal.append(b"one", b"two")
            journal.append(b"three")
            assert list(journal.records()) == [b"one", b"two", b"three"]

    def test_records_outlive_the_object(self, open_journal):
        with open_journal() as journal:
            journal.append(b"one")
        with open_journal() as journal:
            journal.append(b"two")
        with open_journal() as journal:
            assert list(journal.records()) == [b"one", b"two"]

    @settings(
        max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(batches=st.lists(st.lists(st.binary(max_size=300), max_size=4), max_size=4))
    def test_any_bytes_are_kept_as_they_are(self, open_journal, batches):
        with open_journal() as journal:
            before = list(journal.records())
            for batch in batches:
                journal.append(*batch)
        with open_journal() as journal:
            added = [record for batch in batches for record in batch]
            assert list(journal.records()) == before + added

    def test_a_large_record_is_kept(self, open_journal):
        record = bytes(range(256)) * 8000
        with open_journal() as journal:
            journal.append(record)
        with open_journal() as journal:
            assert list(journal.records()) == [record]

    def test_appending_nothing_changes_nothing(self, open_journal):
        with open_journal() as journal:
            journal.append()
            assert list(journal.records()) == []

    @pytest.mark.parametrize("wrong", ["text", None, bytearray(b"x"), 3])
    def test_a_batch_with_a_wrong_record_is_refused_whole(self, open_journal, wrong):
        with open_journal() as journal:
            with pytest.raises(InvalidArgument, match="records"):
                journal.append(b"fine", wrong)
            assert list(journal.records()) == []

    def test_reading_sees_what_was_there_when_it_began(self, open_journal):
        with open_journal() as journal:
            journal.append(b"one", b"two")
            reading = journal.records()
            assert next(reading) == b"one"
            journal.append(b"three")
            assert list(reading) == [b"two"]
            assert list(journal.records()) == [b"one", b"two", b"three"]

    def test_a_second_writer_is_refused_until_the_first_closes(self, open_journal):
        with open_journal() as journal:
            for _ in range(2):
                with pytest.raises(JournalLocked):
                    open_journal()
            journal.append(b"still mine")
        with open_journal() as journal:
            assert list(journal.records()) == [b"still mine"]

    def test_a_closed_journal_is_refused(self, open_journal):
        journal = open_journal()
        journal.append(b"one")
        reading = journal.records()
        journal.close()
        journal.close()
        for use in (journal.records, lambda: journal.append(b"two"), lambda: next(reading)):
            with pytest.raises(Refused, match="closed"):
                use()

    def test_threads_may_share_it(self, open_journal):
        with open_journal() as journal:

            def write(name):
                for index in range(20):
                    journal.append(b"%d-%d" % (name, index), b"")
                    sum(1 for _ in journal.records())

            threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            bodies = list(journal.records())
        assert len(bodies) == 160
        for name in range(4):
            mine = [body for body in bodies if body.startswith(b"%d-" % name)]
            assert mine == [b"%d-%d" % (name, index) for index in range(20)]
