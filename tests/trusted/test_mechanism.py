"""The mechanism: sums plus the epoch's noise, drawn once, and honest about being private."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from discreet.agreement.plan import Plan, Schedule
from discreet.agreement.release import GENESIS
from discreet.domain.box import Box
from discreet.errors import Refused
from discreet.features.kernels import SquaredExponential
from discreet.learning.belief import Belief
from discreet.learning.next_epoch import open_epoch
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate, Simulation
from discreet.trusted import mechanism
from discreet.trusted.randomness import OperatingSystem, Seeded, source, sources
from discreet.trusted.sums import Sums

JOINT = JointDP(1.0, 1e-3)


def _plan(encoding, privacy=JOINT):
    announced = encoding == "announced"
    return Plan(
        domain=Box({"x": (0, 1)}),
        privacy=JointDP(1.0, 1e-3, protect="rewards") if announced else privacy,
        kernel=SquaredExponential(0.3),
        decisions="box" if encoding == "reward" else "candidates",
        public_decisions=announced,
        encoding=encoding,
        schedule=Schedule(50),
    )


def _epoch(plan):
    return open_epoch(plan, Belief.before(plan), number=0, first=0, previous=GENESIS)


def _sums(plan, epoch):
    rng = np.random.default_rng(0)
    sums = Sums(epoch.encoding.size(plan.map))
    points, rewards = rng.random((30, 1)), rng.uniform(-1, 1, 30)
    for row in epoch.encoding.encode(plan.map, points, rewards):
        sums.add(row)
    return sums


@pytest.mark.parametrize("encoding", ["gram", "fourier", "reward", "announced"])
def test_a_release_is_the_sums_plus_noise_of_the_epochs_width(encoding):
    """False-alarm rate below 1e-6: two tests of all coordinates together, at 1e-7 each."""
    plan = _plan(encoding)
    epoch = _epoch(plan)
    sums, stds = _sums(plan, epoch), epoch.encoding.stds(plan.map)
    found = [
        mechanism.release(plan, epoch, sums, asks=epoch.length, bits=OperatingSystem())
        for _ in range(400)
    ]
    noise = np.stack([release.integers for release in found]) - sums.total
    assert not noise[:, stds == 0].any()
    white = (noise[:, stds > 0] / stds[stds > 0] / np.sqrt(1 + 2.0**-12)).ravel()
    tail = stats.chi2.cdf(np.sum(white**2), white.size)
    assert 5e-8 < tail < 1 - 5e-8
    assert 2 * ndtr(-abs(white.mean()) * white.size**0.5) > 1e-7
    assert all((r.epoch, r.previous) == (epoch.digest, epoch.previous) for r in found)


@pytest.mark.parametrize("encoding", ["gram", "fourier", "reward"])
def test_each_coordinate_has_the_noise_it_was_given(encoding):
    """False-alarm rate below 1e-6: a two-sided test at 1e-10 for each of fewer than 200."""
    plan = _plan(encoding)
    epoch = _epoch(plan)
    stds = epoch.encoding.stds(plan.map)
    totals = np.zeros((2000, stds.size), dtype=np.int64)
    noise = mechanism.noisy(totals, stds, bits=OperatingSystem())
    scores = np.sum((noise / stds) ** 2, axis=0) / (1 + 2.0**-12)
    assert len(scores) < 200
    tails = stats.chi2.cdf(scores, len(totals))
    assert tails.min() > 1e-10
    assert tails.max() < 1 - 1e-10


@pytest.mark.parametrize("encoding", ["gram", "fourier", "reward"])
def test_without_privacy_a_release_is_exact_and_says_it_is_not_private(encoding):
    plan = _plan(encoding, NonPrivate())
    epoch = _epoch(plan)
    sums = _sums(plan, epoch)
    release = mechanism.release(plan, epoch, sums, asks=epoch.length, bits=OperatingSystem())
    assert release.integers.tobytes() == sums.total.tobytes()
    assert release.private is False


def test_private_means_joint_privacy_and_the_operating_systems_bits():
    joint, none = _plan("fourier"), _plan("fourier", NonPrivate())
    found = {
        (plan is joint, type(bits)): mechanism.release(
            plan, epoch := _epoch(plan), _sums(plan, epoch), asks=epoch.length, bits=bits
        ).private
        for plan in (joint, none)
        for bits in (OperatingSystem(), Seeded(Simulation(1), 0))
    }
    assert found == {
        (True, OperatingSystem): True,
        (True, Seeded): False,
        (False, OperatingSystem): False,
        (False, Seeded): False,
    }


def test_two_releases_of_the_same_sums_are_not_the_same():
    plan = _plan("reward")
    epoch = _epoch(plan)
    sums = _sums(plan, epoch)
    first, second = (
        mechanism.release(plan, epoch, sums, asks=epoch.length, bits=OperatingSystem()).integers
        for _ in range(2)
    )
    assert not np.any(first == second)


def test_a_release_leaves_the_sums_as_they_were():
    plan = _plan("gram")
    epoch = _epoch(plan)
    sums = _sums(plan, epoch)
    before = sums.total.tobytes()
    mechanism.release(plan, epoch, sums, asks=epoch.length, bits=OperatingSystem())
    assert sums.total.tobytes() == before


@pytest.mark.parametrize("local", [False, True])
def test_an_epoch_that_is_weaker_than_the_plan_is_not_released(local):
    """The last check before anything is shown, whoever let the epoch through before."""
    plan = _plan("gram", LocalDP(1.0, 1e-3) if local else JOINT)
    epoch = _epoch(plan)
    noise = replace(epoch.encoding.noise, cross=0.99 * epoch.encoding.noise.cross)
    weaker = replace(epoch, encoding=replace(epoch.encoding, noise=noise))
    bits = OperatingSystem()
    for each, refused in ((epoch, nullcontext()), (weaker, pytest.raises(Refused))):
        with refused:
            if local:
                mechanism.report(plan, each, np.array([0.5]), 0.5, bits=bits)
            else:
                mechanism.release(plan, each, _sums(plan, each), asks=each.length, bits=bits)


@pytest.mark.parametrize("encoding", ["gram", "fourier", "reward"])
def test_every_report_of_a_batch_has_noise_of_its_own(encoding):
    """False-alarm rate below 1e-9: noise of many integers that would have to agree in all."""
    plan = _plan(encoding, LocalDP(1.0, 1e-3))
    points, rewards = np.full((20, 1), 0.3), np.full(20, 0.5)
    found = mechanism.reports(plan, _epoch(plan), points, rewards, bits=sources(None, range(20)))
    assert len(np.unique(found, axis=0)) == 20


@pytest.mark.parametrize("encoding", ["gram", "fourier", "reward"])
def test_the_reports_of_a_batch_are_those_of_single_rounds(encoding):
    plan, simulation = _plan(encoding, LocalDP(1.0, 1e-3)), Simulation(3)
    epoch, rng = _epoch(plan), np.random.Generator(np.random.Philox(1))
    points, rewards, asks = rng.random((9, 1)), rng.random(9), range(4, 13)
    found = mechanism.reports(plan, epoch, points, rewards, bits=sources(simulation, asks))
    for i, ask in enumerate(asks):
        bits = source(simulation, ask)
        alone = mechanism.report(plan, epoch, points[i], float(rewards[i]), bits=bits)
        assert np.array_equal(found[i], alone)
