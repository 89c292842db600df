"""The unit cube: points that fill it evenly, and the ball inscribed in it, |u - 1/2| ≤ 1/2."""

from collections.abc import Sequence

import numpy as np
from scipy.special import gammainc, ndtri

from discreet.arrays import Floats, Mask

RADIUS = 0.5
# How far outside, relative to the radius, rounding may put a point.
SLACK = 1e-9
# Points nearer to the sphere than this stay where they are: projecting twice is projecting once.
PROJECTION_SLACK = 1e-12


def even_points(count: int, dimension: int) -> Floats:
    """Row i is the fractional part of 1/2 + i (1/g, 1/g², …), g the root of g^(d+1) = g + 1.

    >>> even_points(3, 1).round(3).ravel()
    array([0.5  , 0.118, 0.736])
    """
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (dimension + 1))
    steps = root ** -np.arange(1.0, dimension + 1)
    return (0.5 + np.arange(count)[:, None] * steps) % 1.0


# -- the ball


def in_ball(points: Floats) -> Mask:
    """Which rows are in the ball, up to rounding.

    >>> in_ball(np.array([[1.0, 0.5], [1.0, 1.0]]))
    array([ True, False])
    """
    return _lengths(points - 0.5)[:, 0] <= RADIUS * (1 + SLACK)


def radius_left(points: Floats, taken: Sequence[int]) -> Floats:
    """√(1/4 - |u - 1/2|²) over the columns `taken`: the radius left to the others, (n, 1).

    >>> radius_left(np.array([[0.5, 0.8]]), taken=[1])
    array([[0.4]])
    """
    used = _lengths(points[:, taken] - 0.5)
    return np.sqrt(np.maximum(RADIUS**2 - used**2, 0.0))


def pull_into_ball(
    points: Floats, columns: Sequence[int], radius: Floats | float = RADIUS
) -> Floats:
    """Far rows pulled towards the centre until these columns are within the radius.

    >>> pull_into_ball(np.array([[1.5, 0.5], [0.25, 0.5]]), [0, 1])
    array([[1.  , 0.5 ],
           [0.25, 0.5 ]])
    """
    offsets = points[:, columns] - 0.5
    lengths = _lengths(offsets)
    far = lengths > radius + PROJECTION_SLACK
    pulled = points.copy()
    pulled[:, columns] = 0.5 + offsets / np.where(far, lengths, 1.0) * radius
    return np.where(far, pulled, points)


def fill_ball(uniforms: Floats, radius: Floats | float = RADIUS) -> Floats:
    """Uniform rows of the unit cube as uniform rows of the ball, none lost.

    For z = Φ⁻¹(u), the row 1/2 + r (z/|z|) F(|z|²)^(1/d), F the law of χ² with d degrees: the
    direction of a normal vector is uniform, and F of its squared length is another uniform.

    >>> fill_ball(np.array([[0.5, 0.5], [0.5, 1.0]]))
    array([[0.5, 0.5],
           [0.5, 1. ]])
    """
    edge = np.finfo(np.float64).epsneg
    normal = np.asarray(ndtri(np.clip(uniforms, edge, 1 - edge)), dtype=np.float64)
    lengths = _lengths(normal)
    degrees = uniforms.shape[1]
    law = np.asarray(gammainc(degrees / 2, lengths**2 / 2), dtype=np.float64)
    return 0.5 + radius * normal / np.where(lengths > 0, lengths, 1.0) * law ** (1 / degrees)


def _lengths(vectors: Floats) -> Floats:
    """Euclidean norms of rows, (n, 1), without overflow."""
    return np.hypot.reduce(vectors, axis=1, keepdims=True)
