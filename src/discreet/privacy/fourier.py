"""The lattice encoding: a gram matrix as its few Fourier moments."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats, Integers
from discreet.features.difference_grid import difference_grid
from discreet.features.maps import FeatureMap
from discreet.privacy.clipping import Noise, Residual, fixed_point, spare_bits
from discreet.privacy.gram import GramEncoding, bits_for
from discreet.privacy.moments import Moments
from discreet.privacy.round_encoding import RoundEncoding, check_counted_once


@dataclass(frozen=True, eq=False)
class FourierEncoding(RoundEncoding):
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

    @classmethod
    def fit(
        cls, features: FeatureMap, residual: Residual, mu: float | None, share: float, rounds: int
    ) -> "FourierEncoding":
        if mu is None:
            return cls(residual, Noise.none(), bits=min(40, spare_bits(rounds)))
        noise = Noise.split(mu, residual.width, share)
        plain = cls(residual, noise, bits=min(bits_for(noise, residual), spare_bits(rounds)))
        excess = plain.bound(features) / mu
        return cls(residual, Noise(noise.gram * excess, noise.cross * excess), plain.bits)

    @property
    def largest(self) -> int:
        """The largest absolute entry of one round: 2^bits."""
        return 1 << self.bits

    @staticmethod
    def most_integers(features: FeatureMap) -> int:
        """cos and sin for each difference frequency, and m + 1."""
        return 2 * len(difference_grid(features).frequencies) + features.dimension + 1

    def encode(
        self, features: FeatureMap, points: Floats, rewards: Floats, weight: float = 1.0
    ) -> Integers:
        check_counted_once(weight)
        phi = features(points)
        cosines, sines = difference_grid(features).waves(points)
        h = self.residual.of(phi, rewards)[:, None]
        entries = [cosines, sines, h * phi, h * h]
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
        grid = difference_grid(features)
        r = len(grid.frequencies)
        bits = self._bits_of_each(features)[:r]
        of_moments = np.ldexp((variances[:r] + variances[r : 2 * r]) / 2, -2 * bits)
        return grid.entry_variance(of_moments)
