"""One user-round as a vector of integers: encode, bound, decode.

An encoding turns scaled points x and centred rewards y in [-1, 1] into fixed-point integers.
Integer sums are exact and order-free, and `decode` is linear, so decoding a sum is summing
the decoded rounds:

    gram  = sum of phi(x) phi(x)^T        cross = sum of h phi(x)

where h = clip(y - prediction(x), +-width) is the residual from a public prediction. Beside how
it encodes, every encoding says how much noise each integer gets and proves how far one replaced
round can move the whitened vector (`bound`): that is the mu the epoch costs.

Notation of the proofs: c = phi(x) . phi(x') for the two versions of the replaced round, with
||phi|| <= 1 and |h|, |h'| <= w. Replacing a round by silence (the zero vector) moves less.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.differences import difference_grid
from discreet.features import FeatureMap
from discreet.residuals import Noise, Residual, fixed_point, noise_bits, spare_bits

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Moments(NamedTuple):
    """What a sum of encoded rounds says: `gram` is None where the encoding leaves it out."""

    gram: Floats | None
    cross: Floats


def required(gram: Floats | None) -> Floats:
    """The gram matrix of an encoding that carries one."""
    if gram is None:
        raise TypeError("this encoding carries no gram matrix: give the public one")
    return gram


@dataclass(frozen=True, eq=False)
class GramEncoding:
    """The upper triangle of phi phi^T, and h phi: any feature map.

    phi and h are truncated first and multiplied as integers: a round is an exact outer product
    of vectors with norms at most 1 and w.

    **Bound.** With noise sigma_X on off-diagonal and sqrt(2) sigma_X on diagonal entries of the
    gram, and sigma_u on cross, the squared whitened change is

        ||phi phi^T - phi' phi'^T||_F^2 / (2 sigma_X^2) + ||h phi - h' phi'||^2 / sigma_u^2
            <= (1 - c^2) / sigma_X^2 + 2 w^2 (1 + |c|) / sigma_u^2,

    because h h' >= -w^2 and, for vectors of length at most 1, ||phi phi^T - phi' phi'^T||_F^2 =
    ||phi||^4 + ||phi'||^4 - 2 c^2 <= 2 - 2 c^2. With sigma_u^2 =
    w^2 sigma_X^2 / q this is (1 - c^2 + 2q(1 + |c|)) / sigma_X^2, largest at |c| = q, where it
    is (1 + q)^2 / sigma_X^2 = mu^2. Against silence: (1/2 + q) / sigma_X^2 < mu^2.
    """

    residual: Residual
    noise: Noise
    bits: int

    @classmethod
    def fit(
        cls, features: FeatureMap, residual: Residual, mu: float | None, share: float, rounds: int
    ) -> "GramEncoding":
        """The encoding that costs mu (None: no noise) and whose sums cannot overflow."""
        noise = Noise.none() if mu is None else Noise.split(mu, residual.width, share)
        wanted = 52 if mu is None else noise_bits(math.sqrt(2.0) * noise.gram, noise.cross)
        return cls(residual, noise, bits=min(wanted, spare_bits(rounds)) // 2)

    @property
    def is_noisy(self) -> bool:
        """Whether everything that is protected gets noise."""
        return self.noise.gram > 0.0 and self.noise.cross > 0.0

    @property
    def largest(self) -> int:
        """The largest absolute entry of one round: (2^bits)^2, because ||phi||, |h| <= 1."""
        return 1 << (2 * self.bits)

    @staticmethod
    def size(features: FeatureMap) -> int:
        """m(m+1)/2 + m integers a round."""
        m = features.dimension
        return m * (m + 1) // 2 + m

    def encode(self, features: FeatureMap, points: Floats, rewards: Floats) -> Integers:
        """Integers of shape (rounds, size)."""
        phi = features(points)
        h = fixed_point(self.residual.of(phi, rewards), self.bits)
        fixed = _at_most_unit(fixed_point(phi, self.bits), self.bits)
        rows, columns = _upper_triangle(features.dimension)
        return np.concatenate([fixed[:, rows] * fixed[:, columns], h[:, None] * fixed], axis=1)

    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """The gram matrix and cross vector that the integers stand for."""
        values = np.ldexp(integers.astype(np.float64), -2 * self.bits)
        return _triangle_moments(features.dimension, values)

    def stds(self, features: FeatureMap) -> Floats:
        """The noise of each integer, in integers."""
        rows, columns = _upper_triangle(features.dimension)
        gram = self.noise.gram * np.where(rows == columns, math.sqrt(2.0), 1.0)
        cross = np.full(features.dimension, self.noise.cross)
        return np.ldexp(np.concatenate([gram, cross]), 2 * self.bits)

    def bound(self, features: FeatureMap) -> float:
        """The largest whitened change of one replaced round."""
        q = (self.residual.width * self.noise.gram / self.noise.cross) ** 2
        return (1 + q if q <= 1 else 2 * math.sqrt(q)) / self.noise.gram

    def gram_noise(self, features: FeatureMap, variances: Floats) -> Floats:
        """The variance of each decoded gram entry, from those of its integers."""
        return required(self.decode(features, variances, asks=0).gram) * 2.0 ** (-2 * self.bits)


@dataclass(frozen=True, eq=False)
class FourierEncoding:
    """cos and sin of eta x over the half difference grid, and h phi: lattice features.

    A product of two features is a sum of two such moments,

        cos(a) cos(b) = [cos(a - b) + cos(a + b)] / 2        (and alike for sin),

    so O(m) integers carry the gram matrix that `GramEncoding` spends m^2 / 2 on. The zero
    moment is the number of asks, which is public. A moment with more noise has fewer bits, so
    that all noise is about as many integers wide.

    **Bound.** Let k(delta) = sum_n w_n cos(n h . delta) be the approximate kernel over the full
    lattice and a = w * w the autocorrelation of its weights: k^2 = sum_eta a_eta cos(eta delta),
    sum a = 1. With noise sigma_X / sqrt(a_eta) on the cos and sin of each eta of the half grid

        sum_half a_eta |e^{i eta x} - e^{i eta x'}|^2 / sigma_X^2 = (1 - k(x - x')^2) / sigma_X^2,

    which is what `GramEncoding` has with c = k(x - x'): the same proof and the same noise scales.
    Truncation moves each integer by less than one, and a difference by less than two: the
    whitened change grows by at most 2 ||1 / stds||_2, which the noise is enlarged for.
    """

    residual: Residual
    noise: Noise
    bits: int

    @classmethod
    def fit(
        cls, features: FeatureMap, residual: Residual, mu: float | None, share: float, rounds: int
    ) -> "FourierEncoding":
        """The encoding that costs mu (None: no noise) and whose sums cannot overflow."""
        if mu is None:
            return cls(residual, Noise.none(), bits=min(40, spare_bits(rounds)))
        noise = Noise.split(mu, residual.width, share)
        wanted = noise_bits(math.sqrt(2.0) * noise.gram, noise.cross)
        plain = cls(residual, noise, bits=min(wanted, spare_bits(rounds)))
        excess = plain.bound(features) / mu
        return cls(residual, Noise(noise.gram * excess, noise.cross * excess), plain.bits)

    @property
    def is_noisy(self) -> bool:
        """Whether everything that is protected gets noise."""
        return self.noise.gram > 0.0 and self.noise.cross > 0.0

    @property
    def largest(self) -> int:
        """The largest absolute entry of one round: 2^bits."""
        return 1 << self.bits

    @staticmethod
    def size(features: FeatureMap) -> int:
        """cos and sin for each difference frequency, and m."""
        return 2 * len(difference_grid(features).frequencies) + features.dimension

    def encode(self, features: FeatureMap, points: Floats, rewards: Floats) -> Integers:
        """Integers of shape (rounds, size)."""
        phi = features(points)
        phases = difference_grid(features).phases(points)
        h = self.residual.of(phi, rewards)
        entries = [np.cos(phases), np.sin(phases), h[:, None] * phi]
        return fixed_point(np.concatenate(entries, axis=1), self._bits_of_each(features))

    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """The gram matrix (from its Fourier moments) and the cross vector."""
        values = np.ldexp(integers.astype(np.float64), -self._bits_of_each(features))
        grid = difference_grid(features)
        r = len(grid.frequencies)
        cosines = np.concatenate([[float(asks)], values[:r]])
        sines = np.concatenate([[0.0], values[r : 2 * r]])
        return Moments(grid.gram(cosines, sines), values[2 * r :])

    def stds(self, features: FeatureMap) -> Floats:
        """The noise of each integer, in integers."""
        moments = self.noise.gram / np.sqrt(difference_grid(features).autocorrelation)
        cross = np.full(features.dimension, self.noise.cross)
        return np.ldexp(np.concatenate([moments, moments, cross]), self._bits_of_each(features))

    def _bits_of_each(self, features: FeatureMap) -> NDArray[np.int32]:
        """`bits`, less where noise is wider: a moment's is then sigma_X, within sqrt(2)."""
        _, exponents = np.frexp(difference_grid(features).autocorrelation)
        moments = self.bits - (1 - exponents) // 2
        return np.concatenate([moments, moments, np.full(features.dimension, self.bits, np.int32)])

    def bound(self, features: FeatureMap) -> float:
        """The largest whitened change of one replaced round, truncation included."""
        plain = GramEncoding(self.residual, self.noise, self.bits).bound(features)
        return plain + 2.0 * float(np.linalg.norm(1.0 / self.stds(features)))

    def gram_noise(self, features: FeatureMap, variances: Floats) -> Floats:
        """The variance of each decoded gram entry, from those of its integers."""
        grid = difference_grid(features)
        r = len(grid.frequencies)
        bits = self._bits_of_each(features)[:r]
        of_moments = np.ldexp((variances[:r] + variances[r : 2 * r]) / 2, -2 * bits)
        return grid.entry_variance(of_moments)


@dataclass(frozen=True, eq=False)
class RewardEncoding:
    """h phi alone: for epochs whose gram matrix is public without looking at anyone.

    **Bound.** ||h phi - h' phi'|| <= |h| + |h'| <= 2 w for any two rounds: with noise
    sigma_u = 2 w / mu the whitened change is at most mu. Truncation toward zero only shortens.
    """

    residual: Residual
    noise: Noise
    bits: int

    @classmethod
    def fit(
        cls, features: FeatureMap, residual: Residual, mu: float | None, share: float, rounds: int
    ) -> "RewardEncoding":
        """The encoding that costs mu (None: no noise) and whose sums cannot overflow."""
        if mu is None:
            return cls(residual, Noise.none(), bits=min(40, spare_bits(rounds)))
        noise = Noise(0.0, 2.0 * residual.width / mu)
        return cls(residual, noise, bits=min(noise_bits(noise.cross), spare_bits(rounds)))

    @property
    def is_noisy(self) -> bool:
        """Whether everything that is protected gets noise."""
        return self.noise.cross > 0.0

    @property
    def largest(self) -> int:
        """The largest absolute entry of one round: 2^bits."""
        return 1 << self.bits

    @staticmethod
    def size(features: FeatureMap) -> int:
        """m integers a round."""
        return features.dimension

    def encode(self, features: FeatureMap, points: Floats, rewards: Floats) -> Integers:
        """Integers of shape (rounds, size)."""
        phi = features(points)
        h = self.residual.of(phi, rewards)
        return fixed_point(h[:, None] * phi, self.bits)

    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """The cross vector; the gram matrix is not in the integers."""
        return Moments(None, np.ldexp(integers.astype(np.float64), -self.bits))

    def stds(self, features: FeatureMap) -> Floats:
        """The noise of each integer, in integers."""
        return np.ldexp(np.full(features.dimension, self.noise.cross), self.bits)

    def bound(self, features: FeatureMap) -> float:
        """The largest whitened change of one replaced round."""
        return 2.0 * self.residual.width / self.noise.cross

    def gram_noise(self, features: FeatureMap, variances: Floats) -> Floats:
        """None: the gram matrix is public."""
        return np.zeros((features.dimension, features.dimension))


@dataclass(frozen=True, eq=False)
class AnnouncedEncoding:
    """phi phi^T of every ask, exactly, and h phi of every answer: for public decision sets.

    The actions are public, so they are summed when they are given out, whether or not anyone
    answers; only rewards are protected.

    **Bound.** x is the same in both versions of a round, and ||(h - h') phi|| <= 2 w.
    """

    residual: Residual
    noise: Noise
    bits: int

    @classmethod
    def fit(
        cls, features: FeatureMap, residual: Residual, mu: float | None, share: float, rounds: int
    ) -> "AnnouncedEncoding":
        """The encoding that costs mu (None: no noise) and whose sums cannot overflow."""
        plain = RewardEncoding.fit(features, residual, mu, share, rounds)
        return cls(residual, plain.noise, plain.bits)

    @property
    def is_noisy(self) -> bool:
        """Whether everything that is protected gets noise."""
        return self.noise.cross > 0.0

    @property
    def largest(self) -> int:
        """The largest absolute entry of one round: 2^bits."""
        return 1 << self.bits

    @staticmethod
    def size(features: FeatureMap) -> int:
        """m(m+1)/2 + m integers a round."""
        m = features.dimension
        return m * (m + 1) // 2 + m

    def announce(self, features: FeatureMap, points: Floats) -> Integers:
        """What an ask adds: the upper triangle of phi phi^T, and no cross."""
        phi = features(points)
        rows, columns = _upper_triangle(features.dimension)
        entries = [phi[:, rows] * phi[:, columns], np.zeros_like(phi)]
        return fixed_point(np.concatenate(entries, axis=1), self.bits)

    def encode(self, features: FeatureMap, points: Floats, rewards: Floats) -> Integers:
        """What an answer adds: no gram, and h phi."""
        phi = features(points)
        h = self.residual.of(phi, rewards)
        gram = np.zeros((len(phi), self.size(features) - features.dimension))
        return fixed_point(np.concatenate([gram, h[:, None] * phi], axis=1), self.bits)

    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """The gram matrix of the asks and the cross vector of the answers."""
        values = np.ldexp(integers.astype(np.float64), -self.bits)
        return _triangle_moments(features.dimension, values)

    def stds(self, features: FeatureMap) -> Floats:
        """The noise of each integer, in integers: none on the public actions."""
        gram = np.zeros(self.size(features) - features.dimension)
        cross = np.full(features.dimension, self.noise.cross)
        return np.ldexp(np.concatenate([gram, cross]), self.bits)

    def bound(self, features: FeatureMap) -> float:
        """The largest whitened change of one replaced reward."""
        return 2.0 * self.residual.width / self.noise.cross

    def gram_noise(self, features: FeatureMap, variances: Floats) -> Floats:
        """None: the actions are public."""
        return np.zeros((features.dimension, features.dimension))


Encoding = GramEncoding | FourierEncoding | RewardEncoding | AnnouncedEncoding
EncodingName = Literal["gram", "fourier", "reward", "announced"]
EncodingChoice = Literal["auto", "gram", "fourier", "reward", "announced"]

ENCODINGS: dict[EncodingName, type[Encoding]] = {
    "gram": GramEncoding,
    "fourier": FourierEncoding,
    "reward": RewardEncoding,
    "announced": AnnouncedEncoding,
}


@lru_cache(maxsize=8)
def _upper_triangle(m: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    rows, columns = np.triu_indices(m)
    return rows, columns


def _triangle_moments(m: int, values: Floats) -> Moments:
    gram = np.zeros((m, m))
    rows, columns = _upper_triangle(m)
    gram[rows, columns] = values[: rows.size]
    gram[columns, rows] = values[: rows.size]
    return Moments(gram, values[rows.size :])


def _at_most_unit(phi: Integers, bits: int) -> Integers:
    """Vectors of length at most 2^bits; one that rounding made longer loses its last bit."""
    longer = np.square(phi).sum(axis=1) > 1 << (2 * bits)
    return np.where(longer[:, None], phi - np.sign(phi), phi)
