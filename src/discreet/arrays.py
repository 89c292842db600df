"""Arrays by what they hold, arrays that nobody can write to, and points as rows."""

from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import InvalidArgument

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]
Array = TypeVar("Array", bound=NDArray[Any])


def frozen(array: Array) -> Array:
    """A copy that cannot be written to: what crosses a boundary stays as it was.

    >>> frozen(np.zeros(1))[0] = 1.0
    Traceback (most recent call last):
    ValueError: assignment destination is read-only
    """
    copy = array.copy()
    copy.setflags(write=False)
    return copy


def frozen_integers(argument: str, given: object) -> Integers:
    """A frozen vector of 64-bit integers, or an error.

    >>> frozen_integers("sums", np.array([1.5]))
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: sums: expected a vector of 64-bit integers
    """
    array = cast(Integers, given if isinstance(given, np.ndarray) else np.empty(0))
    if array.ndim != 1 or array.dtype != np.int64:
        raise InvalidArgument(argument, "a vector of 64-bit integers")
    return frozen(array)


def as_rows(argument: str, given: ArrayLike, columns: int | None = None) -> Floats:
    """A matrix with one point a row, of so many columns; what came is in no error.

    >>> as_rows("x", [[1, 2]])
    array([[1., 2.]])
    >>> as_rows("x", [[0.5, 1.0]], columns=3)
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: x: expected rows of 3 finite numbers
    """
    try:
        matrix = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):  # the original error quotes what came
        matrix = np.empty((0, 0))
    fits = matrix.ndim == 2 and matrix.shape[1] > 0
    if columns is None and not fits:
        raise InvalidArgument(argument, "a matrix, one point a row")
    if columns is not None:
        fits = fits and matrix.shape[1] == columns and bool(np.isfinite(matrix).all())
        if not fits:
            raise InvalidArgument(argument, f"rows of {columns} finite numbers")
    return matrix
