"""A journal in a list: what a role kept can be looked at, copied, and made to fail."""

from discreet.agreement.plan import Plan
from discreet.agreement.wording import Wording
from discreet.errors import JournalFailed
from discreet.storage import canonical


def decoded(role, data):
    """A record of this role's journal."""
    return canonical.decode(Plan | Wording | role.RECORDS, data)


class ListJournal:
    """Implements `discreet.storage.journal.Journal`."""

    def __init__(self, kept=()):
        self.kept = list(kept)
        self.failing = False

    def append(self, *records):
        if self.failing:
            raise JournalFailed("the disk is full")
        self.kept.extend(records)

    def records(self):
        return iter(list(self.kept))

    def close(self):
        pass
