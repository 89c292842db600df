"""Who took part how often: keyed hashes of user ids, counted against the guarantee."""

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

from discreet import checks
from discreet.agreement.plan import Plan
from discreet.errors import InvalidArgument, Refused
from discreet.one_copy import OneCopy
from discreet.privacy.budget import NonPrivate
from discreet.protocol.records import UserKey
from discreet.trusted.randomness import secret_key

NOBODY: Mapping[str, int] = MappingProxyType({})


class Participants(OneCopy):
    """Pseudonyms and the rounds each has taken.

    >>> from discreet import Box, JointDP
    >>> people = Participants(Plan(domain=Box({"dose": (0, 10)}), privacy=JointDP(1.0, 1e-6)))
    >>> people.identify(UserKey("ab" * 32))
    >>> people.count(people.admit("u-17"))
    >>> people.admit("u-17")
    Traceback (most recent call last):
    discreet.errors.Refused: this user has taken part in 1 of 1 rounds, which is what the
    guarantee allows
    """

    def __init__(self, plan: Plan, *, simulated: bool = False) -> None:
        super().__init__()
        self._privacy = plan.privacy
        self._simulated = simulated
        self._rounds_of: dict[str, int] = {}
        self._key: UserKey | None = None

    def new_key(self) -> UserKey:
        """A fresh key for pseudonyms; it never leaves the journal."""
        return UserKey(secret_key(), simulated=self._simulated)

    def identify(self, key: UserKey) -> None:
        """Use this key for pseudonyms; a second one would give everyone all rounds again."""
        if self._key is not None:
            raise InvalidArgument("key", "a single one for the whole study")
        if key.simulated != self._simulated:
            kind = "a simulation" if key.simulated else "a real study"
            raise Refused(f"the journal is that of {kind}: it cannot go on as the other")
        self._key = key

    def admit(self, user: object, besides: Mapping[str, int] = NOBODY) -> str | None:
        """The pseudonym of a user who may take part in one more round; anyone else is refused.

        `besides` counts rounds that are about to begin. Pseudonyms are keyed hashes; without
        privacy no one is counted and none is made.
        """
        privacy = self._privacy
        if isinstance(privacy, NonPrivate):
            return None
        # Any text is an id, and no two are the same; 17 and "17" are.
        pseudonym = self.keyed(checks.user_id(user).encode("utf-8", "surrogatepass"))
        rounds = self._rounds_of.get(pseudonym, 0) + besides.get(pseudonym, 0)
        if rounds >= privacy.rounds_per_user:
            raise Refused(
                f"this user has taken part in {privacy.rounds_per_user} of "
                f"{privacy.rounds_per_user} rounds, which is what the guarantee allows"
            )
        return pseudonym

    def count(self, pseudonym: str | None) -> None:
        """One more round of this pseudonym."""
        if pseudonym is not None:
            self._rounds_of[pseudonym] = self._rounds_of.get(pseudonym, 0) + 1

    def check_identified(self) -> None:
        """Refuse to begin without a key: users are told apart from the first ask on."""
        self.keyed(b"")

    def keyed(self, data: bytes) -> str:
        """128 bits, in hexadecimal, that only the holder of the key can compute from the data."""
        if self._key is None:
            raise InvalidArgument("key", "a key for pseudonyms before the first epoch")
        key = bytes.fromhex(self._key.key)
        return hashlib.blake2b(data, key=key, digest_size=16).hexdigest()
