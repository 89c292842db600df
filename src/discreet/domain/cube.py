"""The unit cube: rows of finite numbers, and points that fill it evenly."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import InvalidArgument

Floats = NDArray[np.float64]


def rows(argument: str, given: ArrayLike, columns: int, *, single: bool = False) -> Floats:
    """Rows of this many finite numbers, (n, columns); with `single` just one, (1, columns).

    Where they lie is not checked: `snap` of a domain takes rows from outside, too.

    >>> rows("point", [0.5, 1.0], 2, single=True)
    array([[0.5, 1. ]])
    >>> rows("points", [[0.5, 1.0]], 3)
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: points: expected rows of 3 finite numbers
    """
    expectation = f"{'one row' if single else 'rows'} of {columns} finite numbers"
    try:
        matrix = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        # The original error quotes what came.
        raise InvalidArgument(argument, expectation) from None
    matrix = matrix[None] if single else matrix
    if matrix.ndim != 2 or matrix.shape[1] != columns or not np.isfinite(matrix).all():
        raise InvalidArgument(argument, expectation)
    return matrix


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
