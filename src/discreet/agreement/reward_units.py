"""Rewards in the units of the model: clipped, centred, and within [-1, 1]."""

import numpy as np

from discreet.agreement.resolve import Confidence
from discreet.arrays import Floats


class RewardUnits:
    """What a plan says of rewards."""

    rewards: tuple[float, float]
    confidence: Confidence | None
    signal_std: float | None
    noise_std: float | None

    @property
    def eliminates(self) -> bool:
        """Whether the study plays phases that drop arms, with a certificate."""
        raise NotImplementedError

    @property
    def centre(self) -> float:
        """What the model calls zero: the middle of the reward range.

        For the prefix estimator in theory zero itself: f, and not f minus a constant, has a bounded
        norm.
        """
        return 0.0 if self._from_zero else (self.rewards[0] + self.rewards[1]) / 2

    @property
    def half_width(self) -> float:
        """What the model calls one: the furthest that the reward range goes from `centre`."""
        if self._from_zero:
            return max(map(abs, self.rewards))
        return (self.rewards[1] - self.rewards[0]) / 2

    @property
    def _from_zero(self) -> bool:
        return self.confidence == "theory" and not self.eliminates

    @property
    def signal_variance(self) -> float:
        """The variance of the function to begin with, in half-widths squared."""
        return 0.25 if self.signal_std is None else (self.signal_std / self.half_width) ** 2

    @property
    def noise_variance(self) -> float:
        """The variance of a reward around the function to begin with, in half-widths squared."""
        return 0.25 if self.noise_std is None else (self.noise_std / self.half_width) ** 2

    def clip(self, reward: float) -> float:
        """The reward, moved to the nearest end of the range if it lies outside."""
        return min(max(reward, self.rewards[0]), self.rewards[1])

    def centred(self, reward: float) -> float:
        """A clipped reward as a number in [-1, 1]."""
        return (self.clip(reward) - self.centre) / self.half_width

    def all_centred(self, rewards: Floats) -> Floats:
        """As `centred`, of many."""
        return (np.clip(rewards, *self.rewards) - self.centre) / self.half_width
