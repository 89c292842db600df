"""A way to break the promise in one line."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One broken line."""

    name: str
    file: str
    old: str
    new: str
    catchers: tuple[str, ...]
