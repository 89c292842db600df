"""The trusted side: it sees actions and answers, and lets out nothing but releases."""

import hashlib

import numpy as np

from discreet import mechanism
from discreet.budget import NonPrivate, Simulation
from discreet.encodings import AnnouncedEncoding
from discreet.epoch import Epoch
from discreet.errors import InvalidArgument, Refused
from discreet.plan import Plan
from discreet.randomness import secret_key, source
from discreet.release import Release
from discreet.session import Abandoned, Asked, Session, Told, UserKey
from discreet.sums import Sums


class Privatizer:
    """Open rounds, and the integer sums of the epoch that is open.

    A late answer enters the epoch that is open when it arrives, with that epoch's encoding; an
    answer that never comes contributes the zero vector.
    """

    def __init__(self, plan: Plan, simulation: Simulation | None = None) -> None:
        self._plan = plan
        self._simulation = simulation
        self._rounds_of: dict[str, int] = {}
        self._key: UserKey | None = None
        self._drawn: Release | None = None
        self.session = Session(plan.expire_after)

    def new_key(self) -> UserKey:
        """A fresh key for pseudonyms; it never leaves the journal."""
        return UserKey(secret_key(), simulated=self._simulation is not None)

    def identify(self, key: UserKey) -> None:
        """Use this key for pseudonyms; a second one would give everyone all rounds again."""
        if self._key is not None:
            raise InvalidArgument("key", "a single one for the whole study")
        if key.simulated != (self._simulation is not None):
            kind = "a simulation" if key.simulated else "a real study"
            raise Refused(f"the journal is that of {kind}: it cannot go on as the other")
        self._key = key

    def open(self, epoch: Epoch) -> None:
        """Begin an epoch with empty sums."""
        self._secret()  # users are told apart from the first ask on
        self._epoch = epoch
        self._sums = Sums(epoch.encoding.size(self._plan.map))
        self._drawn = None

    @property
    def drawn(self) -> bool:
        """Whether the open epoch's release was drawn: what came now would be in no release."""
        return self._drawn is not None

    def admit(self, user: object) -> str | None:
        """The pseudonym of a user who may take part in one more round; anyone else is refused.

        Pseudonyms are keyed hashes; without privacy no one is counted and none is made.
        """
        privacy = self._plan.privacy
        if isinstance(privacy, NonPrivate):
            return None
        if not isinstance(user, str) or not user:
            raise InvalidArgument("user", "an id for each person: it enforces rounds_per_user")
        pseudonym = self._pseudonym(user)
        if self._rounds_of.get(pseudonym, 0) >= privacy.rounds_per_user:
            raise Refused(
                f"this user has taken part in {privacy.rounds_per_user} of "
                f"{privacy.rounds_per_user} rounds, which is what the guarantee allows"
            )
        return pseudonym

    def ask(self, event: Asked) -> None:
        """A user was given an action."""
        self.session.ask(event)
        if event.user is not None:
            self._rounds_of[event.user] = self._rounds_of.get(event.user, 0) + 1
        encoding = self._epoch.encoding
        if isinstance(encoding, AnnouncedEncoding):
            self._sums.add(encoding.announce(self._plan.map, event.point[None, :])[0])

    def tell(self, event: Told) -> None:
        """A user answered: encode the round and add it, once."""
        point = self.session.close(event.number).point
        centred = np.array([self._plan.centred(event.reward)])
        self._sums.add(self._epoch.encoding.encode(self._plan.map, point[None, :], centred)[0])

    def abandon(self, event: Abandoned) -> None:
        """A user will not answer."""
        self.session.close(event.number)

    @property
    def _asks(self) -> int:
        return self.session.asked - self._epoch.first

    def release(self) -> Release:
        """The open epoch's release: drawn once, however often it is asked for."""
        if self._drawn is None:
            bits = source(self._simulation, self._epoch.number)
            self._drawn = mechanism.release(
                self._plan, self._epoch, self._sums, asks=self._asks, bits=bits
            )
        return self._drawn

    def _pseudonym(self, user: str) -> str:
        data = user.encode("utf-8", "surrogatepass")  # any text is an id, and no two are the same
        return hashlib.blake2b(data, key=self._secret(), digest_size=16).hexdigest()

    def _secret(self) -> bytes:
        if self._key is None:
            raise InvalidArgument("key", "a key for pseudonyms before the first epoch")
        return bytes.fromhex(self._key.key)
