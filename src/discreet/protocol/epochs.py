"""The life of an epoch at a custodian, as one table. No I/O.

An epoch is open while it has asks left, and full when all are given; answers still count. When its
release is drawn nothing more comes in, for it would be in no release. A release that is kept may be
shown, and stays the same until the next epoch opens or the study is over. Beside `rounds`, which
has the same for one round; docs/protocol.md shows both.
"""

from dataclasses import dataclass
from typing import Literal

from discreet.errors import BetweenEpochs, InvalidArgument, StudyEnded

State = Literal["open", "full", "drawn", "released", "over"]
Event = Literal["open", "fill", "draw", "release", "end"]
Wish = Literal["ask", "answer"]


@dataclass(frozen=True)
class Step:
    """In this state (None: no epoch yet) this event leads to another state."""

    state: State | None
    event: Event
    then: State


TABLE = (
    Step(None, "open", "open"),
    Step("open", "fill", "full"),
    Step("open", "draw", "drawn"),
    Step("full", "draw", "drawn"),
    Step("drawn", "release", "released"),
    Step("released", "open", "open"),
    Step("released", "end", "over"),
)
#: What people wish for, and the states in which it is granted.
GRANTED: dict[Wish, tuple[State, ...]] = {"ask": ("open",), "answer": ("open", "full")}
_NEXT: dict[tuple[State | None, Event], State] = {
    (step.state, step.event): step.then for step in TABLE
}


class EpochLife:
    """Where the newest epoch stands.

    >>> life = EpochLife()
    >>> life.advance("open"); life.advance("fill"); life.state
    'full'
    >>> life.check("ask")
    Traceback (most recent call last):
    discreet.errors.BetweenEpochs: every ask of this epoch is given: its release comes first
    """

    def __init__(self) -> None:
        self.state: State | None = None

    def advance(self, event: Event) -> None:
        """Take a step; an error where the table has none."""
        if (self.state, event) not in _NEXT:
            raise InvalidArgument("epoch", f"one that can {event}, not one that is {self.state}")
        self.state = _NEXT[self.state, event]

    def check(self, wish: Wish) -> None:
        """Refuse what this state does not grant; nothing is changed."""
        if self.state in GRANTED[wish]:
            return
        if self.state == "over":
            raise StudyEnded("the study is finished: it has no open epoch")
        if self.state == "full":
            raise BetweenEpochs("every ask of this epoch is given: its release comes first")
        if self.state == "drawn":
            raise BetweenEpochs(
                "this epoch's release is drawn, but not stored yet: nothing comes in before it is; "
                "call finish() or release() again, or ask for the next epoch's first action"
            )
        raise BetweenEpochs("the next epoch is not open yet: send this again when it is")
