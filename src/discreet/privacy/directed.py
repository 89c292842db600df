"""The encoding for people who bring contexts or candidates: a few directions, and their gram."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.features.maps import FeatureMap
from discreet.privacy.clipping import (
    COARSE_NOISE_BITS,
    COARSE_SLACK,
    LARGEST_COARSE_STD,
    Noise,
    Residual,
    fixed_point,
    noise_bits,
    spare_bits,
)
from discreet.privacy.gram import MANY, no_longer
from discreet.privacy.moments import Moments, gram_of, unpack_moments, upper_triangle
from discreet.privacy.round_encoding import RoundEncoding
from discreet.privacy.unit_directions import checked_directions, unit_along

#: A round has at most this many directions: under noise, more never paid.
MOST_DIRECTIONS = 24


@dataclass(frozen=True, eq=False)
class DirectedEncoding(RoundEncoding):
    """A g g^T (upper triangle), A h g and A h^2, g = B phi(x) / ||B phi(x)||, at weight A.

    `directions` B are public, any matrix. So ||g|| <= 1 whoever comes, and a round is encoded
    where the noise is worth it. It may be looked at in several releases, counting A = `weight`
    times in each (see `looks`), along the directions and around the prediction of each epoch.

    **Bound.** A round is the matrix Z Z^T of Z = sqrt(A) (g, h / w), ||Z||^2 <= 2 A. With noise
    sigma = 2 / mu on the gram's off-diagonal entries, w sigma on cross, and sqrt(2) more on the
    diagonal and on the spread (sqrt(2) w^2 sigma), each entry off the diagonal of the symmetric
    matrix appears once and each on it at half its square: the squared whitened change from Z to
    Z' = sqrt(E) (g', h' / w) is

        ||Z Z^T - Z' Z'^T||_F^2 / (2 sigma^2)
            = (mu^2 / 8) (||Z||^4 + ||Z'||^4 - 2 (Z . Z')^2) <= (mu^2 / 2) (A^2 + E^2).

    Summed over releases that is at most mu^2 where the squares of a round's weights add up to at
    most 1, whenever either version answers, if at all, and whatever B, prediction and width each
    release has: they may depend on the releases before (`streams`). Nothing is left to gain by a
    gram without noise: it costs nothing on top of the rewards, whose noise alone would be 2 w / mu.

    sqrt(A) g and sqrt(A) h / w are truncated toward zero first and multiplied as integers, so a
    round is exactly such a matrix, with vectors no longer: truncation costs nothing.
    """

    #: Residuals of answers at the ends of the range reach further than the answers.
    widest: ClassVar[float] = 2.0
    largest_std: ClassVar[float] = LARGEST_COARSE_STD
    slack: ClassVar[float] = COARSE_SLACK
    directions: Floats

    def __post_init__(self) -> None:
        m = len(self.residual.prediction)
        most = min(m, MOST_DIRECTIONS)
        object.__setattr__(self, "directions", checked_directions(self.directions, m, most))

    @classmethod
    def fit(
        cls, features: FeatureMap, residual: Residual, mu: float | None, share: float, rounds: int
    ) -> "DirectedEncoding":
        first = np.eye(min(features.dimension, MOST_DIRECTIONS), features.dimension)
        noise = Noise.none() if mu is None else Noise.split(mu, residual.width, 1.0)
        wanted = noise_bits(math.sqrt(2.0) * noise.gram, wanted=COARSE_NOISE_BITS) if mu else 52
        return cls(residual, noise, min(wanted, spare_bits(rounds)) // 2, first)

    @property
    def largest(self) -> int:
        """The largest absolute entry of one round: (2^bits)^2, because ||g||, |h| / w, A <= 1."""
        return 1 << (2 * self.bits)

    @staticmethod
    def most_integers(features: FeatureMap) -> int:
        """r(r+1)/2 + r + 1 integers a round, r at most 24 directions."""
        return _integers(min(features.dimension, MOST_DIRECTIONS))

    def size(self, features: FeatureMap) -> int:
        return _integers(len(self.directions))

    def along(self, phi: Floats) -> Floats:
        """g for each row of features: of length 1, or 0 where the directions see nothing."""
        return unit_along(self.directions, phi)

    def encode(
        self, features: FeatureMap, points: Floats, rewards: Floats, weight: float = 1.0
    ) -> Integers:
        """Integers of shape (rounds, size), each round counting `weight` times, at most once."""
        h, g = self._fixed(features, points, rewards, weight)
        rows, columns = upper_triangle(len(self.directions))
        return np.concatenate([g[:, rows] * g[:, columns], h[:, None] * g, h[:, None] ** 2], axis=1)

    def total(
        self, features: FeatureMap, points: Floats, rewards: Floats, weight: float = 1.0
    ) -> Integers:
        """The sum of the rounds' integers; of many, without making each of them."""
        if len(points) < MANY:
            return super().total(features, points, rewards, weight)
        h, g = self._fixed(features, points, rewards, weight)
        gram = (g.T @ g)[upper_triangle(len(self.directions))]
        return np.concatenate([gram, h @ g, [h @ h]])

    def _fixed(
        self, features: FeatureMap, points: Floats, rewards: Floats, weight: float
    ) -> tuple[Integers, Integers]:
        phi, root = features(points), math.sqrt(weight)
        h = fixed_point(root * (self.residual.of(phi, rewards) / self.residual.width), self.bits)
        g = fixed_point(root * self.along(phi), self.bits)
        return h, no_longer(g, math.floor(math.ldexp(weight, 2 * self.bits)))

    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """Gram and cross along the directions, and the spread."""
        values = np.ldexp(integers.astype(np.float64), -2 * self.bits)
        gram, cross, spread = unpack_moments(len(self.directions), values)
        return Moments(gram, self.residual.width * cross, self.residual.width**2 * spread)

    def stds(self, features: FeatureMap) -> Floats:
        rows, columns = upper_triangle(len(self.directions))
        gram = self.noise.gram * np.where(rows == columns, math.sqrt(2.0), 1.0)
        cross = np.full(len(self.directions), self.noise.cross / self.residual.width)
        spread = [self.noise.spread(self.residual.width) / self.residual.width**2]
        return np.ldexp(np.concatenate([gram, cross, spread]), 2 * self.bits)

    def bound(self, features: FeatureMap) -> float:
        return 2.0 / min(self.noise.gram, self.noise.cross / self.residual.width)

    def gram_noise(self, features: FeatureMap, variances: Floats) -> Floats:
        return gram_of(self.decode(features, variances, asks=0)) * 2.0 ** (-2 * self.bits)


def _integers(directions: int) -> int:
    return directions * (directions + 1) // 2 + directions + 1
