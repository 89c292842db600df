"""The whole-box encoding: residuals along a few directions, for actions that are public."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from discreet.arrays import Floats, Integers, distinct_rows
from discreet.features.maps import FeatureMap
from discreet.privacy.clipping import Noise, Residual, fixed_point, noise_bits, spare_bits
from discreet.privacy.moments import Moments
from discreet.privacy.round_encoding import RoundEncoding
from discreet.privacy.unit_directions import checked_directions, unit_along

#: Releases have at most this many directions, unless a plan says otherwise: under noise, more
#: never paid.
MOST_DIRECTIONS = 32


@dataclass(frozen=True, eq=False)
class RewardEncoding(RoundEncoding):
    """h g(x), and h^2: for epochs whose actions, and so their gram matrix, are public beforehand.

    g(x) = B phi(x) / ||B phi(x)|| with `directions` B, any public matrix: noise is spent on the
    few directions worth it (see `directions`), whatever they are.

    A round may be looked at in several releases, counting `weight` times in each (see `looks`);
    its residual and directions are then those of each epoch.

    **Bound.** With noise sigma_u on cross and w sigma_u on the spread, and A = weight |h| / w,
    E = weight' |h'| / w for the two versions of a round, the squared whitened change of a release
    is at most w^2 / sigma_u^2 times

        f(A, E) = (A + E)^2 + (A^2 - E^2)^2,

    which grows with A and with E: df/dA = 2 (A + E) (1 + (A - E)^2 + A^2 - E^2) >= 0, as E <= 1.
    So the worst is |h| = |h'| = w, always. In one whole look that is f(1, 1) = 4; against silence
    it is f(1, 0) = 2, so answers in different epochs cost 4 in all, too. With several looks it is
    the sum of f over the releases, which `looks.check_looks` keeps at 4. So sigma_u = 2 w / mu
    costs mu. Truncation toward zero only shortens cross. The spreads, in units of w^2, it moves
    apart by less than u, one integer: not at all where A^2, E^2 < u, and else f grows by less than
    2 u |A^2 - E^2| + u^2 <= 3 u f, for which the noise is enlarged.
    """

    public_gram: ClassVar[bool] = True
    exact_gram: ClassVar[bool] = True
    directions: Floats

    def __post_init__(self) -> None:
        m = len(self.residual.prediction)
        object.__setattr__(self, "directions", checked_directions(self.directions, m, m))

    @classmethod
    def fit(
        cls, features: FeatureMap, residual: Residual, mu: float | None, share: float, rounds: int
    ) -> "RewardEncoding":
        every = np.eye(features.dimension)
        if mu is None:
            return cls(residual, Noise.none(), min(40, spare_bits(rounds)), every)
        cross = 2.0 * residual.width / mu
        plain = cls(residual, Noise(0.0, cross), min(noise_bits(cross), spare_bits(rounds)), every)
        excess = plain.bound(features) / mu
        return replace(plain, noise=Noise(0.0, cross * excess))

    @property
    def is_noisy(self) -> bool:
        return self.noise.cross > 0.0

    @property
    def largest(self) -> int:
        """The largest absolute entry of one round: 2^bits."""
        return 1 << self.bits

    @staticmethod
    def most_integers(features: FeatureMap) -> int:
        """At most m + 1 integers a round: directions beyond m could not differ.

        A plan may say that there are fewer (`Plan.directions`).
        """
        return features.dimension + 1

    def size(self, features: FeatureMap) -> int:
        return len(self.directions) + 1

    def along(self, phi: Floats) -> Floats:
        """g for each row of features: of length 1, or 0 where the directions see nothing.

        Exact sums have no noise to spend on directions: theirs is phi itself.
        """
        return unit_along(self.directions, phi) if self.is_noisy else phi

    def encode(
        self, features: FeatureMap, points: Floats, rewards: Floats, weight: float = 1.0
    ) -> Integers:
        """Integers of shape (rounds, size), each round counting `weight` times, at most once."""
        phi = features(points)
        return self._fixed(phi, self.along(phi), rewards, weight)

    def total(
        self, features: FeatureMap, points: Floats, rewards: Floats, weight: float = 1.0
    ) -> Integers:
        """The sum of the rounds' integers; many at few points have those features made once."""
        places, which = distinct_rows(points)
        phi = features(places)
        return self._fixed(phi[which], self.along(phi)[which], rewards, weight).sum(axis=0)

    def _fixed(self, phi: Floats, along: Floats, rewards: Floats, weight: float) -> Integers:
        h = weight * self.residual.of(phi, rewards)[:, None]
        return fixed_point(np.concatenate([h * along, h * h], axis=1), self.bits)

    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """The cross vector and the spread; the gram matrix is not in the integers."""
        values = np.ldexp(integers.astype(np.float64), -self.bits)
        return Moments(None, values[:-1], float(values[-1]))

    def stds(self, features: FeatureMap) -> Floats:
        cross = np.full(len(self.directions), self.noise.cross)
        return np.ldexp(np.append(cross, self.noise.spread(self.residual.width)), self.bits)

    def bound(self, features: FeatureMap) -> float:
        return reward_bound(self.noise, self.residual, self.bits)

    def gram_noise(self, features: FeatureMap, variances: Floats) -> Floats:
        """None: the gram matrix is public."""
        return np.zeros((features.dimension, features.dimension))


def reward_bound(noise: Noise, residual: Residual, bits: int) -> float:
    """(2 w / sigma_u) (1 + 3 u / 2): u, an integer in units of w^2, is what truncation may add."""
    return 2.0 * residual.width / noise.cross + 3.0 / math.ldexp(noise.spread(residual.width), bits)
