"""What leaves the trusted side: an epoch's noisy sums, its public number of asks, digests."""

from dataclasses import dataclass, field
from functools import cached_property

from discreet import checks
from discreet.arrays import Integers, frozen_integers
from discreet.errors import InvalidArgument
from discreet.storage import canonical

#: What the first release of a study names as its predecessor.
GENESIS = "0" * 64


@dataclass(frozen=True, eq=False)
class Release:
    """The statistics of one epoch, chained to the epoch and to the release before it.

    `asks` is the number of its asks, which is public: fewer than planned in the last epoch of a
    study that was finished early. `reports` is None under joint privacy. In the local model
    `integers` is a sum of so many reports, each with noise of its own, and their number is public.

    Where noise is correlated over releases, `integers` is a node that earlier epochs are part of,
    too; `prefix_belief` decodes the sums of all rounds so far from them (`streams`).

    `private` is true only where noise for the plan's guarantee came from the operating system.

    >>> import numpy as np
    >>> digest, integers = "ab" * 32, np.array([3])
    >>> first = Release(epoch=digest, previous=GENESIS, asks=5, integers=integers, private=False)
    >>> first.integers.tolist()
    [3]
    """

    epoch: str
    previous: str
    asks: int
    reports: int | None = field(default=None, kw_only=True, metadata=canonical.OPTIONAL)
    integers: Integers
    private: bool

    def __post_init__(self) -> None:
        for name in ("epoch", "previous"):
            checks.hexadecimal(name, getattr(self, name), 64)
        checks.whole("asks", self.asks)
        if self.reports is not None:
            checks.whole("reports", self.reports)
            if self.reports > self.asks:
                raise InvalidArgument("reports", f"at most one for each of {self.asks} asks")
        if not isinstance(self.private, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("private", "True or False")
        object.__setattr__(self, "integers", frozen_integers("integers", self.integers))

    @cached_property
    def digest(self) -> str:
        """The digest that the next epoch and release carry."""
        return canonical.digest(self)
