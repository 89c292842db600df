"""People who ask, and what they get: a round each, or the reason why not."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from discreet.agreement.plan import Plan
from discreet.arrays import Floats
from discreet.errors import DiscreetError
from discreet.learning.epoch import Epoch
from discreet.protocol.decisions import decide
from discreet.protocol.records import Asked, Passed
from discreet.trusted.participants import Participants


@dataclass(frozen=True, eq=False)
class Person:
    """Who asks, and their scaled decision set; or what is wrong with what they brought."""

    user: object = field(repr=False)
    options: Floats | Exception | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Entry:
    """A new round: its record, the position of its action among candidates, or why it has none.

    A refusal is raised after the record is kept: whoever brings something that leads to no action
    takes an index like anyone else, and nobody else's action tells that it happened. Who may not
    take part has no record.
    """

    record: Asked | Passed | None
    chosen: int | None = field(default=None, repr=False)
    refusal: Exception | None = field(default=None, repr=False)


def entries(
    plan: Plan,
    epoch: Epoch,
    first: int,
    participants: Participants,
    people: Sequence[Person],
    room: int,
) -> list[Entry]:
    """An entry for each of these people, until `room` of them have a round."""
    found: list[Entry] = []
    asking: list[tuple[int, str | None, Floats | Exception | None]] = []
    taken: Counter[str] = Counter()
    for person in people:
        try:
            pseudonym = participants.admit(person.user, besides=taken)
        except DiscreetError as error:
            found.append(Entry(None, refusal=error))
            continue
        if len(asking) == room:
            break
        if pseudonym is not None:
            taken[pseudonym] += 1
        asking.append((len(found), pseudonym, person.options))
        found.append(Entry(None))
    decisions = decide(plan, epoch, first, [options for _, _, options in asking])
    positions = None if decisions.positions is None else decisions.positions.tolist()
    for i, (place, pseudonym, _) in enumerate(asking):
        if i in decisions.refusals:
            found[place] = Entry(Passed(first + i, pseudonym), refusal=decisions.refusals[i])
        else:
            record = Asked(first + i, decisions.points[i], pseudonym)
            found[place] = Entry(record, None if positions is None else positions[i])
    return found
