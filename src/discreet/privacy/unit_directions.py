"""Rounds along a few public directions: g(x) = B phi(x) / ||B phi(x)||, of length 1 whoever comes.

Noise is spent on the directions worth it, whatever they are: a round's length is 1 for any B.
"""

import numpy as np

from discreet.arrays import Floats, frozen
from discreet.errors import InvalidArgument

#: Entries of `directions` are no larger: only their ratios matter, and squares must not overflow.
LARGEST_DIRECTION = 1e100


def checked_directions(directions: Floats, features: int, most: int) -> Floats:
    """B: a matrix of one column a feature and at most so many rows.

    Privacy rests on it: longer rounds than `most_integers` would exceed the slack of `Plan.mu`,
    and numbers that overflow would not be scaled to length 1.
    """
    found = np.array(directions, dtype=np.float64, order="C")
    if found.ndim != 2 or not 1 <= len(found) <= most or found.shape[1] != features:
        raise InvalidArgument(
            "directions", f"a matrix of {features} columns and at most {most} rows"
        )
    if not (np.abs(found) <= LARGEST_DIRECTION).all():
        raise InvalidArgument("directions", "a matrix of finite numbers")
    return frozen(found)


def unit_along(directions: Floats, phi: Floats) -> Floats:
    """g for each row of features: of length 1, or 0 where the directions see nothing.

    >>> unit_along(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([[0.3, 0.4], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    # One product a row: in a product of matrices a row's last bits depend on the others.
    seen = np.matmul(phi[:, None, :], directions.T)[:, 0, :]
    lengths = np.linalg.norm(seen, axis=1, keepdims=True)
    return np.divide(seen, lengths, out=np.zeros_like(seen), where=lengths > 1e-150)
