"""An act that is disturbed, asked for again, and resumed: it was done once, or not at all."""

import shutil

from tests.support.acts import skeleton
from tests.support.journals import decoded

from discreet.agreement.release import Release
from discreet.errors import DiscreetError
from discreet.protocol.messages import Report
from discreet.storage import canonical, snapshot


class Stage:
    """Journals at the moment before an act, and what an act that nothing disturbs leaves."""

    def __init__(self, act, folder):
        self._act, self._before, self._path = act, folder / "before.db", folder / "study.db"
        with act.begin(self._before) as role:
            self._needed = act.prepare(role)
            self._role = type(role)
        self.watch(lambda do, role: do())
        self._after = [skeleton(record) for record in self._records()]

    def watch(self, look):
        """Do the act under the eyes of `look(do, role)`."""
        with self._opened() as role:
            return look(lambda: self._do(role), role)

    def disturb(self, spoil):
        """Do the act under `spoil(do, role)`, again, and after resuming: all show the same.

        And the journal is that of a role that was never disturbed.
        """
        role = self._opened()
        spoilt = spoil(lambda: self._do(role), role)
        shown = self._try_again(role)
        role.close()
        with self._act.begin(self._path) as resumed:
            shown += [self._do(resumed), self._do(resumed)]
        assert all(each == shown[0] for each in shown)
        kept = self._records()
        assert [skeleton(record) for record in kept] == self._after
        assert len(set(drawn(kept))) == len(drawn(kept))
        if isinstance(shown[0], bytes) and shown[0].endswith((b'"Release"}', b'"Report"}')):
            assert shown[0] in map(canonical.encode, kept)
        return spoilt

    def _opened(self):
        shutil.copy(self._before, self._path)
        return self._act.begin(self._path)

    def _do(self, role):
        return self._act.do(role, self._needed)

    def _try_again(self, role):
        """What the role shows when it is asked again, if it may; if not, it says what to do."""
        try:
            return [self._do(role)]
        except DiscreetError as refusal:
            advice = str(refusal)
        assert "open its journal again" in advice or "open a new journal" in advice
        return []

    def _records(self):
        return [decoded(self._role, data) for data in snapshot.records(self._path)]


def drawn(kept):
    """What was drawn for whom: by the epoch of a release, by the id of a report."""
    return [
        record.epoch if isinstance(record, Release) else record.id
        for record in kept
        if isinstance(record, Release | Report)
    ]
