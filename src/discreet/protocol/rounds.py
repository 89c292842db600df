"""The life of a round, as one table. No I/O.

A round is offered, an action is chosen, its answer is reported; or it is abandoned, or expires.
`TABLE` holds every step there is, and who sees it: a custodian offers and chooses in one
go, the server of the local model never sees a choice. What is not in the table is refused, and a
closed round has no further step: so nothing is counted twice, and what was counted stays so.
docs/protocol.md draws the table.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from discreet.errors import TrialClosed, UnknownTrial
from discreet.protocol.records import Asked, Passed

Party = Literal["client", "custodian", "server"]
State = Literal["offered", "chosen", "reported", "abandoned", "expired"]
Event = Literal["offer", "choose", "report", "abandon", "expire"]


@dataclass(frozen=True)
class Step:
    """In this state (None: not a round yet) this event leads to another state."""

    state: State | None
    event: Event
    then: State
    seen_by: tuple[Party, ...]


TABLE = (
    Step(None, "offer", "offered", ("client", "custodian", "server")),
    Step("offered", "choose", "chosen", ("client", "custodian")),
    Step("chosen", "report", "reported", ("client", "custodian")),
    Step("offered", "report", "reported", ("server",)),
    Step("offered", "abandon", "abandoned", ("client", "custodian", "server")),
    Step("chosen", "abandon", "abandoned", ("client", "custodian")),
    Step("offered", "expire", "expired", ("client", "custodian", "server")),
    Step("chosen", "expire", "expired", ("client", "custodian")),
)
#: The states that some step leads out of.
OPEN: frozenset[State] = frozenset(step.state for step in TABLE if step.state is not None)
_NEXT: dict[tuple[Party, State | None, Event], State] = {
    (party, step.state, step.event): step.then for step in TABLE for party in step.seen_by
}


def advance(party: Party, state: State | None, event: Event, *, trial: object = "") -> State:
    """The state that an event leads to, as one party sees it; an error where there is no step.

    >>> advance("server", "offered", "report")
    'reported'
    >>> advance("server", "reported", "report", trial=7)
    Traceback (most recent call last):
    discreet.errors.TrialClosed: trial 7 is reported: it can not be reported now
    """
    found = _NEXT.get((party, state, event))
    if found is None:
        name = f"trial {trial}".strip()
        if state is None:
            raise UnknownTrial(f"{name} was never asked for in this study")
        raise TrialClosed(f"{name} is {state}: it can not be {_PAST[event]} now")
    return found


_PAST: dict[Event, str] = {
    "offer": "offered",
    "choose": "chosen",
    "report": "reported",
    "abandon": "abandoned",
    "expire": "expired",
}


def is_repeat(state: State | None, event: Event) -> bool:
    """Whether this event is what brought a round into its state: once more changes nothing.

    >>> is_repeat("reported", "report"), is_repeat("expired", "report")
    (True, False)
    """
    return any((step.then, step.event) == (state, event) for step in TABLE)


class Session:
    """Which rounds are open, where actions are chosen: of a custodian, or of clients.

    A round that is not open was asked and closed, or never asked: nothing is kept of closed
    rounds, and the state does not grow with their number.

    >>> import numpy as np
    >>> session = Session(expire_after=2)
    >>> for number in range(4):
    ...     session.ask(Asked(number, np.array([0.5])))
    >>> session.open_rounds
    (2, 3)
    >>> session.close(2).point.tolist()
    [0.5]
    >>> session.close(2)
    Traceback (most recent call last):
    discreet.errors.TrialClosed: trial 2 was already told or abandoned
    """

    def __init__(self, expire_after: int, party: Party = "custodian") -> None:
        self._party: Party = party
        self._expire_after = expire_after
        self._open: dict[int, tuple[State, Asked]] = {}
        self._expired = 0  # rounds below this have expired, if they were still open
        self.asked = 0

    @property
    def open_rounds(self) -> tuple[int, ...]:
        """The numbers of the rounds that wait for an answer, oldest first."""
        return tuple(self._open)

    def ask(self, event: Asked) -> None:
        """Offer the next round and choose its action; expire the one whose time is over."""
        offered = self._offer(event.number)
        self._open[event.number] = advance(self._party, offered, "choose"), event

    def skip(self, event: Passed) -> None:
        """Offer the next round and close it without an action."""
        advance(self._party, self._offer(event.number), "abandon")

    def _offer(self, number: int) -> State:
        if number != self.asked:
            raise UnknownTrial(f"the next trial is {self.asked}, not {number}")
        self.asked += 1
        self.expire([number - self._expire_after])
        return advance(self._party, None, "offer")

    def find(self, number: int) -> Asked:
        """The open round of this number; an error says why there is none."""
        if number in self._open:
            return self._open[number][1]
        if not 0 <= number < self.asked:
            raise UnknownTrial(f"trial {number} was never asked for in this study")
        if number < self.asked - self._expire_after:
            raise TrialClosed(
                f"trial {number} is closed: trials expire after {self._expire_after} further asks"
            )
        if number < self._expired:
            raise TrialClosed(
                f"trial {number} is closed: its epoch is over, and a report is for its epoch alone"
            )
        raise TrialClosed(f"trial {number} was already told or abandoned")

    def close(self, number: int, event: Event = "report") -> Asked:
        """Close an open round: it was told or abandoned."""
        asked = self.find(number)
        self._step(number, event)
        return asked

    def expire(self, numbers: Iterable[int]) -> None:
        """Close those of these rounds that are still open."""
        for number in numbers:
            if number in self._open:
                self._step(number, "expire")

    def expire_before(self, first: int) -> None:
        """Close every open round below this number: its epoch is over."""
        self.expire([number for number in self._open if number < first])
        self._expired = first

    def _step(self, number: int, event: Event) -> None:
        state, asked = self._open[number]
        then = advance(self._party, state, event, trial=number)
        if then in OPEN:
            self._open[number] = then, asked
        else:
            del self._open[number]
