"""The ball inscribed in the unit cube: |u - 1/2| ≤ 1/2."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, ndtri

Floats = NDArray[np.float64]

RADIUS = 0.5
# How far outside, relative to the radius, rounding may put a point.
SLACK = 1e-9
# Points nearer to the sphere than this stay where they are: projecting twice is projecting once.
PROJECTION_SLACK = 1e-12


def inside(points: Floats) -> NDArray[np.bool_]:
    """Which rows are in the ball, up to rounding.

    >>> inside(np.array([[1.0, 0.5], [1.0, 1.0]]))
    array([ True, False])
    """
    return _lengths(points - 0.5)[:, 0] <= RADIUS * (1 + SLACK)


def room(points: Floats, taken: Sequence[int]) -> Floats:
    """√(1/4 - |u - 1/2|²) over the columns `taken`: the radius left to the others, (n, 1).

    >>> room(np.array([[0.5, 0.8]]), taken=[1])
    array([[0.4]])
    """
    used = _lengths(points[:, taken] - 0.5)
    return np.sqrt(np.maximum(RADIUS**2 - used**2, 0.0))


def drawn_in(points: Floats, columns: Sequence[int], radius: Floats | float = RADIUS) -> Floats:
    """Far rows pulled towards the centre until these columns are within the radius.

    >>> drawn_in(np.array([[1.5, 0.5], [0.25, 0.5]]), [0, 1])
    array([[1.  , 0.5 ],
           [0.25, 0.5 ]])
    """
    offsets = points[:, columns] - 0.5
    lengths = _lengths(offsets)
    far = lengths > radius + PROJECTION_SLACK
    pulled = points.copy()
    pulled[:, columns] = 0.5 + offsets / np.where(far, lengths, 1.0) * radius
    return np.where(far, pulled, points)


def filled(uniforms: Floats, radius: Floats | float = RADIUS) -> Floats:
    """Uniform rows of the unit cube as uniform rows of the ball, none lost.

    For z = Φ⁻¹(u), the row 1/2 + r (z/|z|) F(|z|²)^(1/d), F the law of χ² with d degrees: the
    direction of a normal vector is uniform, and F of its squared length is another uniform.

    >>> filled(np.array([[0.5, 0.5], [0.5, 1.0]]))
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
