"""How a plan divides a round's budget over releases: what is refused, and what is filled in."""

from typing import Any

from discreet import checks
from discreet.errors import InvalidArgument
from discreet.privacy.budget import JointDP, NonPrivate, Privacy
from discreet.privacy.encodings import EncodingName
from discreet.privacy.looks import FOUR_LOOKS, Looks, check_looks


def weights_of(written: Any) -> Looks:
    """The weights of looks, which cost no more than one whole look."""
    try:
        looks = tuple(checks.number("looks", weight) for weight in written)
    except TypeError:
        raise InvalidArgument("looks", "a sequence of weights") from None
    check_looks(looks)
    return looks


def may_look_again(encoding: EncodingName, privacy: Privacy) -> bool:
    """Whether rounds may count less than once, in several releases: where that is proven."""
    return encoding in ("reward", "directed") and isinstance(privacy, JointDP)


def looks_of(
    looks: Looks | None, encoding: EncodingName, privacy: Privacy, *, fill: bool
) -> Looks | None:
    """How a round's budget is divided: by default over four releases where that is proven.

    None is one look, or no budget to divide.
    """
    again = may_look_again(encoding, privacy)
    if looks is None:
        return FOUR_LOOKS if fill and again else None
    if isinstance(privacy, NonPrivate):
        return None
    if not again and len(looks) > 1:
        raise InvalidArgument("looks", "one: this encoding's rounds are in one release", looks)
    return looks
