"""What sums of encoded rounds say: gram matrix, cross vector and spread, and their packing."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats


class Moments(NamedTuple):
    """Sums over rounds: `gram` is None where the actions, and so their gram, are public."""

    gram: Floats | None
    cross: Floats
    spread: float


def gram_of(moments: Moments) -> Floats:
    """The gram matrix of an encoding that carries one."""
    if moments.gram is None:
        raise TypeError("this encoding carries no gram matrix: give the public asks")
    return moments.gram


@lru_cache(maxsize=8)
def upper_triangle(side: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the entries on and above the diagonal, as they are packed."""
    rows, columns = np.triu_indices(side)
    return rows, columns


def unpack_moments(side: int, values: Floats) -> Moments:
    """The moments in a packed upper triangle, a cross vector and a spread."""
    gram = np.zeros((side, side))
    rows, columns = upper_triangle(side)
    gram[rows, columns] = values[: rows.size]
    gram[columns, rows] = values[: rows.size]
    return Moments(gram, values[rows.size : -1], float(values[-1]))
