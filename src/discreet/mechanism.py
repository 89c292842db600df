"""(sums, epoch) -> release: the one place where sensitive sums become public.

**Theorem.** One release is mu-Gaussian private for one replaced round, mu the epoch's `bound`:
it is the Gaussian mechanism on the whitened sums, followed by rounding to the integer lattice
(v + rint(g) = rint(v + g) for integers v), which is post-processing. A round falls into exactly
one epoch, and later epochs depend on it only through the release, so all releases together are
mu-Gaussian private, too (docs/guarantee.md).
"""

import numpy as np
from numpy.typing import NDArray

from discreet.budget import NonPrivate
from discreet.epoch import Epoch
from discreet.errors import Refused
from discreet.plan import Plan
from discreet.randomness import Source, integer_noise
from discreet.release import Release
from discreet.sums import Sums

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def noisy(totals: Integers, stds: Floats, *, bits: Source) -> Integers:
    """Integer totals (one row a release) plus integer noise of these standard deviations."""
    noise = integer_noise(np.broadcast_to(stds, totals.shape).ravel(), bits=bits)
    return totals + noise.reshape(totals.shape)


def release(plan: Plan, epoch: Epoch, sums: Sums, *, asks: int, bits: Source) -> Release:
    """Sums plus noise of the epoch's standard deviations, drawn here and now.

    An epoch that costs more than the plan promises is refused: unknown means refuse.
    """
    if not isinstance(plan.privacy, NonPrivate):
        agreed = isinstance(epoch.encoding, plan.encode_with) and epoch.encoding.is_noisy
        if not agreed or epoch.encoding.bound(plan.map) > plan.privacy.mu_per_round:
            raise Refused("this epoch's noise is weaker than the plan promises: not released")
    return Release(
        epoch=epoch.digest,
        previous=epoch.previous,
        asks=asks,
        integers=noisy(sums.total, epoch.encoding.stds(plan.map), bits=bits),
        private=bits.private and plan.mu is not None,
    )
