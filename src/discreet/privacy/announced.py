"""The encoding for public decision sets: exact actions, noise on the answers alone."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.features.maps import FeatureMap
from discreet.privacy.clipping import Residual, fixed_point
from discreet.privacy.gram import GramEncoding
from discreet.privacy.moments import Moments, unpack_moments, upper_triangle
from discreet.privacy.reward import RewardEncoding, reward_bound
from discreet.privacy.round_encoding import RoundEncoding, check_counted_once


@dataclass(frozen=True, eq=False)
class AnnouncedEncoding(RoundEncoding):
    """phi phi^T of every ask, exactly, and h phi and h^2 of every answer: public decision sets.

    The actions are public, so they are summed when they are given out, whether or not anyone
    answers; only rewards are protected.

    **Bound.** x is the same in both versions of a round: as for `RewardEncoding`.
    """

    exact_gram: ClassVar[bool] = True

    @classmethod
    def fit(
        cls, features: FeatureMap, residual: Residual, mu: float | None, share: float, rounds: int
    ) -> "AnnouncedEncoding":
        plain = RewardEncoding.fit(features, residual, mu, share, rounds)
        return cls(residual, plain.noise, plain.bits)

    @property
    def is_noisy(self) -> bool:
        return self.noise.cross > 0.0

    @property
    def largest(self) -> int:
        """The largest absolute entry of one round: 2^bits."""
        return 1 << self.bits

    @staticmethod
    def most_integers(features: FeatureMap) -> int:
        """m(m+1)/2 + m + 1 integers a round."""
        return GramEncoding.most_integers(features)

    def announce(self, features: FeatureMap, points: Floats) -> Integers:
        """What an ask adds: the upper triangle of phi phi^T, and nothing else."""
        phi = features(points)
        rows, columns = upper_triangle(features.dimension)
        entries = [phi[:, rows] * phi[:, columns], np.zeros((len(phi), phi.shape[1] + 1))]
        return fixed_point(np.concatenate(entries, axis=1), self.bits)

    def encode(
        self, features: FeatureMap, points: Floats, rewards: Floats, weight: float = 1.0
    ) -> Integers:
        """What an answer adds: no gram, but h phi and h^2."""
        check_counted_once(weight)
        phi = features(points)
        h = self.residual.of(phi, rewards)[:, None]
        gram = np.zeros((len(phi), self.size(features) - features.dimension - 1))
        return fixed_point(np.concatenate([gram, h * phi, h * h], axis=1), self.bits)

    def decode(self, features: FeatureMap, integers: Integers | Floats, *, asks: int) -> Moments:
        """The gram matrix of the asks, the cross vector and the spread of the answers."""
        values = np.ldexp(integers.astype(np.float64), -self.bits)
        return unpack_moments(features.dimension, values)

    def stds(self, features: FeatureMap) -> Floats:
        """The noise of each integer, in integers: none on the public actions."""
        gram = np.zeros(self.size(features) - features.dimension - 1)
        cross = np.full(features.dimension, self.noise.cross)
        spread = [self.noise.spread(self.residual.width)]
        return np.ldexp(np.concatenate([gram, cross, spread]), self.bits)

    def noisy_stds(self, features: FeatureMap) -> Floats:
        """The noise of the answers; the actions are public."""
        return self.stds(features)[-(features.dimension + 1) :]

    def bound(self, features: FeatureMap) -> float:
        """The largest whitened change of one replaced reward."""
        return reward_bound(self.noise, self.residual, self.bits)

    def gram_noise(self, features: FeatureMap, variances: Floats) -> Floats:
        """None: the actions are public."""
        return np.zeros((features.dimension, features.dimension))
