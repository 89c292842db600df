"""Where a public policy sends people whose options nobody knows.

The gram matrix of an epoch is released with noise, but the policy that led to it is public. Who
takes the best of n options, drawn from the P points of the public pool, takes the point of rank
r = 0 .. P - 1 by the policy's score with probability

    ((r + 1) / P)^n - (r / P)^n.

How many options people have is not known; which n fits a release is told by the release itself
(`inference.likeliest`), and so is how far the law may be trusted. All of it is post-processing.
"""

import numpy as np

from discreet.agreement.plan import Plan
from discreet.arrays import Floats
from discreet.learning.kernel_bank import pool
from discreet.learning.policy import Policy

#: Numbers of options that are tried; with one, the score does not matter.
OPTIONS = (1, 2, 4, 8, 16, 32, 64)


def laws_of(plan: Plan, policy: Policy) -> Floats | None:
    """Weights over the public pool, one law a row; None where the policy has no scores."""
    if not len(policy.tilts):
        return None
    ranks = policy.scores(plan.map, pool(plan)).argsort(axis=1).argsort(axis=1)
    return np.stack([best_of(options, ranks.shape[1])[ranks].mean(axis=0) for options in OPTIONS])


def best_of(options: int, points: int) -> Floats:
    """The chance of each rank, worst first, to be the best of so many options.

    >>> best_of(1, 4).tolist(), best_of(2, 4).tolist()
    ([0.25, 0.25, 0.25, 0.25], [0.0625, 0.1875, 0.3125, 0.4375])
    """
    return np.diff((np.arange(points + 1) / points) ** options)
