"""cos and sin of many frequencies at many points: on a lattice, by the sums of few angles.

    cos(a + b) = cos a cos b - sin a sin b        sin(a + b) = sin a cos b + cos a sin b

A lattice's frequencies are n h, n whole: cos and sin of h_j x_j, one pair a coordinate, give all of
them by log2 |n_j| + d such sums, each of which adds two roundings. A product takes a tenth of the
time of a cosine. No row's arithmetic touches another row, so a row's bits are its own.
"""

from collections.abc import Iterator

import numpy as np

from discreet.arrays import Floats, Integers

#: So many points at a time stay in a processor's cache.
ROWS = 1024


def waves(
    points: Floats, frequencies: Floats, indices: Integers | None, spacing: tuple[float, ...] | None
) -> tuple[Floats, Floats]:
    """cos and sin of frequency . point, each (points, frequencies).

    >>> cosines, sines = waves(np.array([[0.5]]), np.array([[0.0], [2.0]]), None, None)
    >>> cosines.round(3).tolist(), sines.round(3).tolist()
    ([[1.0, 0.54]], [[0.0, 0.841]])
    """
    cosines, sines = np.empty((2, len(points), len(frequencies)))
    for some, (own_cosines, own_sines) in wave_blocks(points, frequencies, indices, spacing):
        cosines[some], sines[some] = own_cosines.T, own_sines.T
    return cosines, sines


def wave_blocks(
    points: Floats, frequencies: Floats, indices: Integers | None, spacing: tuple[float, ...] | None
) -> Iterator[tuple[slice, tuple[Floats, Floats]]]:
    """The same for some points after the others, each (frequencies, points)."""
    for start in range(0, len(points), ROWS):
        some = slice(start, start + ROWS)
        if indices is None or spacing is None:
            phases = _phases(points[some], frequencies).T
            yield some, (np.cos(phases), np.sin(phases))
            continue
        found = _multiples(spacing[0] * points[some, 0], indices[:, 0])
        for j in range(1, len(spacing)):
            found = _sum(found, _multiples(spacing[j] * points[some, j], indices[:, j]))
        yield some, found


def _phases(points: Floats, frequencies: Floats) -> Floats:
    # One coordinate after the other: in a matrix product a row's last bits depend on the others.
    phases = points[:, 0, None] * frequencies[:, 0]
    for j in range(1, points.shape[1]):
        phases += points[:, j, None] * frequencies[:, j]
    return phases


def _multiples(angle: Floats, numbers: Integers) -> tuple[Floats, Floats]:
    """cos and sin of whole multiples of angles, each (multiples, angles)."""
    most = int(np.abs(numbers).max(initial=1))
    cosines, sines = np.empty((2, 2 * most + 1, len(angle)))  # those below zero come last
    cosines[0], sines[0] = 1.0, 0.0
    cosines[1], sines[1] = np.cos(angle), np.sin(angle)
    known = 1
    while known < most:  # those up to 2 k from those up to k
        more = min(known, most - known)
        low, top = slice(1, more + 1), slice(known + 1, known + more + 1)
        both = cosines[low], sines[low]
        cosines[top], sines[top] = _sum(both, (cosines[known], sines[known]))
        known += more
    cosines[most + 1 :], sines[most + 1 :] = cosines[most:0:-1], -sines[most:0:-1]
    return cosines[numbers], sines[numbers]


def _sum(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    (cos_a, sin_a), (cos_b, sin_b) = one, other
    return cos_a * cos_b - sin_a * sin_b, sin_a * cos_b + cos_a * sin_b
