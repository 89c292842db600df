"""The dense encoding: the gram matrix itself, for any feature map."""

import math
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.features.maps import FeatureMap
from discreet.privacy.clipping import Noise, Residual, fixed_point, noise_bits, spare_bits
from discreet.privacy.moments import Moments, gram_of, unpack_moments, upper_triangle
from discreet.privacy.round_encoding import RoundEncoding, check_counted_once

#: From so many rounds on an integer product is faster than the products of each.
MANY = 8


@dataclass(frozen=True, eq=False)
class GramEncoding(RoundEncoding):
    """The upper triangle of phi phi^T, h phi, and h^2: any feature map.

    phi and h are truncated first and multiplied as integers: a round is an exact outer product
    of vectors with norms at most 1 and w.

    **Bound.** With noise sigma_X on off-diagonal and sqrt(2) sigma_X on diagonal entries of the
    gram, sigma_u on cross and sqrt(2 / q) w sigma_u on the spread, sigma_u^2 = w^2 sigma_X^2 / q,
    and a = |h| / w, e = |h'| / w, the squared whitened change is at most 1 / sigma_X^2 times

        1 - c^2 + q (a^2 + e^2 + 2 a e |c| + (q / 2) (a^2 - e^2)^2),

    because, for vectors of length at most 1, ||phi phi^T - phi' phi'^T||_F^2 = ||phi||^4 +
    ||phi'||^4 - 2 c^2 <= 2 - 2 c^2. For q <= 1 it is largest at |c| = q a e, where it is convex in
    a^2 and in e^2, so largest where these are 0 or 1: max(1, 1 + q + q^2 / 2, (1 + q)^2) =
    (1 + q)^2, and mu = (1 + q) / sigma_X. For q > 1 (where 1/2 stands for q / 2), 1 - c^2 <=
    q (1 - c^2), so it is at most q times what it is at most for q = 1: 4q.

    Against silence: 1/2 + q + q^2 / 2 = (1 + q)^2 / 2, half of mu^2: an answer that comes in
    another epoch than its replacement moves two releases, and costs mu^2 in all.
    """

    @classmethod
    def fit(
        cls, features: FeatureMap, residual: Residual, mu: float | None, share: float, rounds: int
    ) -> "GramEncoding":
        noise = Noise.none() if mu is None else Noise.split(mu, residual.width, share)
        wanted = 52 if mu is None else bits_for(noise, residual)
        return cls(residual, noise, bits=min(wanted, spare_bits(rounds)) // 2)

    @property
    def largest(self) -> int:
        """The largest absolute entry of one round: (2^bits)^2, because ||phi||, |h| <= 1."""
        return 1 << (2 * self.bits)

    @staticmethod
    def most_integers(features: FeatureMap) -> int:
        """m(m+1)/2 + m + 1 integers a round."""
        m = features.dimension
        return m * (m + 1) // 2 + m + 1

    def encode(
        self, features: FeatureMap, points: Floats, rewards: Floats, weight: float = 1.0
    ) -> Integers:
        check_counted_once(weight)
        h, fixed = self._fixed(features, points, rewards)
        rows, columns = upper_triangle(features.dimension)
        products = [fixed[:, rows] * fixed[:, columns], h[:, None] * fixed, h[:, None] ** 2]
        return np.concatenate(products, axis=1)

    def total(
        self, features: FeatureMap, points: Floats, rewards: Floats, weight: float = 1.0
    ) -> Integers:
        """The sum of the rounds' integers; of many, without making each of them."""
        if len(points) < MANY:
            return super().total(features, points, rewards, weight)
        check_counted_once(weight)
        h, fixed = self._fixed(features, points, rewards)
        gram = (fixed.T @ fixed)[upper_triangle(features.dimension)]
        return np.concatenate([gram, h @ fixed, [h @ h]])

    def _fixed(
        self, features: FeatureMap, points: Floats, rewards: Floats
    ) -> tuple[Integers, Integers]:
        phi = features(points)
        h = fixed_point(self.residual.of(phi, rewards), self.bits)
        return h, no_longer(fixed_point(phi, self.bits), 1 << (2 * self.bits))

    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """The gram matrix, cross vector and spread that the integers stand for."""
        values = np.ldexp(integers.astype(np.float64), -2 * self.bits)
        return unpack_moments(features.dimension, values)

    def stds(self, features: FeatureMap) -> Floats:
        rows, columns = upper_triangle(features.dimension)
        gram = self.noise.gram * np.where(rows == columns, math.sqrt(2.0), 1.0)
        cross = np.full(features.dimension, self.noise.cross)
        spread = [self.noise.spread(self.residual.width)]
        return np.ldexp(np.concatenate([gram, cross, spread]), 2 * self.bits)

    def bound(self, features: FeatureMap) -> float:
        q = (self.residual.width * self.noise.gram / self.noise.cross) ** 2
        return (1 + q if q <= 1 else 2 * math.sqrt(q)) / self.noise.gram

    def gram_noise(self, features: FeatureMap, variances: Floats) -> Floats:
        return gram_of(self.decode(features, variances, asks=0)) * 2.0 ** (-2 * self.bits)


def bits_for(noise: Noise, residual: Residual) -> int:
    """Bits for which the widest noise of a gram, a cross vector and a spread is still faithful."""
    return noise_bits(math.sqrt(2.0) * noise.gram, noise.cross, noise.spread(residual.width))


def no_longer(rows: Integers, square: int) -> Integers:
    """Rows of at most this squared length; one that rounding made longer loses its last bit.

    >>> no_longer(np.array([[3, 4], [4, 4]]), 25).tolist()
    [[3, 4], [3, 3]]
    """
    longer = np.square(rows).sum(axis=1) > square
    return np.where(longer[:, None], rows - np.sign(rows), rows)
