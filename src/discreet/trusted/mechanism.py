"""(sums, epoch) -> release, (round, epoch) -> report: where what is sensitive becomes public.

**Theorem.** One release is mu-Gaussian private for one replaced round, mu the epoch's `bound`:
it is the Gaussian mechanism on the whitened sums, followed by rounding to the integer lattice
(v + rint(g) = rint(v + g) for integers v), which is post-processing. A round falls into exactly
one epoch, and later epochs depend on it only through the release, so all releases together are
mu-Gaussian private, too (docs/guarantee.md). A round that later releases look at again counts less
in each, and squares add up to no more (`looks`). Where noise is correlated, nodes take the place
of sums, and all releases are one such mechanism (`streams`).

**Theorem, local.** One report is mu-Gaussian private, mu the epoch's `bound`: it is the same
mechanism on a single encoded round. Any two rounds under one epoch differ by at most `bound` in
whitened integers, whatever decision sets, contexts, rewards and so actions they come from
(each encoding's proof: the case of a replaced round. There is no silence to compare with, and no
second release to move: that a person answered is public, and a report is one sum on its own). The
epoch depends on the person through earlier reports alone: adaptive composition, sqrt(k) mu for k
reports.
Sums of reports, releases and all later epochs are post-processing.

**Theorem, indices.** One report that is an index is epsilon-private with delta = 0, epsilon the
plan's `report_epsilon`: it is at a place of a ranking of all N codewords, the place has the law of
the plan's own `cap`, and what the round says decides the ranking alone (`privacy/cap.py`).
k reports, each under an epoch that may depend on the ones before, cost k epsilon.
"""

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats, Integers
from discreet.errors import Refused
from discreet.learning.epoch import Epoch
from discreet.privacy.encodings import Indexed
from discreet.trusted import randomness
from discreet.trusted.randomness import Source, integer_noise
from discreet.trusted.sums import PastSums, Sums


def noisy(totals: Integers, stds: Floats, *, bits: Source) -> Integers:
    """Integer totals (one row a release) plus integer noise of these standard deviations."""
    noise = integer_noise(np.broadcast_to(stds, totals.shape).ravel(), bits=bits)
    return totals + noise.reshape(totals.shape)


def total(plan: Plan, sums: Sums, past: PastSums | None) -> Integers:
    """What is released but for its noise: an epoch's sums; where noise is correlated, a node."""
    if plan.stream is None:
        return sums.total
    if past is None:
        raise Refused("a node needs the sums of every epoch before it")
    return plan.stream.node(past.followed_by(sums))


def release(
    plan: Plan,
    epoch: Epoch,
    sums: Sums,
    *,
    asks: int,
    bits: Source,
    past: PastSums | None = None,
) -> Release:
    """Sums plus noise of the epoch's standard deviations, drawn here and now.

    Where noise is correlated they are a node, made of `past` sums too. An epoch that costs more
    than the plan promises is refused: unknown means refuse.
    """
    if plan.is_local:
        raise Refused("this plan trusts nobody with exact sums: each person sends a report")
    _check_agreed(plan, epoch)
    if past is not None and past.epochs != epoch.number:
        raise Refused("a node needs the sums of every epoch before it")
    totals = total(plan, sums, past)
    return Release(
        epoch=epoch.digest,
        previous=epoch.previous,
        asks=asks,
        integers=noisy(totals, epoch.additive.stds(plan.map), bits=bits),
        private=bits.private and plan.mu is not None,
    )


def report(plan: Plan, epoch: Epoch, point: Floats, reward: float, *, bits: Source) -> Integers:
    """One encoded round plus noise of the epoch's standard deviations: what leaves a device."""
    return reports(plan, epoch, point[None, :], np.array([reward]), bits=bits)[0]


def reports(plan: Plan, epoch: Epoch, points: Floats, rewards: Floats, *, bits: Source) -> Integers:
    """A report for each round (row), each with noise of its own.

    `points` are scaled actions and `rewards` are in the plan's units; they are clipped. An epoch
    that costs more than the plan promises is refused: a server may try.
    """
    if not plan.is_local:
        raise Refused("reports are for LocalDP: under joint privacy a custodian sums rounds")
    _check_agreed(plan, epoch)
    centred = np.array([plan.centred(reward) for reward in rewards.tolist()])
    own = epoch.additive.encode(plan.map, points, centred)
    return noisy(own, epoch.additive.stds(plan.map), bits=bits)


def indices(plan: Plan, epoch: Epoch, points: Floats, rewards: Floats, *, bits: Source) -> Integers:
    """The index of each round (row), drawn on its own: what leaves a device.

    N, K and p are worked out here, from the plan, and an epoch of others is refused.
    """
    if not plan.is_local:
        raise Refused("reports are for LocalDP: under joint privacy a custodian sums rounds")
    _check_agreed(plan, epoch)
    return drawn(plan, epoch.indexed, points, rewards, bits=bits)


def drawn(
    plan: Plan, encoding: Indexed, points: Floats, rewards: Floats, *, bits: Source
) -> Integers:
    """The index of each round by the encoding's own cap, whatever a plan promises of it.

    Two uniform words decide the place in the round's ranking, and another what is rounded.
    """
    places = randomness.places(encoding.cap, len(points), bits=bits)
    coins = randomness.coins(len(points), bits=bits)
    centred = np.array([plan.centred(reward) for reward in rewards.tolist()])
    return encoding.indices(plan.map, points, centred, coins=coins, places=places)


def _check_agreed(plan: Plan, epoch: Epoch) -> None:
    if not plan.allows(epoch.encoding, epoch.smallest_group):
        raise Refused("this epoch's noise is weaker than the plan promises: not released")
