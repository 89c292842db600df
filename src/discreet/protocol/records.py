"""What journals hold beside plans, epochs, releases and messages: a line for each change."""

from dataclasses import dataclass, field

from discreet import checks
from discreet.arrays import Floats
from discreet.storage import canonical


@dataclass(frozen=True)
class UserKey:
    """The secret key of the study's pseudonyms, in hexadecimal, and where noise comes from."""

    key: str = field(repr=False)
    simulated: bool = False

    def __post_init__(self) -> None:
        checks.hexadecimal("key", self.key, 64)


@dataclass(frozen=True, eq=False)
class Asked:
    """Ask `number` was answered with the scaled action `point`, for a user's pseudonym."""

    number: int
    point: Floats = field(repr=False)
    user: str | None = None


@dataclass(frozen=True)
class Passed:
    """Ask `number` could not be given an action, by what its person brought: a round without one.

    It took its index all the same: whose ask fails must not move the actions of others. `id` and
    `seal` are those of `Entered`, where asks are messages.
    """

    number: int
    user: str | None = None
    id: str | None = field(default=None, metadata=canonical.OPTIONAL)
    seal: str | None = field(default=None, metadata=canonical.OPTIONAL)


@dataclass(frozen=True)
class Told:
    """Trial `number` brought this (clipped) reward."""

    number: int
    reward: float = field(repr=False)


@dataclass(frozen=True)
class Abandoned:
    """Trial `number` will not be answered."""

    number: int


@dataclass(frozen=True, eq=False)
class Entered:
    """A round began: the id it goes by, a keyed digest of what was asked, and the action."""

    id: str
    seal: str
    asked: Asked = field(repr=False)
    chosen: int | None = field(default=None, repr=False, metadata=canonical.OPTIONAL)


@dataclass(frozen=True)
class Serving:
    """The first record of a server: whether its clients are simulated, and nothing is private."""

    simulated: bool


@dataclass(frozen=True)
class Offered:
    """Ask `number` was offered to the round of this id."""

    number: int
    id: str


@dataclass(frozen=True)
class Device:
    """The first record of a client: whether its noise is a simulation's."""

    simulated: bool


@dataclass(frozen=True, eq=False)
class Chosen:
    """The scaled action of a round, and its position where candidates were given: private."""

    point: Floats = field(repr=False)
    position: int | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Expired:
    """The round of this id came too late for its epoch."""

    id: str
