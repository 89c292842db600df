"""What a shuffler is told and what it hands up: frozen wire types, read strictly.

    client                        shuffler                                 server
      Request(id, known)    ->
                            <-   Offer(id, ask, epoch, releases, key)
      Sealed(id, epoch, key, box) ->   or Decline(id)
                            <-   Receipt(id, outcome)
                                   Batch(epoch, asks, groups)       ->
                                                         <-   Turn(release, epoch, key)

Of a client the server sees a box among others, nothing else: no id, no ask, no time, no order. The
shuffler sees who sends when, and boxes that it cannot open. They are `messages` like the others.
"""

from dataclasses import dataclass, field

from discreet import checks
from discreet.agreement.release import GENESIS, Release
from discreet.errors import InvalidArgument
from discreet.learning.epoch import Epoch
from discreet.protocol.sealing import BOX_DIGITS
from discreet.storage import canonical


@dataclass(frozen=True)
class Sealed:
    """One report, sealed for the server of this key, under the epoch of this digest.

    Epoch and key are said in the open: the shuffler takes reports of one epoch to one key alone,
    so nobody is told from the others by theirs. `simulated` marks one that came from a seed.

    >>> Sealed("ab" * 16, "cd" * 32, "ef" * 32, "00" * 84).id[:4]
    'abab'
    """

    id: str
    epoch: str
    key: str
    box: str = field(repr=False)
    simulated: bool | None = field(default=None, kw_only=True, metadata=canonical.OPTIONAL)

    def __post_init__(self) -> None:
        checks.hexadecimal("id", self.id, 32)
        checks.hexadecimal("epoch", self.epoch, 64)
        checks.hexadecimal("key", self.key, 64)
        checks.hexadecimal("box", self.box, BOX_DIGITS)
        _check_simulated(self.simulated)


@dataclass(frozen=True)
class Batch:
    """The reports of an epoch, group by group, each in random order; none where they were too few.

    Those whose public action is the same row of a menu are a group; where actions are private, all
    are one. `asks` is how many asks of the epoch were given, which is public.
    """

    epoch: str
    asks: int
    groups: tuple[tuple[str, ...], ...] = field(repr=False)
    simulated: bool | None = field(default=None, kw_only=True, metadata=canonical.OPTIONAL)

    def __post_init__(self) -> None:
        checks.hexadecimal("epoch", self.epoch, 64)
        boxes = [box for group in self.groups for box in group]
        if len(boxes) > checks.whole("asks", self.asks):
            raise InvalidArgument("groups", "at most one box for each ask")
        for box in boxes:
            checks.hexadecimal("groups", box, BOX_DIGITS)
        if len(set(boxes)) < len(boxes):
            raise InvalidArgument("groups", "each box once")
        _check_simulated(self.simulated)

    @property
    def size(self) -> int:
        """How many reports there are."""
        return sum(len(group) for group in self.groups)


@dataclass(frozen=True, eq=False)
class Turn:
    """What became of a batch, and the epoch that follows it; no epoch, and the study is over.

    Before the first batch there is no release. `key` is what reports are to be sealed for.
    """

    key: str
    release: Release | None = None
    epoch: Epoch | None = None

    def __post_init__(self) -> None:
        checks.hexadecimal("key", self.key, 64)
        if self.epoch is None and self.release is None:
            raise InvalidArgument("epoch", "one: a study begins with it")
        previous = GENESIS if self.release is None else self.release.digest
        if self.epoch is not None and self.epoch.previous != previous:
            raise InvalidArgument("epoch", "one that names the release before it")


def _check_simulated(value: object) -> None:
    if value not in (None, True):
        raise InvalidArgument("simulated", "true, or nothing")
