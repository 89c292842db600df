"""What sums of local reports teach: the noise of n reports, and nothing else that differs."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from discreet.agreement.plan import Plan, Schedule
from discreet.agreement.release import GENESIS, Release
from discreet.domain.box import Box
from discreet.errors import InvalidArgument, Refused
from discreet.features.kernels import SquaredExponential
from discreet.learning.belief import Belief
from discreet.learning.next_epoch import learn, open_epoch
from discreet.learning.search import public_points
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate, Simulation
from discreet.privacy.fourier import FourierEncoding
from discreet.privacy.gram import GramEncoding
from discreet.privacy.reward import RewardEncoding
from discreet.simulation.forecast import foreseen
from discreet.storage import canonical
from discreet.trusted import mechanism
from discreet.trusted.randomness import Seeded

KINDS = ("gram", "fourier", "reward")
LOCAL, JOINT = LocalDP(2.0, 1e-3), JointDP(2.0, 1e-3)


def _plan(kind, privacy=LOCAL, **changes):
    given = {
        "domain": Box({"x": (0, 1)}),
        "privacy": privacy,
        "kernel": SquaredExponential(0.3),
        "rewards": (-1.0, 1.0),
        "decisions": "box" if kind == "reward" else "candidates",
        "encoding": kind,
        "kernel_error": 1e-2,
        "schedule": Schedule(400),
        "signal_std": 0.4,
        "noise_std": 0.3,
    }
    return Plan(**{**given, **changes})


def _open(plan):
    return open_epoch(plan, Belief.before(plan), number=0, first=0, previous=GENESIS)


def _points(plan, epoch, count, rng):
    return epoch.asked(count) if plan.decisions == "box" else rng.random((count, 1))


def _reports(plan, epoch, points, rewards, rng):
    """Reports of all rounds at once: rows of `mechanism.report`, which the next test checks."""
    rows = epoch.encoding.encode(plan.map, points, rewards)
    bits = Seeded(Simulation(int(rng.integers(2**62))), 0)
    return mechanism.noisy(rows, epoch.encoding.stds(plan.map), bits=bits)


def _release(epoch, reports, asks=None):
    return Release(
        epoch.digest,
        GENESIS,
        len(reports) if asks is None else asks,
        reports.sum(axis=0),
        private=False,
        reports=len(reports),
    )


# -- one report


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_is_one_encoded_round_plus_the_epochs_noise(kind):
    plan = _plan(kind, rewards=(0.0, 10.0), signal_std=2.0, noise_std=1.0)
    epoch, point = _open(plan), np.array([0.3])
    report = mechanism.report(plan, epoch, point, 99.0, bits=Seeded(Simulation(3), 0))
    rows = epoch.encoding.encode(plan.map, point[None, :], np.array([1.0]))
    stds = epoch.encoding.stds(plan.map)
    expected = mechanism.noisy(rows, stds, bits=Seeded(Simulation(3), 0))
    assert report.dtype == np.int64
    assert report.tolist() == expected[0].tolist()
    assert (stds > 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epoch_of", ["weaker", "another kind", "exact"])
def test_a_report_under_an_epoch_weaker_than_the_plan_is_refused(kind, epoch_of):
    plan = _plan(kind)
    epoch = _open(plan)
    other = {
        "weaker": lambda: _open(_plan(kind, LocalDP(2.1, 1e-3))),
        "another kind": lambda: _open(_plan("gram" if kind == "fourier" else "fourier")),
        "exact": lambda: _open(_plan(kind, NonPrivate())),
    }[epoch_of]()
    offered = dataclasses.replace(epoch, encoding=other.encoding)
    if kind == "reward" and epoch_of == "another kind":
        assert not isinstance(offered.encoding, RewardEncoding)
    with pytest.raises(Refused, match="weaker than the plan promises"):
        mechanism.report(plan, offered, np.array([0.3]), 0.5, bits=Seeded(Simulation(3), 0))


def test_noise_that_is_no_number_is_refused():
    plan = _plan("gram")
    epoch = _open(plan)
    noise = dataclasses.replace(epoch.encoding.noise, cross=math.nan)
    silent = dataclasses.replace(epoch, encoding=dataclasses.replace(epoch.encoding, noise=noise))
    with pytest.raises(Refused):
        mechanism.report(plan, silent, np.array([0.3]), 0.5, bits=Seeded(Simulation(3), 0))


def test_reports_are_for_local_plans_and_releases_of_exact_sums_for_others():
    local, joint = _plan("fourier"), _plan("fourier", JOINT)
    sums = type("Sums", (), {"total": np.zeros(1, dtype=np.int64)})()
    with pytest.raises(Refused, match="trusts nobody"):
        mechanism.release(local, _open(local), sums, asks=1, bits=Seeded(Simulation(3), 0))
    with pytest.raises(Refused, match="for LocalDP"):
        mechanism.report(joint, _open(joint), np.zeros(1), 0.0, bits=Seeded(Simulation(3), 0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learnt", [False, True], ids=["fixed", "residual"])
def test_no_two_rounds_move_a_report_by_more_than_mu(kind, learnt):
    """20,000 random pairs and steps from the best: close to the bound, and never beyond it."""
    plan, rng = _plan(kind), np.random.default_rng(1)
    epoch = _open(plan)
    if learnt:
        points = _points(plan, epoch, 400, rng)
        reports = _reports(plan, epoch, points, np.sin(6 * points[:, 0]) / 2, rng)
        belief = learn(plan, Belief.before(plan), epoch, _release(epoch, reports))
        epoch = open_epoch(plan, belief, number=1, first=400, previous=GENESIS)
    stds = epoch.encoding.stds(plan.map)

    def changes(pairs):
        first, second = (
            epoch.encoding.encode(plan.map, pairs[:, [i]], pairs[:, i + 2]) for i in (0, 1)
        )
        return np.linalg.norm((first - second) / stds, axis=1)

    pairs = np.concatenate([rng.random((20_000, 2)), rng.uniform(-1, 1, (20_000, 2))], axis=1)
    pairs[::2, 2:] = rng.choice([-1.0, 1.0], pairs[::2, 2:].shape)
    for scale in (0.0, 0.1, 0.03, 0.01, 0.003):
        best = pairs[np.argsort(changes(pairs))[-100:]]
        step = scale * rng.standard_normal((200, *best.shape))
        pairs = np.concatenate([best, (best + step).reshape(-1, 4)])
        pairs[:, :2], pairs[:, 2:] = np.clip(pairs[:, :2], 0, 1), np.clip(pairs[:, 2:], -1, 1)
    worst = changes(pairs).max()
    assert worst <= plan.mu * (1 + 1e-12)
    assert worst > 0.95 * plan.mu


# -- the sum of n


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 7, 400])
def test_n_reports_teach_what_one_release_with_sqrt_n_times_the_noise_would(kind, count):
    local, joint = _plan(kind), _plan(kind, JOINT)
    rng = np.random.default_rng(count)
    epoch = _open(local)
    points = _points(local, epoch, count, rng)
    reports = _reports(local, epoch, points, np.sin(6 * points[:, 0]) / 2, rng)
    found = learn(local, Belief.before(local), epoch, _release(epoch, reports))

    noise = epoch.encoding.noise
    wide = dataclasses.replace(noise, gram=count**0.5 * noise.gram, cross=count**0.5 * noise.cross)
    loud = dataclasses.replace(
        epoch, plan=joint.digest, encoding=dataclasses.replace(epoch.encoding, noise=wide)
    )
    total = reports.sum(axis=0)
    release = Release(loud.digest, GENESIS, count, total, private=False)
    expected = learn(joint, Belief.before(joint), loud, release)
    assert np.allclose(found.precision, expected.precision, rtol=1e-12, atol=0)
    assert np.allclose(found.information, expected.information, rtol=1e-12, atol=1e-12)
    assert found.scales == expected.scales


@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_of_a_sum_is_that_of_its_reports(kind):
    """False-alarm rate below 1e-6: one chi-squared test of all coordinates, two-sided."""
    plan, rng = _plan(kind), np.random.default_rng(0)
    epoch = _open(plan)
    nothing = np.zeros((50, epoch.encoding.size(plan.map)), dtype=np.int64)
    stds = plan.noise_of_sum(epoch.encoding, 50).stds(plan.map)
    bits = Seeded(Simulation(int(rng.integers(2**62))), 0)
    sums = [
        mechanism.noisy(nothing, epoch.encoding.stds(plan.map), bits=bits).sum(axis=0)
        for _ in range(60)
    ]
    scores = np.square(np.stack(sums) / stds).ravel() / (1 + 2.0**-8)
    assert 5e-7 < stats.chi2.cdf(scores.sum(), scores.size) < 1 - 5e-7


def test_under_joint_privacy_the_noise_of_a_sum_is_the_encodings():
    plan = _plan("fourier", JOINT)
    encoding = _open(plan).encoding
    assert plan.noise_of_sum(encoding, 50) is encoding


@pytest.mark.parametrize("kind", KINDS)
def test_posteriors_from_reports_are_calibrated(kind):
    """Squared standardised errors over 60 functions from the prior average to about one."""
    plan = _plan(kind, LocalDP(8.0, 0.1), signal_std=0.2, noise_std=0.1)
    epoch, grid, before = _open(plan), public_points(plan.domain), Belief.before(plan)
    scores = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        theta = 0.2 * rng.standard_normal(plan.map.dimension)  # within the range, mostly
        points = _points(plan, epoch, 400, rng)
        rewards = plan.map(points) @ theta + 0.1 * rng.standard_normal(400)
        reports = _reports(plan, epoch, points, np.clip(rewards, -1, 1), rng)
        after = learn(plan, before, epoch, _release(epoch, reports)).posterior
        errors = after.mean(grid) - plan.map(grid) @ theta
        scores.append(np.mean(np.square(errors) / after.variance(grid)))
    assert 0.5 < np.mean(scores) < 2.0


@pytest.mark.parametrize("kind", KINDS)
def test_asks_without_a_report_do_not_bias(kind):
    """The same reports of a constant, out of as many asks or out of twice as many."""
    plan, rng = _plan(kind, LocalDP(8.0, 0.1), schedule=Schedule(8000)), np.random.default_rng(2)
    epoch = _open(plan)
    points = _points(plan, epoch, 8000, rng)[::2]
    reports = _reports(plan, epoch, points, np.full(4000, 0.6), rng)
    means = [
        learn(plan, Belief.before(plan), epoch, _release(epoch, reports, asks)).posterior.mean(
            public_points(plan.domain)
        )
        for asks in (4000, 8000)
    ]
    assert np.allclose(means[0], means[1], atol=0.02)
    assert means[1].mean() == pytest.approx(0.6, abs=0.12)


def test_without_reports_nothing_is_learnt():
    plan = _plan("fourier")
    epoch, before = _open(plan), Belief.before(plan)
    none = np.zeros((0, epoch.encoding.size(plan.map)), dtype=np.int64)
    assert learn(plan, before, epoch, _release(epoch, none, asks=5)) is before


@pytest.mark.parametrize(("privacy", "reports"), [(LOCAL, None), (JOINT, 3), (NonPrivate(), 3)])
def test_reports_are_counted_in_the_local_model_alone(privacy, reports):
    plan = _plan("fourier", privacy)
    epoch = _open(plan)
    integers = np.zeros(epoch.encoding.size(plan.map), dtype=np.int64)
    release = Release(epoch.digest, GENESIS, 3, integers, private=False, reports=reports)
    with pytest.raises(InvalidArgument, match="release: expected a number of reports"):
        learn(plan, Belief.before(plan), epoch, release)


# -- planning


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_foresees_less_from_reports_than_from_one_release(kind):
    local, joint = _plan(kind), _plan(kind, JOINT)
    few, many = (foreseen(local, Belief.before(local), asks) for asks in (100, 10_000))
    assert 0.0 < few < many < foreseen(joint, Belief.before(joint), 10_000)


def test_encodings_of_a_local_epoch_state_the_noise_of_one_report():
    for kind, kinds in zip(KINDS, (GramEncoding, FourierEncoding, RewardEncoding), strict=True):
        short, long = (_open(_plan(kind, schedule=Schedule(n))).encoding for n in (10, 10_000))
        assert isinstance(short, kinds)
        for encoding in (short, long):
            assert encoding.bound(_plan(kind).map) == pytest.approx(_plan(kind).mu, rel=1e-6)


def test_a_local_release_survives_storage():
    release = Release("ab" * 32, GENESIS, 5, np.array([3]), private=False, reports=4)
    assert canonical.decode(Release, canonical.encode(release)).reports == 4


@pytest.mark.parametrize("privacy", [LOCAL, JOINT], ids=["local", "joint"])
def test_local_coin_flips_are_encoded_as_they_are(privacy):
    """A clipped difference of a coin flip from its mean is not zero on average."""
    plan = _plan("fourier", privacy)
    before = Belief.before(plan)
    m = plan.map.dimension
    flips = dataclasses.replace(
        before,
        window=before.window.plus(5.0 * np.eye(m), np.full(m, 0.3)),
        scales=dataclasses.replace(before.scales, at_ends=True, asked=400),
    )
    residual = open_epoch(plan, flips, number=1, first=400, previous=GENESIS).encoding.residual
    assert residual.width == 1.0
    assert residual.clips == (privacy is JOINT)
