"""What the messages of a batch get: a reply each, or the reason why not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, TypeVar, overload

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Replies(Sequence[T], Generic[T]):
    """The replies to those that went through, in order, and why a row has none.

    `rows` are the places of those that went through; `refusals` has the others' errors by row.

    >>> replies = Replies.of(["yes", ValueError("no"), "yes"])
    >>> list(replies), replies.rows, sorted(replies.refusals)
    (['yes', 'yes'], (0, 2), [1])
    """

    rows: tuple[int, ...]
    messages: tuple[T, ...] = field(repr=False)
    refusals: Mapping[int, Exception] = field(repr=False)

    @classmethod
    def of(cls, outcomes: "Sequence[T | Exception]") -> "Replies[T]":
        """Of a reply or an error for each row."""
        kept = [(i, each) for i, each in enumerate(outcomes) if not isinstance(each, Exception)]
        refused = {i: each for i, each in enumerate(outcomes) if isinstance(each, Exception)}
        messages = tuple(each for _, each in kept)
        return cls(tuple(i for i, _ in kept), messages, MappingProxyType(refused))

    def only(self) -> T:
        """The reply to a batch of one; its error is raised."""
        for refusal in self.refusals.values():
            raise refusal
        return self.messages[0]

    def __len__(self) -> int:
        return len(self.messages)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        return self.messages[place]

    def __iter__(self) -> Iterator[T]:
        return iter(self.messages)
