"""One exception tree. Each error knows whose fault it is.

`fault` is what a service needs to answer honestly: `"caller"` (ask again, corrected),
`"state"` (the request was well formed, but comes at the wrong moment), `"storage"` (a file
is damaged, foreign or in use) or `"peer"` (bytes from outside are not what they claim to be).

Messages name the argument and the expectation, and echo a value only when it is public.
"""

from typing import ClassVar, Literal

Fault = Literal["caller", "state", "storage", "peer"]


class DiscreetError(Exception):
    """The root of every error this package raises on purpose."""

    fault: ClassVar[Fault]


class InvalidArgument(DiscreetError, ValueError):
    """An argument does not fit; the message says which, what was expected and why.

    >>> str(InvalidArgument("lengthscale", "a positive number", 0.0))
    'lengthscale: expected a positive number, got 0.0'
    >>> str(InvalidArgument("reward", "a finite number"))
    'reward: expected a finite number'
    """

    fault = "caller"

    def __init__(self, argument: str, expectation: str, public_value: object = None) -> None:
        came = "" if public_value is None else f", got {public_value!r}"
        super().__init__(f"{argument}: expected {expectation}{came}")
        self.argument = argument
        self.expectation = f"{expectation}{came}"


class OutOfReach(DiscreetError, ValueError):
    """A wanted accuracy takes more features than allowed; `features` says how many."""

    fault = "caller"

    def __init__(self, message: str, features: int) -> None:
        super().__init__(message)
        self.features = features


class Refused(DiscreetError):
    """The request is understood and must not be carried out."""

    fault = "caller"


class SecondCopy(DiscreetError):
    """What may exist only once was to be copied, or used by another process than its own."""

    fault = "caller"


class TrialClosed(DiscreetError):
    """The trial was told, abandoned or has expired: nothing was changed."""

    fault = "state"


class UnknownTrial(DiscreetError, LookupError):
    """No trial with this number was ever asked for."""

    fault = "caller"


class BetweenEpochs(DiscreetError):
    """The next epoch is not open yet: nothing was changed; try again when it is."""

    fault = "state"


class StudyEnded(DiscreetError):
    """The study has used its horizon or was finished."""

    fault = "state"


class JournalDamaged(DiscreetError):
    """The journal's records do not fit together; nothing was read from it."""

    fault = "storage"


class JournalForeign(DiscreetError):
    """The file is not a journal of this package, or belongs to another plan."""

    fault = "storage"


class JournalLocked(DiscreetError):
    """Another process (or object) is writing to this journal."""

    fault = "storage"


class JournalFailed(DiscreetError):
    """The file or disk under the journal failed; a batch is kept whole or not at all."""

    fault = "storage"


class Malformed(DiscreetError, ValueError):
    """Bytes that are not the canonical form of what they should be."""

    fault = "peer"


class LargeDelta(UserWarning):
    """A delta that is legal but promises little for this many people."""
