"""One user-round as a vector of integers: encode, bound, decode.

An encoding turns scaled points x and centred rewards y in [-1, 1] into fixed-point integers.
Integer sums are exact and order-free, and `decode` is linear, so decoding a sum is summing
the decoded rounds:

    gram  = sum of phi(x) phi(x)^T        cross = sum of h phi(x)        spread = sum of h^2

where h = clip(y - prediction(x), +-width) is the residual from a public prediction. The spread,
which tells how noisy rewards are and so how narrow the next width may be, costs nothing: where
a replaced round moves `cross` most, |h| = |h'| = w, it does not move the spread at all. Beside how
it encodes, every encoding says how much noise each integer gets and proves how far one replaced
round can move the whitened vector (`bound`): that is the mu the epoch costs.

Notation of the proofs: c = phi(x) . phi(x') for the two versions of the replaced round, with
||phi|| <= 1 and |h|, |h'| <= w. Replacing a round by silence (the zero vector) moves less.

A new encoding is a frozen dataclass in a file of its own, listed in `encodings`. It fills in what
is abstract here, proves its bound in its docstring, and packs gram, cross and spread in this order.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

from discreet.arrays import Floats, Integers
from discreet.errors import InvalidArgument
from discreet.features.maps import FeatureMap
from discreet.privacy.clipping import LARGEST_STD, SLACK_PER_INTEGER, Noise, Residual
from discreet.privacy.moments import Moments


@dataclass(frozen=True, eq=False)
class RoundEncoding(ABC):
    """How a round becomes integers, how much noise each gets, and what one round can move."""

    residual: Residual
    noise: Noise
    bits: int
    #: Whether the gram matrix is left out, because actions are public before anyone acts.
    public_gram: ClassVar[bool] = False
    #: Whether the gram matrix is known without noise.
    exact_gram: ClassVar[bool] = False
    #: The largest noise an integer may have, and how close to ideal all noise up to it is.
    largest_std: ClassVar[float] = LARGEST_STD
    slack: ClassVar[float] = SLACK_PER_INTEGER
    #: The widest residual, in half-widths of the reward range.
    widest: ClassVar[float] = 1.0

    @classmethod
    @abstractmethod
    def fit(
        cls, features: FeatureMap, residual: Residual, mu: float | None, share: float, rounds: int
    ) -> Self:
        """The encoding that costs mu (None: no noise) and whose sums cannot overflow.

        `share` in (0, 1] moves noise from the cross vector to the gram, where both have some.
        """

    @staticmethod
    @abstractmethod
    def most_integers(features: FeatureMap) -> int:
        """The largest number of integers that a round can have."""

    @abstractmethod
    def encode(
        self, features: FeatureMap, points: Floats, rewards: Floats, weight: float = 1.0
    ) -> Integers:
        """What answers add: (rounds, size), each round counting `weight` times, at most once."""

    @abstractmethod
    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """What the integers, or sums of them over so many asks, stand for."""

    @abstractmethod
    def stds(self, features: FeatureMap) -> Floats:
        """The noise of each integer, in integers."""

    @abstractmethod
    def bound(self, features: FeatureMap) -> float:
        """The largest whitened change of one replaced round: the mu that it costs."""

    @abstractmethod
    def gram_noise(self, features: FeatureMap, variances: Floats) -> Floats:
        """The variance of each decoded gram entry, from those of its integers."""

    @property
    @abstractmethod
    def largest(self) -> int:
        """The largest absolute entry of one round."""

    @property
    def is_noisy(self) -> bool:
        """Whether everything that is protected gets noise."""
        return self.noise.gram > 0.0 and self.noise.cross > 0.0

    def size(self, features: FeatureMap) -> int:
        """The number of integers of a round."""
        return self.most_integers(features)

    def total(
        self, features: FeatureMap, points: Floats, rewards: Floats, weight: float = 1.0
    ) -> Integers:
        """The sum of the rounds' integers."""
        return self.encode(features, points, rewards, weight).sum(axis=0)

    def announce(self, features: FeatureMap, points: Floats) -> Integers | None:
        """What asks add, one a row, whether or not anyone answers; None: nothing."""
        return None

    def along(self, phi: Floats) -> Floats:
        """What a residual is multiplied by: the features, unless an encoding says otherwise."""
        return phi

    def noisy_stds(self, features: FeatureMap) -> Floats:
        """The noise of the integers that must have some: all of them, unless some are public."""
        return self.stds(features)


def check_counted_once(weight: float) -> None:
    """Refuse a weight where the bound is proven for rounds that count once, in one release."""
    if weight != 1.0:
        raise InvalidArgument("weight", "1: this encoding's rounds are in one release", weight)
