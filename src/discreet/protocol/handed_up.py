"""What is left of an epoch's sums where a shuffler would have handed up no more.

In one process nobody mixes: sums have no order, and whoever runs the process sees all of it. What
comes out must be what the promise is about all the same, so groups that are too small stay out.
"""

import numpy as np

from discreet.agreement.plan import Plan
from discreet.arrays import Integers
from discreet.learning.epoch import Epoch
from discreet.privacy.interval import IntervalEncoding


def handed_up(plan: Plan, epoch: Epoch, integers: Integers, reports: int) -> tuple[Integers, int]:
    """The sums, and how many reports they are of: all of them, unless reports are to be mixed."""
    if not plan.is_shuffled:
        return integers, reports
    promise, encoding = plan.shuffled, epoch.encoding
    if reports < promise.minimum:
        return np.zeros_like(integers), 0
    if not isinstance(encoding, IntervalEncoding):
        dropped = promise.drops(reports, epoch.length)
        return (np.zeros_like(integers), 0) if dropped else (integers, reports)
    rows = integers.reshape(encoding.rows, -1).copy()
    answers = rows[:, 0].tolist()  # the first of a row's sums is their number
    rows[list(map(promise.drops, answers, epoch.groups))] = 0
    return rows.ravel(), int(rows[:, 0].sum())
