"""What exists once: in the process that made it, and never as a copy."""

import os
from typing import NoReturn, SupportsIndex

from discreet.errors import SecondCopy

_INSTEAD = (
    "two would draw noise, or count, twice. Keep it in one process and let others ask that one; "
    "to move it, close it and open its journal there"
)


class OneCopy:
    """It can be used by its own process alone, and neither pickled nor copied.

    A fork or a copy would go on beside the original. Noise that n of them draw for the same round
    costs sqrt(n) times what was promised, and nobody notices.

    >>> import copy
    >>> copy.deepcopy(OneCopy())
    Traceback (most recent call last):
    discreet.errors.SecondCopy: a OneCopy is neither pickled nor copied: two would draw noise, or
    count, twice. Keep it in one process and let others ask that one; to move it, close it and open
    its journal there
    """

    _home = (0, 0)  # nobody's, until it is made

    def __init__(self) -> None:
        self._home = _here()

    @property
    def is_home(self) -> bool:
        """Whether this process is the one that made it."""
        return self._home == _here()

    def check_process(self) -> None:
        """Refuse every other process: one forked from its own has a copy of it, in any state."""
        if not self.is_home:
            raise SecondCopy(
                f"this {type(self).__name__} belongs to process {self._home[0]}, and this is a "
                f"fork of it: {_INSTEAD}"
            )

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        """Pickles, copies and deep copies all come by here."""
        raise SecondCopy(f"a {type(self).__name__} is neither pickled nor copied: {_INSTEAD}")


# Process ids are given again: how many forks led here tells a grandchild from the one it replaced.
_forks = 0


def _here() -> tuple[int, int]:
    return os.getpid(), _forks


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)
