"""The exact integer sums of an epoch, and of the epochs before it: sensitive, order-free."""

import numpy as np

from discreet.arrays import Integers
from discreet.errors import InvalidArgument


class Sums:
    """Sums of encoded rounds.

    Integer addition is associative: however rounds are ordered, grouped or sharded, the bytes
    are the same.

    >>> sums = Sums(2)
    >>> sums.add(np.array([1, 2])); sums.add(np.array([10, 20])); sums.total.tolist()
    [11, 22]
    """

    def __init__(self, size: int) -> None:
        self._total = np.zeros(size, dtype=np.int64)

    @property
    def total(self) -> Integers:
        """A copy of the sums."""
        return self._total.copy()

    def add(self, integers: Integers) -> None:
        """Count an encoded round, or the sum of some."""
        if integers.shape != self._total.shape or integers.dtype != np.int64:
            raise InvalidArgument("integers", f"{self._total.size} 64-bit integers")
        self._total += integers


class PastSums:
    """The sums of every epoch so far, in order: what nodes of correlated noise are made of.

    >>> past, sums = PastSums(1), Sums(1)
    >>> past.close(sums); sums.add(np.array([5])); past.followed_by(sums).tolist()
    [[0], [5]]
    """

    def __init__(self, size: int) -> None:
        self._rows = np.zeros((16, size), dtype=np.int64)
        self.epochs = 0

    def close(self, sums: Sums) -> None:
        """Keep the sums of an epoch that is over."""
        self.followed_by(sums)
        self.epochs += 1

    def followed_by(self, sums: Sums) -> Integers:
        """A row for each epoch that is over, and one for the epoch that is open."""
        if self.epochs == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self.epochs] = sums.total
        return self._rows[: self.epochs + 1]
