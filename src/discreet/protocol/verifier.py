"""What is held against a publisher or server: the agreed plan, and the chain of what it has shown.

Whoever draws noise under an epoch, a person's client or the custodian of many, checks it here
first and takes nothing else on trust.
"""

from dataclasses import dataclass

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.release import GENESIS, Release
from discreet.arrays import Floats, Mask
from discreet.errors import Refused
from discreet.learning.epoch import Epoch
from discreet.privacy.book import book_seed
from discreet.privacy.clipping import SMALLEST_STD, spare_bits
from discreet.privacy.codebook import CodebookEncoding
from discreet.privacy.encodings import Indexed

#: Larger coefficients predict nothing within the reward range; sums of the largest floats would be
#: infinite or no numbers, which no clipping bounds.
LARGEST_PREDICTION = 1e9


def check_epoch(plan: Plan, epoch: Epoch) -> None:
    """Refuse an epoch under which a round would be worth less privacy than the plan promises.

    Nothing about an epoch is taken on trust: neither its noise, nor that its numbers are ones
    for which the encoding's bound was proven and the integers cannot wrap around.
    """
    if epoch.plan != plan.digest:
        raise Refused("this epoch belongs to another plan than the one that was agreed")
    try:
        with np.errstate(all="ignore"):
            _check_encoding(plan, epoch)
            _check_policy(plan, epoch)
    except ArithmeticError:
        raise Refused("this epoch's numbers are too large or too small") from None


def _check_encoding(plan: Plan, epoch: Epoch) -> None:
    encoding, m = epoch.encoding, plan.map.dimension
    prediction = encoding.residual.prediction
    if prediction.shape != (m,) or not (np.abs(prediction) <= LARGEST_PREDICTION).all():
        raise Refused("this epoch's prediction is none of the plan's features")
    if isinstance(encoding, Indexed):
        _check_indexed(plan, epoch, encoding)
        return
    if (
        plan.sends_indices
        or type(encoding) is not plan.encode_with
        or (plan.mu is not None and not encoding.is_noisy)
    ):
        raise Refused("this epoch's answers are not randomised as the plan promises")
    rounds = plan.most_rounds(epoch.first, epoch.length)
    if not 1 <= encoding.bits <= 62 or encoding.largest > 1 << spare_bits(rounds):
        raise Refused("this epoch's integers are too wide: they could wrap around")
    if not encoding.residual.width <= encoding.widest:
        raise Refused("this epoch clips rewards to a wider range than the plan's")
    if plan.mu is None:
        return  # nothing is promised of its noise
    stds = encoding.noisy_stds(plan.map)
    if not ((stds >= SMALLEST_STD) & (stds <= encoding.largest_std)).all():
        raise Refused("this epoch's noise is not of a size that can be drawn faithfully")
    if not plan.allows(encoding, epoch.smallest_group):
        raise Refused("this epoch's noise is weaker than the plan promises")


def _check_indexed(plan: Plan, epoch: Epoch, encoding: Indexed) -> None:
    """Refuse reports of another N, K or p than the plan's; the rest would cost accuracy alone."""
    if not plan.allows(encoding, epoch.smallest_group):
        raise Refused("this epoch's answers are not randomised as the plan promises")
    if not 0.0 < encoding.residual.width <= encoding.widest:
        raise Refused("this epoch clips rewards to a wider range than the plan's")
    if isinstance(encoding, CodebookEncoding):
        if encoding.seed != book_seed(epoch.plan, epoch.previous):
            raise Refused("this epoch's codebook is not the one that plan and chain lead to")
    elif encoding.rows != len(epoch.policy.menu):
        raise Refused("this epoch's reports are not about the rows of its menu")


def _check_policy(plan: Plan, epoch: Epoch) -> None:
    m, policy = plan.map.dimension, epoch.policy
    if plan.decisions == "box":
        shape = policy.menu.shape
        fits = len(shape) == 2 and shape[0] > 0 and shape[1] == plan.domain.dimension
        fits = fits and bool(are_inside(plan, policy.menu).all())
        if policy.counts is not None:
            fits = fits and policy.counts.shape == shape[:1] and bool((policy.counts >= 0).all())
            fits = fits and sum(policy.counts.tolist()) == epoch.length
    elif plan.designs_for_people and policy.tilts.shape[:1] == (0,):
        # A design: which of its actions are admitted depends on who comes; it refuses nobody.
        shape = policy.menu.shape
        fits = len(shape) == 2 and shape[0] > 0 and shape[1] == plan.domain.dimension
        fits = fits and bool(np.isfinite(policy.menu).all())
    else:
        shape = policy.tilts.shape
        fits = len(shape) == 2 and shape[0] > 0 and shape[1] == m
        fits = fits and policy.packed_whitening.shape == (m * (m + 1) // 2,)
    if not (fits and _explores_as_planned(plan, epoch)):
        raise Refused("this epoch's policy does not fit the plan")


def _explores_as_planned(plan: Plan, epoch: Epoch) -> bool:
    """Whether as many scores are bold, and as much, as the plan says: after designs, which are not.

    What is believed of f is not checked: it costs regret and no privacy.
    """
    policy, exploring = epoch.policy, plan.exploring
    scores = len(policy.tilts)
    if exploring.bold is None or not scores:
        return policy.bold_scores is None
    if plan.is_design(epoch.first):
        return True
    many = scores == min(exploring.draws, epoch.length)
    bold = (policy.optimism, policy.bold_scores) == (exploring.bold, exploring.bold_of(scores))
    return many and bold


def are_inside(plan: Plan, points: Floats) -> Mask:
    """Which are actions of the domain: features are bounded, so private, only there."""
    moved = np.abs(plan.domain.snap(points) - points)
    return (moved <= 1e-12).all(axis=1) & plan.domain.admits(points)


@dataclass(frozen=True)
class _Seen:
    """How far the chain was seen. One object, so that no interrupt leaves half of it."""

    previous: str = GENESIS
    asked: int = 0
    known: int = 0
    epoch: Epoch | None = None


class Verifier:
    """The plan, and the chain of what was seen so far.

    Releases name the epoch they are of and the release before, and an epoch the release before
    it, so releases alone lead from the last epoch seen to the one on offer.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._seen = _Seen()

    @property
    def known(self) -> int:
        """The number of releases seen."""
        return self._seen.known

    def take(self, epoch: Epoch, releases: tuple[Release, ...]) -> None:
        """Take this epoch for the open one, if these releases lead there from the last one."""
        self._seen = self._after(epoch, releases)

    def check(self, epoch: Epoch, releases: tuple[Release, ...]) -> None:
        """Refuse an epoch that plan and chain do not allow; nothing is taken."""
        self._after(epoch, releases)

    def _after(self, epoch: Epoch, releases: tuple[Release, ...]) -> _Seen:
        seen = self._seen
        if seen.epoch is not None and epoch.digest == seen.epoch.digest:
            return seen
        previous, asked = seen.previous, seen.asked
        named = None if seen.epoch is None else seen.epoch.digest
        for release in releases:
            complete = release.asks == self._plan.epoch_length(asked)
            complete = complete and (release.reports is not None) == self._plan.is_local
            expected = release.epoch if named is None else named
            if (release.previous, release.epoch) != (previous, expected) or not complete:
                raise Refused("the releases do not follow from those seen before")
            previous, asked, named = release.digest, asked + release.asks, None
        if seen.epoch is not None and not releases:
            raise Refused("another epoch was shown in this one's place before")
        known = seen.known + len(releases)
        if (epoch.number, epoch.first, epoch.previous) != (known, asked, previous):
            raise Refused("this epoch does not follow from the releases seen so far")
        if epoch.length != self._plan.epoch_length(asked):
            raise Refused("this epoch is not as long as the plan's schedule says")
        check_epoch(self._plan, epoch)
        return _Seen(previous, asked, known, epoch)
