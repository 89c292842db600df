"""One BLAS thread for our small matrices: more of them only wait for each other, spinning."""

import os
from _thread import LockType
from collections.abc import Iterable
from contextlib import ContextDecorator
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import (  # pyright: ignore[reportMissingTypeStubs]
    OpenBLASController,
    ThreadpoolController,
)

#: A lock that is held for so many seconds has nobody who would let it go.
ABANDONED = 1.0


class OneThread(ContextDecorator):
    """While anyone is inside, BLAS has one thread; the last to leave gives the others back.

    The number of BLAS threads belongs to the process: whoever multiplies matrices in another
    thread meanwhile has one, too. Entering takes microseconds: an ask can afford it.

    >>> from threadpoolctl import threadpool_info
    >>> with one_thread:
    ...     {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
    {1}
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._limited: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        lock = self._held()
        try:
            if self._inside == 0:
                counts = [(library, library.get_num_threads() or 1) for library in _libraries()]
                self._limited = [(library, count) for library, count in counts if count > 1]
                _set((library, 1) for library, _ in self._limited)
            self._inside += 1
        finally:
            lock.release()

    def __exit__(self, *raised: object) -> None:
        lock = self._held()
        try:
            self._inside -= 1
            if self._inside == 0:
                _set(self._limited)
        finally:
            lock.release()

    def _held(self) -> LockType:
        """The lock, held; a new one where an interrupt between two bytecodes left it so for ever.

        What it guards decides how fast we are and nothing else, and takes microseconds.
        """
        lock = self._lock
        if not lock.acquire(timeout=ABANDONED):
            lock = self._lock = Lock()
            lock.acquire()
        return lock

    def after_fork(self) -> None:
        """A new lock: the old one may be held by a thread that a forked child does not have."""
        self._lock = Lock()


#: `with one_thread:` or `@one_thread`.
one_thread = OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=one_thread.after_fork)


@cache
def _libraries() -> list[Any]:
    """The BLAS of numpy and that of scipy. To look for them takes a millisecond: once."""
    import scipy.linalg as loaded  # noqa: F401  # pyright: ignore[reportUnusedImport]

    controller: Any = ThreadpoolController()
    return controller.select(user_api="blas").lib_controllers


def _set(counts: Iterable[tuple[Any, int]]) -> None:
    for library, count in counts:
        library.set_num_threads(count)
    # Newer versions let only the thread that set a number change it again, until it lets go. Here
    # the first to come sets it, and the last to leave may be another.
    let_go: Any = getattr(OpenBLASController, "clear_controlling_thread", None)
    if let_go is not None:
        let_go()
