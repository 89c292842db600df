"""What the roles say to each other: frozen wire types, read strictly.

In the local model nothing a client sends holds its decision set, its action or its answer, but
for the randomised integers:

    client                                     server
      Request(id, known)         ->
                                 <-   Offer(id, ask, epoch, releases)
      Report(id, epoch, integers, seal) ->      or IndexReport(id, epoch, index, seal), Decline(id)
                                 <-   Receipt(id, outcome)

In the joint model those go to the custodian, and a release an epoch is all that goes on:

    person                                     custodian                       publisher
      Ask(id, user, candidates or context) ->
                                 <-   Action(id, action, chosen)
      Answer(id, reward)         ->             or Decline(id)
                                 <-   Receipt(id, outcome)
                                                 Release              ->
                                                              <-   Opening(previous, epoch)

A round's `id` is drawn by the one who asks, 128 bits that no one else knows before they are sent:
it makes each message safe to repeat, and no one can answer in another's place. Messages are the
canonical JSON of `canonical`, so a message has one form and a form has one message. What is
private in them is in no `repr` and in no error.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args

from discreet import checks
from discreet.agreement.release import Release
from discreet.arrays import Integers, frozen_integers
from discreet.domain.coordinates import mapping
from discreet.errors import InvalidArgument, Malformed
from discreet.learning.epoch import Epoch
from discreet.protocol.batches import Batch, Sealed, Turn
from discreet.storage import canonical

T = TypeVar("T")
#: No message is longer: reading takes memory in proportion.
MOST_BYTES = 1 << 28
#: No index is larger: it has at most four bytes.
LARGEST_INDEX = (1 << 32) - 1
#: No report has more integers: 2048 features in a dense triangle need 2.1 million.
MOST_INTEGERS = 1 << 23
Outcome = Literal["counted", "declined"]
Value = float | int | str


@dataclass(frozen=True)
class Request:
    """A client wants to take part in one round, and has verified this many releases.

    >>> write(Request("ab" * 16, known=0))
    b'{"id":"abababababababababababababababab","known":0,"type":"Request"}'
    """

    id: str
    known: int = 0

    def __post_init__(self) -> None:
        checks.hexadecimal("id", self.id, 32)
        checks.whole("known", self.known)


@dataclass(frozen=True, eq=False)
class Offer:
    """Ask number `ask`, in the open epoch; the releases are those the client does not know.

    `key` is a shuffler's to say: what reports are sealed for (`batches`).
    """

    id: str
    ask: int
    epoch: Epoch
    releases: tuple[Release, ...] = ()
    key: str | None = field(default=None, kw_only=True, metadata=canonical.OPTIONAL)

    def __post_init__(self) -> None:
        checks.hexadecimal("id", self.id, 32)
        if self.key is not None:
            checks.hexadecimal("key", self.key, 64)
        _check_epoch(self.epoch)
        epoch = self.epoch
        if not epoch.first <= checks.whole("ask", self.ask) < epoch.end:
            raise InvalidArgument("ask", "an ask of the epoch it is offered in", self.ask)


@dataclass(frozen=True, eq=False)
class Report:
    """One randomised round, under the encoding of the epoch with this digest.

    `simulated` marks one whose noise came from a seed; only a simulation counts it. `seal` is a
    digest of the rest, made here: a report that was changed on the way does not read.
    It finds accidents, not forgers, who can make another; against those there is TLS.

    >>> import numpy as np
    >>> Report("ab" * 16, "cd" * 32, np.array([3, -4])).integers.tolist()
    [3, -4]
    """

    id: str
    epoch: str
    integers: Integers
    seal: str = ""
    simulated: bool | None = field(default=None, kw_only=True, metadata=canonical.OPTIONAL)

    def __post_init__(self) -> None:
        checks.hexadecimal("id", self.id, 32)
        checks.hexadecimal("epoch", self.epoch, 64)
        _check_simulated(self.simulated)
        integers = frozen_integers("integers", self.integers)
        if not 1 <= integers.size <= MOST_INTEGERS:
            raise InvalidArgument("integers", f"between 1 and {MOST_INTEGERS} of them")
        object.__setattr__(self, "integers", integers)
        object.__setattr__(self, "seal", _seal(self, integers.astype("<i8").tobytes()))


@dataclass(frozen=True)
class IndexReport:
    """One randomised round that is an index, under the encoding of the epoch with this digest.

    `simulated` and `seal` are those of a `Report`; what is said of the round is `index` alone.

    >>> report = IndexReport("ab" * 16, "cd" * 32, 9173)
    >>> len(write(report)), report.index
    (224, 9173)
    """

    id: str
    epoch: str
    index: int
    seal: str = ""
    simulated: bool | None = field(default=None, kw_only=True, metadata=canonical.OPTIONAL)

    def __post_init__(self) -> None:
        checks.hexadecimal("id", self.id, 32)
        checks.hexadecimal("epoch", self.epoch, 64)
        _check_simulated(self.simulated)
        if checks.whole("index", self.index) > LARGEST_INDEX:
            raise InvalidArgument("index", "at most four bytes")
        object.__setattr__(self, "seal", _seal(self, self.index.to_bytes(4, "little")))


AnyReport = Report | IndexReport


@dataclass(frozen=True)
class Decline:
    """A client will not answer the round of this id."""

    id: str

    def __post_init__(self) -> None:
        checks.hexadecimal("id", self.id, 32)


@dataclass(frozen=True)
class Receipt:
    """The round of this id is closed: its report counted, or it was declined."""

    id: str
    outcome: Outcome

    def __post_init__(self) -> None:
        checks.hexadecimal("id", self.id, 32)
        if self.outcome not in get_args(Outcome):
            raise InvalidArgument("outcome", "'counted' or 'declined'")


@dataclass(frozen=True, eq=False)
class Ask:
    """Someone wants an action: out of candidates, under a context, or over the whole box.

    Candidates and context are private, in natural units by the names of the domain. `user` tells
    people apart where the plan is private; a whole number is kept as its digits.

    >>> Ask("ab" * 16, "u-17", context={"age": 61})
    Ask(id='abababababababababababababababab')
    """

    id: str
    user: str | None = field(default=None, repr=False)
    candidates: tuple[Mapping[str, Value | bool], ...] | None = field(
        default=None, repr=False, metadata=canonical.OPTIONAL
    )
    context: Mapping[str, Value | bool] | None = field(
        default=None, repr=False, metadata=canonical.OPTIONAL
    )

    def __post_init__(self) -> None:
        checks.hexadecimal("id", self.id, 32)
        if self.user is not None:
            object.__setattr__(self, "user", checks.user_id(self.user))
        if self.candidates is not None and self.context is not None:
            raise InvalidArgument("candidates", "none beside a context")
        if self.candidates is not None:
            rows = tuple(_frozen("candidates", row) for row in _rows(self.candidates))
            object.__setattr__(self, "candidates", rows)
        if self.context is not None:
            object.__setattr__(self, "context", _frozen("context", self.context))
        canonical.encode(self)  # what can not be written can not be made


@dataclass(frozen=True, eq=False)
class Action:
    """The action to try; `chosen` is its position among the candidates, where some were given."""

    id: str
    action: Mapping[str, Value] = field(repr=False)
    chosen: int | None = field(default=None, repr=False, metadata=canonical.OPTIONAL)

    def __post_init__(self) -> None:
        checks.hexadecimal("id", self.id, 32)
        if self.chosen is not None:
            checks.whole("chosen", self.chosen)
        object.__setattr__(self, "action", _frozen("action", self.action))
        canonical.encode(self)


@dataclass(frozen=True)
class Answer:
    """The reward of the round of this id.

    >>> Answer("ab" * 16, 0.7)
    Answer(id='abababababababababababababababab')
    """

    id: str
    reward: float = field(repr=False)

    def __post_init__(self) -> None:
        checks.hexadecimal("id", self.id, 32)
        object.__setattr__(self, "reward", checks.reward(self.reward))


@dataclass(frozen=True, eq=False)
class Opening:
    """What follows the release of this digest: an epoch, or none, and the study is over."""

    previous: str
    epoch: Epoch | None = None

    def __post_init__(self) -> None:
        checks.hexadecimal("previous", self.previous, 64)
        if self.epoch is not None:
            _check_epoch(self.epoch)
            if self.epoch.previous != self.previous:
                raise InvalidArgument("epoch", "one that names the same release before it")


Message = (
    Request
    | Offer
    | AnyReport
    | Decline
    | Receipt
    | Ask
    | Action
    | Answer
    | Release
    | Opening
    | Sealed
    | Batch
    | Turn
)


def write(message: Message) -> bytes:
    """The bytes of a message: always the same for the same message."""
    return canonical.encode(message)


def read(kind: type[T], data: object) -> T:
    """The message of this kind, or `Malformed`; nothing else is ever raised.

    >>> read(Decline, b'{"id":"abababababababababababababababab","type":"Decline"}')
    Decline(id='abababababababababababababababab')
    >>> read(Decline, b'{"id":"someone","type":"Decline"}')
    Traceback (most recent call last):
    discreet.errors.Malformed: $: expected a valid Decline (id: expected 32 hexadecimal digits)
    """
    if not isinstance(data, bytes) or len(data) > MOST_BYTES:
        raise Malformed(f"a message: expected at most {MOST_BYTES} bytes")
    return canonical.decode(kind, data)


def _check_simulated(simulated: bool | None) -> None:
    if simulated not in (None, True):
        raise InvalidArgument("simulated", "true, or nothing")


def _seal(report: AnyReport, content: bytes) -> str:
    """The digest of a report, or an error where it has another."""
    data = f"{report.id}{report.epoch}".encode() + content
    data += b"simulated" if report.simulated else b""
    seal = hashlib.sha256(data).hexdigest()
    if report.seal not in ("", seal):
        raise InvalidArgument("seal", "the digest of this report: something in it was changed")
    return seal


def _check_epoch(epoch: Epoch) -> None:
    checks.whole("epoch.number", epoch.number)
    checks.whole("epoch.first", epoch.first)
    checks.count("epoch.length", epoch.length)
    checks.hexadecimal("epoch.plan", epoch.plan, 64)
    checks.hexadecimal("epoch.previous", epoch.previous, 64)


def _rows(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list) or not value:
        raise InvalidArgument("candidates", "a sequence of mappings, at least one")
    return tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _frozen(name: str, value: object) -> Mapping[str, Any]:
    given: Any = mapping(value)
    if not given:
        raise InvalidArgument(name, "a mapping from coordinate names to values")
    return MappingProxyType({each: checks.plain(given[each]) for each in given})
