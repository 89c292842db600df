"""Products of lattice features as sums of phases: where the gram matrix is Toeplitz.

For features cos(a) and sin(a) on a lattice of frequencies, every product of two features is half
a sum of cos or sin at the difference and the sum of their frequencies:

    cos(a) cos(b) = [cos(a - b) + cos(a + b)] / 2
    sin(a) sin(b) = [cos(a - b) - cos(a + b)] / 2
    sin(a) cos(b) = [sin(a + b) + sin(a - b)] / 2
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from discreet.arrays import Floats, Integers, Mask, remembered
from discreet.errors import InvalidArgument
from discreet.features.fourier import FourierFeatures
from discreet.features.maps import FeatureMap
from discreet.features.waves import waves


@dataclass(frozen=True, eq=False)
class DifferenceGrid:
    """Where each entry of phi phi^T finds its moments.

    `frequencies` are the nonzero differences and sums of lattice frequencies, one of each
    +- pair. Position 0 of a moment vector is the zero frequency, position i + 1 is row i;
    `difference` and `total` hold these positions for each pair of frequencies.
    """

    frequencies: Floats
    indices: Integers
    spacing: tuple[float, ...]
    weights: Floats
    difference: Integers
    total: Integers
    difference_sign: Integers
    total_sign: Integers
    has_sine: Mask

    @cached_property
    def autocorrelation(self) -> Floats:
        """a_eta = sum of w_n w_(n - eta) over the full lattice, for each row of `frequencies`.

        A pair of half-lattice frequencies stands for four of the full one, two at the difference
        and two at the sum, and adds to eta and -eta alike.
        """
        products = np.outer(self.weights, self.weights) / 2
        size = len(self.frequencies) + 1
        both = np.bincount(self.difference.ravel(), products.ravel(), size)
        both += np.bincount(self.total.ravel(), products.ravel(), size)
        return both[1:] / 2

    def entry_variance(self, variances: Floats) -> Floats:
        """The variance of each gram entry when each moment has noise of the given variance."""
        v = np.concatenate([[0.0], variances])
        apart = (v[self.difference] + v[self.total]) / 4
        same = np.where(self.difference == self.total, v[self.difference] / 2, 0.0)
        entries = self._blocks(apart + same, apart + same, apart + same)
        return entries * self._outer(self.weights)

    @remembered
    def waves(self, points: Floats) -> tuple[Floats, Floats]:
        """cos and sin of eta x for each point (row)."""
        return waves(points, self.frequencies, self.indices, self.spacing)

    def gram(self, cosines: Floats, sines: Floats) -> Floats:
        """phi phi^T summed over rounds, from the sums of cos and sin."""
        minus, plus = cosines[self.difference], cosines[self.total]
        sin_minus = self.difference_sign * sines[self.difference]
        sin_plus = self.total_sign * sines[self.total]
        entries = self._blocks((minus + plus) / 2, (sin_plus + sin_minus) / 2, (minus - plus) / 2)
        return entries * self._outer(np.sqrt(self.weights))

    def _outer(self, scale: Floats) -> Floats:
        both = np.concatenate([scale, scale[self.has_sine]])
        return np.outer(both, both)

    def _blocks(self, cos_cos: Floats, sin_cos: Floats, sin_sin: Floats) -> Floats:
        s = self.has_sine
        return np.block([[cos_cos, sin_cos.T[:, s]], [sin_cos[s], sin_sin[s][:, s]]])


@lru_cache(maxsize=8)
def difference_grid(features: FeatureMap) -> DifferenceGrid:
    """The difference grid of a lattice map; other maps have none and are refused.

    >>> from discreet.features.choose import choose
    >>> from discreet.features.kernels import SquaredExponential
    >>> grid = difference_grid(choose(SquaredExponential(0.3), widths=(1,), error=1e-2))
    >>> a = grid.autocorrelation
    >>> bool(0.0 < 1.0 - 2.0 * a.sum() < 1.0)  # the rest is a_0
    True
    """
    lattice = isinstance(features, FourierFeatures)
    if not lattice or features.indices is None or features.spacing is None:
        raise InvalidArgument("encoding", "grid features for 'fourier', or the encoding 'gram'")
    n, spacing = features.indices, features.spacing
    difference = n[:, None, :] - n[None, :, :]
    total = n[:, None, :] + n[None, :, :]
    stacked = np.concatenate([difference.reshape(-1, n.shape[1]), total.reshape(-1, n.shape[1])])
    signs = _half_sign(stacked)
    canonical = stacked * signs[:, None]
    unique, inverse = np.unique(canonical, axis=0, return_inverse=True)
    zero = int(np.flatnonzero(~unique.any(axis=1))[0])
    order = np.concatenate([[zero], np.delete(np.arange(len(unique)), zero)])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    place = rank[inverse.reshape(-1)].reshape(2, len(n), len(n))
    return DifferenceGrid(
        frequencies=unique[order[1:]].astype(np.float64) * np.array(spacing),
        indices=unique[order[1:]],
        spacing=spacing,
        weights=features.weights,
        difference=place[0],
        total=place[1],
        difference_sign=signs[: len(n) ** 2].reshape(len(n), len(n)),
        total_sign=signs[len(n) ** 2 :].reshape(len(n), len(n)),
        has_sine=np.asarray(n.any(axis=1)),
    )


def _half_sign(vectors: Integers) -> Integers:
    """+1 where the first nonzero entry is positive (or all are zero), -1 elsewhere."""
    first = np.take_along_axis(vectors, (vectors != 0).argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(first < 0, -1, 1).astype(np.int64)
