"""Singular values and vectors, also where LAPACK's faster way gives up.

On one ordinary matrix in a hundred thousand or so, divide and conquer (gesdd) does not converge. A
study must not end by that: its release is drawn, and would be drawn again. The older way (gesvd)
then does.
"""

from numpy.linalg import LinAlgError
from scipy.linalg import svd

from discreet.arrays import Floats


def thin_svd(matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """U, s and V of U diag(s) V, the largest first; as many as the shorter side.

    >>> import numpy as np
    >>> thin_svd(np.array([[3.0, 0.0, 0.0], [0.0, 0.0, 2.0]]))[1].tolist()
    [3.0, 2.0]
    """
    try:
        return svd(matrix, full_matrices=False)
    except LinAlgError:
        return svd(matrix, full_matrices=False, lapack_driver="gesvd")
