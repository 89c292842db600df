"""What a round adds beside its features: a clipped residual, in fixed point, and its noise."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats, Integers, frozen
from discreet.errors import InvalidArgument

#: Sums stay below 2**62: one bit for the sign, one to spare.
SUM_BITS = 62
#: An epoch is never longer: sums keep at least 27 bits of resolution.
MOST_ROUNDS = 1 << 34
#: The widest noise has a standard deviation of about 2^27 integers: rounding then costs nothing
#: that matters, and numerical slack is still the least (see `randomness`).
NOISE_BITS = 27
#: Standard deviations that noise may have, in integers; `fit` keeps within them.
SMALLEST_STD, LARGEST_STD = 2.0**10, 2.0**27.25
#: For these, the law of the noise is this close to ideal in each integer (total variation).
SLACK_PER_INTEGER = 2.0**-43
#: Where rounds have many integers, coarser ones: noise of at most this is four times closer.
COARSE_NOISE_BITS, LARGEST_COARSE_STD, COARSE_SLACK = 25, 2.0**25.25, 2.0**-45
#: Fewer bits than this would truncate the features themselves away.
FEWEST_BITS = 6


@dataclass(frozen=True, eq=False)
class Residual:
    """h = clip(y - prediction . phi(x), +-width): what is left to learn, within a public width.

    >>> Residual(np.zeros(1), 0.5).of(np.array([[1.0]]), np.array([0.8])).tolist()
    [0.5]
    """

    prediction: Floats
    width: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.prediction).all() or not self.width > 0.0:
            raise InvalidArgument("residual", "a finite prediction and a positive width")
        object.__setattr__(self, "prediction", frozen(self.prediction))

    @property
    def clips(self) -> bool:
        """Whether any reward of the range can be clipped."""
        return self.width < 1.0 or bool(self.prediction.any())

    def of(self, phi: Floats, rewards: Floats) -> Floats:
        """The clipped residual of each round."""
        return np.clip(rewards - np.sum(phi * self.prediction, axis=1), -self.width, self.width)


@dataclass(frozen=True)
class Noise:
    """Standard deviations: `gram` of an off-diagonal entry of the gram matrix, `cross` of hφ.

    >>> Noise.none().cross
    0.0
    """

    gram: float
    cross: float

    @classmethod
    def none(cls) -> "Noise":
        """Exact statistics: not private."""
        return cls(0.0, 0.0)

    @classmethod
    def split(cls, mu: float, width: float, share: float) -> "Noise":
        """mu spent on gram and cross together: `share` in (0, 1] moves noise to the gram.

        sigma_X = (1 + q) / mu        sigma_u = (1 + q) w / (sqrt(q) mu)
        """
        return cls((1 + share) / mu, (1 + share) * width / (math.sqrt(share) * mu))

    def of_sum(self, reports: int) -> "Noise":
        """The noise on a sum of reports that each have this noise, drawn independently.

            sigma_n = sqrt(n) sigma

        >>> Noise(1.0, 2.0).of_sum(9)
        Noise(gram=3.0, cross=6.0)
        """
        return Noise(math.sqrt(reports) * self.gram, math.sqrt(reports) * self.cross)

    def spread(self, width: float) -> float:
        """The noise on h^2: w sigma_u, and sqrt(2 / q) of that where the gram gets noise too.

        So much that an answer which comes in another epoch than its replacement, and moves two
        releases from or to zero, costs no more than mu in all (see `round_encoding`).
        """
        if self.gram == 0.0:
            return self.cross * width
        q = (width * self.gram / self.cross) ** 2
        return self.cross * width * math.sqrt(2.0 / min(q, 1.0))


def fixed_point(values: Floats, bits: int | NDArray[np.int32]) -> Integers:
    """Round toward zero to multiples of 2^-bits, as integers: never longer than `values`.

    >>> fixed_point(np.array([0.75, -0.75, 0.1]), 2).tolist()
    [3, -3, 0]
    """
    return np.trunc(np.ldexp(values, bits)).astype(np.int64)


def noise_bits(*stds: float, wanted: int = NOISE_BITS) -> int:
    """Bits for which the widest of these standard deviations is about 2^wanted integers."""
    bits = math.floor(wanted - math.log2(max(stds)))
    if bits < FEWEST_BITS:
        raise InvalidArgument("privacy", "a budget whose noise does not drown every answer")
    return bits


def spare_bits(rounds: int) -> int:
    """The most bits an entry of at most 1 may have, so that sums over the rounds fit."""
    if rounds > MOST_ROUNDS:
        raise InvalidArgument("rounds", f"at most {MOST_ROUNDS} in one epoch", rounds)
    return SUM_BITS - max(rounds, 1).bit_length()
