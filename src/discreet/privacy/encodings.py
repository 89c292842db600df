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
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats, Integers, frozen
from discreet.errors import InvalidArgument
from discreet.features.difference_grid import difference_grid
from discreet.features.maps import FeatureMap
from discreet.privacy.clipping import Noise, Residual, fixed_point, noise_bits, spare_bits

#: Entries of `directions` are no larger: only their ratios matter, and squares must not overflow.
LARGEST_DIRECTION = 1e100


class Moments(NamedTuple):
    """What a sum of encoded rounds says: `gram` is None where the encoding leaves it out."""

    gram: Floats | None
    cross: Floats
    spread: float


def required(values: Floats | None) -> Floats:
    """What an encoding that does not carry it has to be given."""
    if values is None:
        raise TypeError("this encoding carries no gram matrix: give the public asks")
    return values


@dataclass(frozen=True, eq=False)
class GramEncoding:
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

    residual: Residual
    noise: Noise
    bits: int

    @classmethod
    def fit(
        cls, features: FeatureMap, residual: Residual, mu: float | None, share: float, rounds: int
    ) -> "GramEncoding":
        """The encoding that costs mu (None: no noise) and whose sums cannot overflow."""
        noise = Noise.none() if mu is None else Noise.split(mu, residual.width, share)
        wanted = 52 if mu is None else _bits_for(noise, residual)
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
    def most_integers(features: FeatureMap) -> int:
        """m(m+1)/2 + m + 1 integers a round."""
        m = features.dimension
        return m * (m + 1) // 2 + m + 1

    def size(self, features: FeatureMap) -> int:
        """The number of integers of a round."""
        return self.most_integers(features)

    def encode(self, features: FeatureMap, points: Floats, rewards: Floats) -> Integers:
        """Integers of shape (rounds, size)."""
        h, fixed = self._fixed(features, points, rewards)
        rows, columns = _upper_triangle(features.dimension)
        products = [fixed[:, rows] * fixed[:, columns], h[:, None] * fixed, h[:, None] ** 2]
        return np.concatenate(products, axis=1)

    def total(self, features: FeatureMap, points: Floats, rewards: Floats) -> Integers:
        """The sum of the rounds' integers, without making each of them."""
        h, fixed = self._fixed(features, points, rewards)
        gram = (fixed.T @ fixed)[_upper_triangle(features.dimension)]
        return np.concatenate([gram, h @ fixed, [h @ h]])

    def _fixed(
        self, features: FeatureMap, points: Floats, rewards: Floats
    ) -> tuple[Integers, Integers]:
        phi = features(points)
        h = fixed_point(self.residual.of(phi, rewards), self.bits)
        return h, _at_most_unit(fixed_point(phi, self.bits), self.bits)

    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """The gram matrix, cross vector and spread that the integers stand for."""
        values = np.ldexp(integers.astype(np.float64), -2 * self.bits)
        return _triangle_moments(features.dimension, values)

    def stds(self, features: FeatureMap) -> Floats:
        """The noise of each integer, in integers."""
        rows, columns = _upper_triangle(features.dimension)
        gram = self.noise.gram * np.where(rows == columns, math.sqrt(2.0), 1.0)
        cross = np.full(features.dimension, self.noise.cross)
        spread = [self.noise.spread(self.residual.width)]
        return np.ldexp(np.concatenate([gram, cross, spread]), 2 * self.bits)

    def bound(self, features: FeatureMap) -> float:
        """The largest whitened change of one replaced round."""
        q = (self.residual.width * self.noise.gram / self.noise.cross) ** 2
        return (1 + q if q <= 1 else 2 * math.sqrt(q)) / self.noise.gram

    def gram_noise(self, features: FeatureMap, variances: Floats) -> Floats:
        """The variance of each decoded gram entry, from those of its integers."""
        return required(self.decode(features, variances, asks=0).gram) * 2.0 ** (-2 * self.bits)


@dataclass(frozen=True, eq=False)
class FourierEncoding:
    """cos and sin of eta x over the half difference grid, h phi, and h^2: lattice features.

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
        plain = cls(residual, noise, bits=min(_bits_for(noise, residual), spare_bits(rounds)))
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
    def most_integers(features: FeatureMap) -> int:
        """cos and sin for each difference frequency, and m + 1."""
        return 2 * len(difference_grid(features).frequencies) + features.dimension + 1

    def size(self, features: FeatureMap) -> int:
        """The number of integers of a round."""
        return self.most_integers(features)

    def encode(self, features: FeatureMap, points: Floats, rewards: Floats) -> Integers:
        """Integers of shape (rounds, size)."""
        phi = features(points)
        phases = difference_grid(features).phases(points)
        h = self.residual.of(phi, rewards)[:, None]
        entries = [np.cos(phases), np.sin(phases), h * phi, h * h]
        return fixed_point(np.concatenate(entries, axis=1), self._bits_of_each(features))

    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """The gram matrix (from its Fourier moments), the cross vector and the spread."""
        values = np.ldexp(integers.astype(np.float64), -self._bits_of_each(features))
        grid = difference_grid(features)
        r = len(grid.frequencies)
        cosines = np.concatenate([[float(asks)], values[:r]])
        sines = np.concatenate([[0.0], values[r : 2 * r]])
        return Moments(grid.gram(cosines, sines), values[2 * r : -1], float(values[-1]))

    def stds(self, features: FeatureMap) -> Floats:
        """The noise of each integer, in integers."""
        moments = self.noise.gram / np.sqrt(difference_grid(features).autocorrelation)
        cross = np.full(features.dimension, self.noise.cross)
        spread = [self.noise.spread(self.residual.width)]
        entries = np.concatenate([moments, moments, cross, spread])
        return np.ldexp(entries, self._bits_of_each(features))

    def _bits_of_each(self, features: FeatureMap) -> NDArray[np.int32]:
        """`bits`, less where noise is wider: a moment's is then sigma_X, within sqrt(2)."""
        _, exponents = np.frexp(difference_grid(features).autocorrelation)
        moments = self.bits - (1 - exponents) // 2
        plain = np.full(features.dimension + 1, self.bits, np.int32)
        return np.concatenate([moments, moments, plain])

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

    residual: Residual
    noise: Noise
    bits: int
    directions: Floats

    def __post_init__(self) -> None:
        directions = np.array(self.directions, dtype=np.float64)
        m = len(self.residual.prediction)
        # Privacy rests on it: longer rounds than `most_integers` would exceed the slack of
        # `Plan.mu`, and numbers that overflow would not be scaled to length 1.
        if directions.ndim != 2 or not 1 <= len(directions) <= m or directions.shape[1] != m:
            raise InvalidArgument("directions", f"a matrix of {m} columns and at most {m} rows")
        if not (np.abs(directions) <= LARGEST_DIRECTION).all():
            raise InvalidArgument("directions", "a matrix of finite numbers")
        object.__setattr__(self, "directions", frozen(directions))

    @classmethod
    def fit(
        cls, features: FeatureMap, residual: Residual, mu: float | None, share: float, rounds: int
    ) -> "RewardEncoding":
        """The encoding that costs mu (None: no noise) and whose sums cannot overflow."""
        every = np.eye(features.dimension)
        if mu is None:
            return cls(residual, Noise.none(), min(40, spare_bits(rounds)), every)
        cross = 2.0 * residual.width / mu
        plain = cls(residual, Noise(0.0, cross), min(noise_bits(cross), spare_bits(rounds)), every)
        excess = plain.bound(features) / mu
        return replace(plain, noise=Noise(0.0, cross * excess))

    @property
    def is_noisy(self) -> bool:
        """Whether everything that is protected gets noise."""
        return self.noise.cross > 0.0

    @property
    def largest(self) -> int:
        """The largest absolute entry of one round: 2^bits."""
        return 1 << self.bits

    @staticmethod
    def most_integers(features: FeatureMap) -> int:
        """At most m + 1 integers a round: directions beyond m could not differ."""
        return features.dimension + 1

    def size(self, features: FeatureMap) -> int:
        """The number of integers of a round."""
        return len(self.directions) + 1

    def along(self, phi: Floats) -> Floats:
        """g for each row of features: of length 1, or 0 where the directions see nothing.

        Exact sums have no noise to spend on directions: theirs is phi itself.
        """
        if not self.is_noisy:
            return phi
        # Row by row, not as a matrix product: its last bits would depend on the batch.
        seen = np.stack([np.sum(phi * row, axis=1) for row in self.directions], axis=1)
        lengths = np.linalg.norm(seen, axis=1, keepdims=True)
        return np.divide(seen, lengths, out=np.zeros_like(seen), where=lengths > 1e-150)

    def encode(
        self, features: FeatureMap, points: Floats, rewards: Floats, weight: float = 1.0
    ) -> Integers:
        """Integers of shape (rounds, size), each round counting `weight` times, at most once."""
        phi = features(points)
        h = weight * self.residual.of(phi, rewards)[:, None]
        return fixed_point(np.concatenate([h * self.along(phi), h * h], axis=1), self.bits)

    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """The cross vector and the spread; the gram matrix is not in the integers."""
        values = np.ldexp(integers.astype(np.float64), -self.bits)
        return Moments(None, values[:-1], float(values[-1]))

    def stds(self, features: FeatureMap) -> Floats:
        """The noise of each integer, in integers."""
        cross = np.full(len(self.directions), self.noise.cross)
        return np.ldexp(np.append(cross, self.noise.spread(self.residual.width)), self.bits)

    def bound(self, features: FeatureMap) -> float:
        """The largest whitened change of one replaced round."""
        return _reward_bound(self.noise, self.residual, self.bits)

    def gram_noise(self, features: FeatureMap, variances: Floats) -> Floats:
        """None: the gram matrix is public."""
        return np.zeros((features.dimension, features.dimension))


@dataclass(frozen=True, eq=False)
class AnnouncedEncoding:
    """phi phi^T of every ask, exactly, and h phi and h^2 of every answer: public decision sets.

    The actions are public, so they are summed when they are given out, whether or not anyone
    answers; only rewards are protected.

    **Bound.** x is the same in both versions of a round: as for `RewardEncoding`.
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
    def most_integers(features: FeatureMap) -> int:
        """m(m+1)/2 + m + 1 integers a round."""
        return GramEncoding.most_integers(features)

    def size(self, features: FeatureMap) -> int:
        """The number of integers of a round."""
        return self.most_integers(features)

    def announce(self, features: FeatureMap, points: Floats) -> Integers:
        """What an ask adds: the upper triangle of phi phi^T, and nothing else."""
        phi = features(points)
        rows, columns = _upper_triangle(features.dimension)
        entries = [phi[:, rows] * phi[:, columns], np.zeros((len(phi), phi.shape[1] + 1))]
        return fixed_point(np.concatenate(entries, axis=1), self.bits)

    def encode(self, features: FeatureMap, points: Floats, rewards: Floats) -> Integers:
        """What an answer adds: no gram, but h phi and h^2."""
        phi = features(points)
        h = self.residual.of(phi, rewards)[:, None]
        gram = np.zeros((len(phi), self.size(features) - features.dimension - 1))
        return fixed_point(np.concatenate([gram, h * phi, h * h], axis=1), self.bits)

    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """The gram matrix of the asks, the cross vector and the spread of the answers."""
        values = np.ldexp(integers.astype(np.float64), -self.bits)
        return _triangle_moments(features.dimension, values)

    def stds(self, features: FeatureMap) -> Floats:
        """The noise of each integer, in integers: none on the public actions."""
        gram = np.zeros(self.size(features) - features.dimension - 1)
        cross = np.full(features.dimension, self.noise.cross)
        spread = [self.noise.spread(self.residual.width)]
        return np.ldexp(np.concatenate([gram, cross, spread]), self.bits)

    def bound(self, features: FeatureMap) -> float:
        """The largest whitened change of one replaced reward."""
        return _reward_bound(self.noise, self.residual, self.bits)

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
    return Moments(gram, values[rows.size : -1], float(values[-1]))


def _bits_for(noise: Noise, residual: Residual) -> int:
    return noise_bits(math.sqrt(2.0) * noise.gram, noise.cross, noise.spread(residual.width))


def _reward_bound(noise: Noise, residual: Residual, bits: int) -> float:
    """(2 w / sigma_u) (1 + 3 u / 2): u, an integer in units of w^2, is what truncation may add."""
    return 2.0 * residual.width / noise.cross + 3.0 / math.ldexp(noise.spread(residual.width), bits)


def _at_most_unit(phi: Integers, bits: int) -> Integers:
    """Vectors of length at most 2^bits; one that rounding made longer loses its last bit."""
    longer = np.square(phi).sum(axis=1) > 1 << (2 * bits)
    return np.where(longer[:, None], phi - np.sign(phi), phi)
