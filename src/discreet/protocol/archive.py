"""What the file of a study says that is public: of an export, or of any role's journal.

Of a journal only the plan, the epochs and the releases are read, and whether its noise is a
simulation's: what an export would hold. Rounds, answers, ids and keys stay where they are. Nothing
is written, drawn or released, and a writer may be at work meanwhile.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.errors import DiscreetError, JournalDamaged, JournalForeign, JournalLocked, Malformed
from discreet.learning.epoch import Epoch
from discreet.learning.study import Study
from discreet.protocol.batches import Turn
from discreet.protocol.messages import Opening
from discreet.storage import canonical, snapshot
from discreet.storage.journal import MAGIC, is_held

Source = Literal["export", "bandit", "custodian", "publisher", "server", "client", "shuffler"]
#: The records that are read; all others are somebody's.
PUBLIC = ("Epoch", "Opening", "Release", "Turn")


@dataclass(frozen=True, eq=False)
class Archive:
    """The public record in a file, and what wrote it.

    A client's journal is one person's: of it there is the plan alone.
    """

    source: Source
    study: Study


def read_archive(path: str | os.PathLike[str]) -> Archive:
    """The public record in an export or a journal; read only.

    >>> read_archive("setup.cfg")
    Traceback (most recent call last):
    discreet.errors.JournalForeign: setup.cfg: expected the export or the journal of a study (there is no such file)
    """  # noqa: E501
    place = Path(path)
    if not place.is_file():
        reason = "it is no file" if place.exists() else "there is no such file"
        raise _foreign(path, reason)
    if is_held(place):  # to open it by other means would drop its lock
        raise JournalLocked(f"{path} is open in this process: close that journal first")
    try:
        with place.open("rb") as file:
            begins = file.read(len(MAGIC))
    except OSError as error:
        raise _foreign(path, error.strerror or "it can not be read") from None
    if not begins:
        raise _foreign(path, "it is empty")
    if begins == MAGIC:
        return _of_journal(path, snapshot.records(path))
    try:
        study = Study.load(path)
    except Malformed as error:
        raise _foreign(path, f"or it was cut off or changed: {error}") from None
    return Archive("export", study)


def _of_journal(path: str | os.PathLike[str], records: list[bytes]) -> Archive:
    try:
        tags: list[str] = [json.loads(record)["type"] for record in records]
        if tags[1:2] == ["Wording"]:  # what the author wrote; what became of it is in the plan
            del tags[1], records[1]
        source = _source(tags)
        if source is None:
            raise _foreign(path, "it is the journal of something else")
        simulated = json.loads(records[1]).get("simulated") or None
        plan = canonical.decode(Plan, records[0])
        study = Study(plan, *_chain(source, tags, records), simulated=simulated)
    except (ValueError, TypeError, LookupError, DiscreetError) as error:
        if isinstance(error, JournalForeign):
            raise
        raise JournalDamaged(f"{path}: its records do not fit together ({error})") from None
    return Archive(source, study)


def _source(tags: list[str]) -> Source | None:
    """Who keeps a journal that begins like this."""
    match tags[:3]:
        case ["Plan", "UserKey", "Epoch"]:
            return "bandit"
        case ["Plan", "UserKey", *_]:
            return "custodian"
        case ["Plan", "Serving", "Turn"]:
            return "shuffler"
        case ["Plan", "Serving", *_]:
            return "server"
        case ["Plan", "Device", *_]:
            return "client"
        case ["Plan", "Epoch", *_]:
            return "publisher"
        case _:
            return None


def _chain(
    source: Source, tags: list[str], records: list[bytes]
) -> tuple[tuple[Epoch, ...], tuple[Release, ...]]:
    """The epochs and releases, in order."""
    epochs: list[Epoch] = []
    releases: list[Release] = []
    for tag, data in zip(tags, records, strict=True):
        if source == "client" or tag not in PUBLIC:
            continue
        record: Epoch | Opening | Release | Turn = canonical.decode(
            Epoch | Opening | Release | Turn, data
        )
        if (release := record.release if isinstance(record, Turn) else record) is not None:
            releases += [release] if isinstance(release, Release) else []
        if isinstance(record, Release):
            continue
        if (epoch := record if isinstance(record, Epoch) else record.epoch) is not None:
            epochs.append(epoch)
    return tuple(epochs), tuple(releases)


def _foreign(path: str | os.PathLike[str], reason: str) -> JournalForeign:
    return JournalForeign(f"{path}: expected the export or the journal of a study ({reason})")
