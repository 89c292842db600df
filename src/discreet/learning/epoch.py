"""A frozen public epoch: a block of asks under one policy and one encoding."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.arrays import Floats
from discreet.learning.policy import Policy
from discreet.privacy.encodings import Encoding, Indexed
from discreet.privacy.interval import IntervalEncoding
from discreet.storage import canonical


@dataclass(frozen=True, eq=False)
class Epoch:
    """A block of consecutive asks under one policy and one encoding.

    `first` is the index of its first ask; its asks are first .. first + length - 1. `plan` and
    `previous` are the digests of the plan and of the release before it.
    """

    number: int
    first: int
    length: int
    plan: str
    previous: str
    encoding: Encoding | Indexed
    policy: Policy

    @property
    def end(self) -> int:
        """The index of the first ask after this epoch."""
        return self.first + self.length

    @property
    def additive(self) -> Encoding:
        """How a round becomes integers that noise is added to."""
        if isinstance(self.encoding, Indexed):
            raise TypeError("reports of this epoch are indices: nothing is added to them")
        return self.encoding

    @property
    def indexed(self) -> Indexed:
        """How a round becomes an index."""
        if not isinstance(self.encoding, Indexed):
            raise TypeError("reports of this epoch are integers with noise, not indices")
        return self.encoding

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """How many asks share a public action, for each; where actions are private, all are one.

        Reports that are mixed are mixed within these.
        """
        if isinstance(self.encoding, IntervalEncoding):
            return tuple(self.policy.asked(self.length).tolist())
        return (self.length,)

    @property
    def smallest_group(self) -> int:
        """How many asks the smallest group has."""
        return min(asks for asks in self.groups if asks)

    def group_of(self, number: int) -> int:
        """Which group an ask is of."""
        if not isinstance(self.encoding, IntervalEncoding):
            return 0
        return int(self.policy.rows(np.array([number - self.first]))[0])

    @cached_property
    def digest(self) -> str:
        """The digest that this epoch's release carries."""
        return canonical.digest(self)

    def asked(self, asks: int) -> Floats:
        """The public points of its first asks, where it has a menu."""
        return self.policy.from_menu(np.arange(asks))
