"""Reports that are an index: what leaves a device is one of N codewords, and no noise is added.

An encoding of this kind says what a person's round ranks the codewords by; `cap` says how one of
them is drawn, and proves that the index is epsilon-private. So there is no sensitivity to bound
and no standard deviation to keep: whatever a round says, N, K and p alone decide what it costs.

A release carries integer sums over the reports of an epoch: they are exact, and anyone can repeat
them, because every report is private by itself.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from discreet.arrays import Floats, Integers
from discreet.features.maps import FeatureMap
from discreet.privacy.cap import Cap
from discreet.privacy.clipping import Residual


@dataclass(frozen=True, eq=False)
class IndexEncoding(ABC):
    """What is clipped, how codewords are ranked, and what a sum of reports stands for."""

    residual: Residual
    cap: Cap
    #: The widest residual, in half-widths of the reward range: the range itself.
    widest: ClassVar[float] = 2.0

    @abstractmethod
    def size(self, features: FeatureMap) -> int:
        """The number of integers of a release."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation with which one report tells a typical residual."""

    @abstractmethod
    def indices(
        self,
        features: FeatureMap,
        points: Floats,
        rewards: Floats,
        *,
        coins: Integers,
        places: Integers,
    ) -> Integers:
        """What rounds send: the codeword at each round's place, those of its cap before all others.

        `coins` are uniform 62-bit integers, for what is rounded or signed at random. `places` run
        over 0 .. N - 1 with the law of `cap`; as they do, so does the index, each once: that, and
        nothing about features or rewards, is what privacy needs of this method.
        """

    @abstractmethod
    def statistics(self, indices: Integers, rows: Integers) -> Integers:
        """What reports add to a release; `rows` are the rows of the menu that their asks got."""
