"""What the prefix algorithm, and it alone, reads of a plan: correlated noise and one encoding.

Where noise is correlated the releases decode to noisy sums of *all* rounds so far (`streams`), so
every epoch has the same encoding: rounds encoded otherwise would not add up.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet.features.maps import FeatureMap
from discreet.privacy.budget import JointDP
from discreet.privacy.clipping import SLACK_PER_INTEGER, Noise, Residual
from discreet.privacy.correlation import BLT
from discreet.privacy.encodings import Encoding
from discreet.privacy.streams import MOST, Correlation, Stream
from discreet.storage import canonical


@dataclass(frozen=True, eq=False)
class Correlated:
    """How noise is correlated over releases, the one encoding of all epochs, and the norm B.

    `norm` is what `confidence="theory"` rests on, and None for the practical rule.
    """

    stream: Stream
    encoding: Encoding
    norm: float | None

    @classmethod
    def of(
        cls,
        stream: Stream,
        kind: type[Encoding],
        features: FeatureMap,
        *,
        mu: float,
        rounds: int,
        norm: float | None,
    ) -> "Correlated":
        """Clipped rewards, no residuals, with as much noise as makes a round cost mu.

        It costs the norm of its column of C times the encoding's bound, and the rounding of nodes.
        """
        nothing = Residual(np.zeros(features.dimension), 1.0)
        plain = kind.fit(features, nothing, mu / stream.norm, 1.0, rounds)
        cost = stream.norm * plain.bound(features) + stream.rounding(plain.stds(features))
        noise = Noise(plain.noise.gram * cost / mu, plain.noise.cross * cost / mu)
        return cls(stream, replace(plain, noise=noise), norm)

    def prefix_of(self, releases: int) -> Encoding:
        """The encoding with the noise that the sums of all rounds have, at most, so far."""
        std = max(map(self.stream.std, range(1, releases + 1)))
        noise = Noise(std * self.encoding.noise.gram, std * self.encoding.noise.cross)
        return replace(self.encoding, noise=noise)

    def allows(self, encoding: Encoding) -> bool:
        """Whether this is the one encoding, with at least its noise; a hair is for rounding."""
        noise, least = encoding.noise, self.encoding.noise
        enough = min(noise.gram / least.gram, noise.cross / least.cross) >= 1.0 - 1e-11
        same = replace(encoding, noise=least)
        return enough and canonical.digest(same) == canonical.digest(self.encoding)


def stream_of(
    noise: Correlation,
    buffers: BLT | None,
    *,
    releases: int | None,
    privacy: JointDP,
    integers: int,
) -> Stream:
    """The strategy for a known number of releases, or without end.

    Without end, for as many releases as finite precision takes at most a quarter of delta.
    """
    if releases is not None:
        return Stream.of(noise, releases, buffers)
    each = (1.0 + math.exp(privacy.epsilon)) * integers * SLACK_PER_INTEGER
    certified = int(min(privacy.delta / (4.0 * each), MOST))
    return Stream.without_end(noise, max(1, certified), buffers)
