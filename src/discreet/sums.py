"""The exact integer sums of an epoch: sensitive, mergeable, order-free."""

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument


class Sums:
    """Sums of encoded rounds.

    Integer addition is associative: however rounds are ordered, grouped or sharded, the bytes
    are the same.

    >>> left, right = Sums(2), Sums(2)
    >>> left.add(np.array([1, 2])); right.add(np.array([10, 20]))
    >>> left.merge(right); left.total.tolist()
    [11, 22]
    """

    def __init__(self, size: int) -> None:
        self._total = np.zeros(size, dtype=np.int64)

    @property
    def total(self) -> NDArray[np.int64]:
        """A copy of the sums."""
        return self._total.copy()

    def add(self, integers: NDArray[np.int64]) -> None:
        """Count one encoded round."""
        if integers.shape != self._total.shape or integers.dtype != np.int64:
            raise InvalidArgument("integers", f"{self._total.size} 64-bit integers")
        self._total += integers

    def merge(self, other: "Sums") -> None:
        """Count everything another shard has counted."""
        self.add(other._total)
