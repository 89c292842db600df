"""What a study has made public, as tables: its epochs, and what it believes of actions.

Names that a domain cannot have hold what is ours: `mean reward` is no coordinate.
"""

import math

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats
from discreet.frames.table import Cell, Table
from discreet.learning.epoch import Epoch
from discreet.learning.next_epoch import Believed, margins, served_by
from discreet.privacy.encodings import Indexed


def epochs_table(plan: Plan, epochs: tuple[Epoch, ...], releases: tuple[Release, ...]) -> Table:
    """A row for each epoch: its asks, its release, how rewards are clipped and the noise on sums.

    Widths and noise are in units of rewards.
    """
    pairs = zip(epochs, (*releases, None), strict=False)
    rows = [_epoch(plan, epoch, release) for epoch, release in pairs]
    return Table({name: [row[name] for row in rows] for name in (rows[0] if rows else ())})


def posterior_table(plan: Plan, belief: Believed, points: Floats) -> Table:
    """Scaled points in natural units, the mean reward there and its 95% interval."""
    means = served_by(belief).mean(points) * plan.half_width + plan.centre
    around = margins(belief, points) * plan.half_width
    return Table(
        {
            **plan.domain.decode_all(points),
            "mean reward": means.tolist(),
            "interval low": (means - around).tolist(),
            "interval high": (means + around).tolist(),
        }
    )


def _epoch(plan: Plan, epoch: Epoch, release: Release | None) -> dict[str, Cell]:
    reports = None if release is None else release.reports
    rounds = epoch.length if reports is None else reports
    return {
        "number": epoch.number,
        "first": epoch.first,
        "length": epoch.length,
        "released": release is not None,
        "asks": None if release is None else release.asks,
        "reports": reports,
        "fills_the_domain": plan.is_design(epoch.first),
        "width": epoch.encoding.residual.width * plan.half_width,
        "noise_std": _noise(plan, epoch, rounds) * plan.half_width,
        "release": None if release is None else release.digest,
    }


def _noise(plan: Plan, epoch: Epoch, rounds: int) -> float:
    """The noise of what a release tells, in half-widths: of indices, on the sum of h."""
    if isinstance(epoch.encoding, Indexed):
        return epoch.encoding.deviation * math.sqrt(rounds)
    return plan.noise_of_sum(epoch.additive, rounds).noise.cross
