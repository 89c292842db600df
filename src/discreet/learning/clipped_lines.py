"""Clipped residuals at many points at once: as lines, and how large they are.

As `inference.Clipped`, where each point has an uncertainty of its own: with s_j^2 the variance of
the unclipped residual at point j, and a_j = w / s_j,

    slope_j = 2 Phi(a_j) - 1,    E[h^2] = s_j^2 (slope_j - 2 a_j phi(a_j)) + 2 w^2 Phi(-a_j).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from discreet.arrays import Floats


@dataclass(frozen=True, eq=False)
class Lines:
    """h = slope (f - f_0) + error at each point, and the error's variance."""

    slope: Floats
    variance: Floats

    @classmethod
    def at(cls, width: float, unknown: Floats, noise: float, *, clips: bool = True) -> "Lines":
        """Where f - f_0 has these variances, and rewards vary by `noise` around f.

        >>> line = Lines.at(1.0, np.array([0.5, 0.0]), 0.5)
        >>> line.slope.round(3).tolist(), line.variance.round(3).tolist()
        ([0.683, 0.843], [0.283, 0.371])
        """
        if not clips:
            return cls(np.ones_like(unknown), np.full_like(unknown, noise))
        slope = 2.0 * ndtr(width / np.sqrt(unknown + noise)) - 1.0
        second = mean_square(width, unknown + noise)
        return cls(slope, np.maximum(second - slope**2 * unknown, 1e-12))


def mean_square(width: float, variance: Floats) -> Floats:
    """E[clip(s z, +-width)^2], z standard normal, for each s^2.

    >>> mean_square(1.0, np.array([1.0, 1e-6])).round(3).tolist()
    [0.516, 0.0]
    """
    a = np.minimum(width / np.sqrt(variance), 40.0)
    density = np.exp(-a * a / 2.0) / np.sqrt(2.0 * np.pi)
    inside = variance * (2.0 * ndtr(a) - 1.0 - 2.0 * a * density)
    return inside + 2.0 * width**2 * ndtr(-a)
