"""The life of a round: asked, then told, abandoned or expired. No I/O.

                 tell         abandon        enough later asks
    open   ->    told    or   abandoned  or  expired

Only an open round can change, and only once: a round that is not open was asked and closed, or
never asked. So nothing is kept of closed rounds, and the state does not grow with their number.
"""

from dataclasses import dataclass, field
from re import fullmatch

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument, TrialClosed, UnknownTrial


@dataclass(frozen=True)
class UserKey:
    """The secret key of the study's pseudonyms, in hexadecimal, and where noise comes from."""

    key: str = field(repr=False)
    simulated: bool = False

    def __post_init__(self) -> None:
        if not fullmatch("[0-9a-f]{64}", self.key):
            raise InvalidArgument("key", "64 hexadecimal digits")


@dataclass(frozen=True, eq=False)
class Asked:
    """Ask `number` was answered with the scaled action `point`, for a user's pseudonym."""

    number: int
    point: NDArray[np.float64]
    user: str | None = None


@dataclass(frozen=True)
class Told:
    """Trial `number` brought this (clipped) reward."""

    number: int
    reward: float


@dataclass(frozen=True)
class Abandoned:
    """Trial `number` will not be answered."""

    number: int


class Session:
    """Which rounds are open.

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

    def __init__(self, expire_after: int) -> None:
        self._expire_after = expire_after
        self._open: dict[int, Asked] = {}
        self.asked = 0

    @property
    def open_rounds(self) -> tuple[int, ...]:
        """The numbers of the rounds that wait for an answer, oldest first."""
        return tuple(self._open)

    def ask(self, event: Asked) -> None:
        """Open the next round, and expire the one whose time is over."""
        if event.number != self.asked:
            raise UnknownTrial(f"the next trial is {self.asked}, not {event.number}")
        self._open[event.number] = event
        self.asked += 1
        self._open.pop(event.number - self._expire_after, None)

    def find(self, number: int) -> Asked:
        """The open round of this number; an error says why there is none."""
        if number in self._open:
            return self._open[number]
        if not 0 <= number < self.asked:
            raise UnknownTrial(f"trial {number} was never asked for in this study")
        if number < self.asked - self._expire_after:
            raise TrialClosed(
                f"trial {number} is closed: trials expire after {self._expire_after} further asks"
            )
        raise TrialClosed(f"trial {number} was already told or abandoned")

    def close(self, number: int) -> Asked:
        """Close an open round: it was told or abandoned."""
        event = self.find(number)
        del self._open[number]
        return event
