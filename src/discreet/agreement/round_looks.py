"""How a plan divides a round's budget over releases: what it says, refuses and fills in."""

from typing import Any

from discreet import checks
from discreet.errors import InvalidArgument
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate, Privacy
from discreet.privacy.encodings import EncodingChoice
from discreet.privacy.looks import FOUR_LOOKS, ONE_LOOK, Looks, check_looks
from discreet.privacy.shuffled import ShuffledDP


class RoundLooks:
    """The part of a plan that says in which releases a round counts."""

    privacy: Privacy
    encoding: EncodingChoice
    looks: Looks | None
    expire_after: int

    @property
    def looks_again(self) -> bool:
        """Whether a round is part of more than one release."""
        return self.looks is not None and len(self.looks) > 1

    def looks_from(self, first: int) -> Looks:
        """How the rounds of the epoch after `first` asks count in its release and in the next ones.

        Over the whole box the first epoch, which finds level and spread, is looked at once.
        """
        again = may_look_again(self.encoding, self.privacy)
        again = again and (first > 0 or self.encoding == "directed")
        return self.looks or ONE_LOOK if again else ONE_LOOK

    def most_rounds(self, first: int, length: int) -> int:
        """How many rounds a release may sum, of an epoch of so many asks after `first`.

        Late answers of earlier epochs come in, and rounds that are looked at again.
        """
        local = isinstance(self.privacy, LocalDP | ShuffledDP)
        earlier = first if self.looks_again else 0
        return length + (0 if local else self.expire_after) + earlier


def weights_of(written: Any) -> Looks:
    """The weights of looks, which cost no more than one whole look."""
    try:
        looks = tuple(checks.number("looks", weight) for weight in written)
    except TypeError:
        raise InvalidArgument("looks", "a sequence of weights") from None
    check_looks(looks)
    return looks


def may_look_again(encoding: EncodingChoice, privacy: Privacy) -> bool:
    """Whether rounds may count less than once, in several releases: where that is proven."""
    return encoding in ("reward", "directed") and isinstance(privacy, JointDP)


def looks_of(
    looks: Looks | None, encoding: EncodingChoice, privacy: Privacy, *, fill: bool
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
