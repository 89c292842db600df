"""Beliefs: scales that are learnt from releases, stay where the plan fixes them, and never run off.

Simulated epochs have fixed seeds: no false alarms.
"""

import dataclasses

import numpy as np
import pytest
from tests.support.plain_sums import LookedAt

from discreet.agreement.plan import Plan, Schedule
from discreet.agreement.prior import Prior
from discreet.agreement.release import GENESIS, Release
from discreet.domain.box import Box
from discreet.features.kernels import Learned, SquaredExponential
from discreet.learning.belief import Belief
from discreet.learning.kernel_bank import bank_of
from discreet.learning.next_epoch import learn, open_epoch
from discreet.learning.search import public_points
from discreet.privacy.budget import JointDP, NonPrivate, Simulation
from discreet.storage import canonical
from discreet.trusted import mechanism
from discreet.trusted.randomness import Seeded
from discreet.trusted.sums import Sums

PRIVACY = {"none": NonPrivate(), "joint": JointDP(4.0, 1e-3)}
KINDS = ("box", "candidates")


def _plan(privacy="joint", decisions="box", **parts):
    given = {"kernel": SquaredExponential(0.2), "schedule": Schedule(200, 1.5, second=400)}
    return Plan(
        domain=Box({"x": (0, 1)}),
        privacy=PRIVACY[privacy],
        rewards=(-1.0, 1.0),
        decisions=decisions,
        **(given | parts),
    )


def _epochs(plan, answers, *, seed=0, count=6):
    """The beliefs after each of some epochs; `answers(points, rng)` are rewards."""
    rng = np.random.default_rng(seed)
    beliefs, previous, asked = [Belief.before(plan)], GENESIS, 0
    looked_at = LookedAt(plan)
    for number in range(count):
        epoch = open_epoch(plan, beliefs[-1], number=number, first=asked, previous=previous)
        if plan.decisions == "box":
            points = epoch.asked(epoch.length)
        else:
            points = rng.random((epoch.length, 1))
        rewards = np.clip(answers(points, rng), -1.0, 1.0)
        rows = looked_at.sums(epoch, points, rewards)
        if plan.mu is None:
            release = Release(epoch.digest, previous, epoch.length, rows, private=False)
        else:
            sums = Sums(epoch.encoding.size(plan.map))
            sums.add(rows)
            bits = Seeded(Simulation(seed), number)
            release = mechanism.release(plan, epoch, sums, asks=epoch.length, bits=bits)
        beliefs.append(learn(plan, beliefs[-1], epoch, release))
        previous, asked = release.digest, epoch.end
    return beliefs


def _wave(noise_std, level=0.1):
    def answers(points, rng):
        wave = level + 0.25 * np.sin(9 * points[:, 0])
        return wave + noise_std * rng.standard_normal(len(points))

    return answers


@pytest.mark.parametrize("decisions", KINDS)
@pytest.mark.parametrize("privacy", PRIVACY)
@pytest.mark.parametrize("noise_std", [0.05, 0.1, 0.3])
def test_the_variance_of_rewards_is_learnt(decisions, privacy, noise_std):
    """Within a fifth of the standard deviation, in every run of three."""
    plan = _plan(privacy, decisions)
    for seed in range(3):
        found = _epochs(plan, _wave(noise_std), seed=seed)[-1].scales.noise
        print(f"{noise_std}: {found**0.5:.4f}")
        assert found**0.5 == pytest.approx(noise_std, rel=0.2)


@pytest.mark.parametrize("privacy", PRIVACY)
@pytest.mark.parametrize("level", [-0.6, 0.0, 0.6])
def test_the_level_of_rewards_is_no_part_of_the_signal(privacy, level):
    """What epochs that fill the domain find is the shape's variance, around any level: 0.36 of
    level would be seen, a fiftieth is the noise that is left of it.
    """
    shapes = [
        _epochs(_plan(privacy), _wave(0.05, level=each), count=2)[-1].scales.shape
        for each in (0.1, level)
    ]
    assert shapes[1] == pytest.approx(shapes[0], abs=0.02)


def test_the_signal_is_what_the_shape_asks_of_the_chosen_prior():
    belief = _epochs(_plan(kernel=Learned()), _wave(0.1))[-1]
    shape = belief.signal * bank_of(belief.plan).shape_variance(belief.choice)
    assert shape == pytest.approx(belief.choice.amplitude * belief.scales.shape, rel=1e-9)
    before = Belief.before(belief.plan)
    points = public_points(belief.plan.domain)
    assert before.signal == belief.plan.signal_variance
    assert dataclasses.replace(
        before, scales=belief.scales, choice=belief.choice
    ).posterior.shape_variance(points) == pytest.approx(shape, rel=1e-6)


@pytest.mark.parametrize("decisions", KINDS)
@pytest.mark.parametrize("privacy", PRIVACY)
def test_scales_that_the_plan_fixes_stay(decisions, privacy):
    both = _plan(privacy, decisions, signal_std=0.4, noise_std=0.2)
    noise = _plan(privacy, decisions, noise_std=0.2)
    signal = _plan(privacy, decisions, signal_std=0.4)
    for plan in (both, noise, signal):
        for belief in _epochs(plan, _wave(0.05), count=4):
            if plan is not signal:
                assert belief.scales.noise == pytest.approx(0.04, rel=1e-12)
            if plan is not noise:
                assert belief.signal == pytest.approx(0.16, rel=1e-12)
        if plan is noise and decisions == "box":
            assert belief.signal != plan.signal_variance
        if plan is signal:
            assert belief.scales.noise < 0.5 * plan.noise_variance


@pytest.mark.parametrize("decisions", KINDS)
@pytest.mark.parametrize("privacy", PRIVACY)
def test_coin_flips_do_not_blow_up(decisions, privacy):
    """Rewards at the ends of the range: no noise could be larger."""

    def flips(points, rng):
        return rng.choice([-1.0, 1.0], len(points))

    grid = np.linspace(0, 1, 50)[:, None]
    beliefs = _epochs(_plan(privacy, decisions), flips, count=8)[1:]
    for belief in beliefs:
        assert 0.2 < belief.scales.noise <= 1.0
        assert (belief.scales.shape or 0.0) <= 1.0
        assert np.abs(belief.posterior.mean(grid)).max() < 1.0
    print(np.abs(beliefs[-1].posterior.mean(grid)).max())
    assert np.abs(beliefs[-1].posterior.mean(grid)).max() < 0.4


@pytest.mark.parametrize("decisions", KINDS)
def test_rare_successes_are_not_taken_for_little_noise(decisions):
    """One in ten: the mean is -0.8 and the variance 0.36."""

    def clicks(points, rng):
        return np.where(rng.random(len(points)) < 0.1, 1.0, -1.0)

    belief = _epochs(_plan("joint", decisions), clicks, count=8)[-1]
    grid = np.linspace(0, 1, 50)[:, None]
    assert belief.scales.noise > 0.1
    assert belief.posterior.mean(grid).mean() == pytest.approx(-0.8, abs=0.1)


@pytest.mark.parametrize("decisions", KINDS)
@pytest.mark.parametrize("privacy", PRIVACY)
@pytest.mark.parametrize("value", [0.0, 0.999, -1.0])
def test_rewards_that_are_all_the_same_leave_a_belief_that_can_go_on(decisions, privacy, value):
    beliefs = _epochs(
        _plan(privacy, decisions), lambda points, rng: np.full(len(points), value), count=8
    )
    for belief in beliefs:
        assert 0.0 < belief.scales.noise <= 1.0
        assert np.isfinite(belief.posterior.coefficients).all()
        assert np.linalg.eigvalsh(belief.posterior.precision).min() > 0.0
    grid = np.linspace(0, 1, 50)[:, None]
    assert np.abs(beliefs[-1].posterior.mean(grid) - value).max() < 0.2


@pytest.mark.parametrize("decisions", KINDS)
@pytest.mark.parametrize("privacy", PRIVACY)
def test_an_epoch_in_which_nobody_answers_leaves_a_belief_that_can_go_on(decisions, privacy):
    plan = _plan(privacy, decisions)
    belief = Belief.before(plan)
    for number, first in enumerate((0, 200, 600)):
        epoch = open_epoch(plan, belief, number=number, first=first, previous=GENESIS)
        nothing = np.zeros(epoch.encoding.size(plan.map), np.int64)
        release = Release(epoch.digest, GENESIS, epoch.length, nothing, private=False)
        belief = learn(plan, belief, epoch, release)
        assert 0.0 < belief.scales.noise <= 1.0
        assert np.isfinite(belief.posterior.coefficients).all()
        assert np.linalg.eigvalsh(belief.posterior.precision).min() > 0.0


@pytest.mark.parametrize("decisions", KINDS)
@pytest.mark.parametrize("privacy", PRIVACY)
def test_the_same_releases_make_the_same_belief_bit_for_bit(decisions, privacy):
    plan = _plan(privacy, decisions, kernel=Learned.around(SquaredExponential(0.2), 2.0))
    again = canonical.decode(Plan, canonical.encode(plan))
    for one, two in zip(*(_epochs(p, _wave(0.1)) for p in (plan, again)), strict=True):
        assert one.precision.tobytes() == two.precision.tobytes()
        assert one.information.tobytes() == two.information.tobytes()
        assert (one.scales, one.choice) == (two.scales, two.choice)
        assert one.posterior.coefficients.tobytes() == two.posterior.coefficients.tobytes()


def test_the_sums_of_exact_releases_know_no_prior():
    """With fixed scales the signal enters the posterior, and nothing that is kept."""
    plans = [_plan("none", signal_std=std, noise_std=0.2) for std in (0.2, 0.4)]
    epoch = open_epoch(plans[0], Belief.before(plans[0]), number=0, first=0, previous=GENESIS)
    points = epoch.asked(epoch.length)
    sums = epoch.encoding.encode(plans[0].map, points, np.sin(9 * points[:, 0])).sum(axis=0)
    release = Release(epoch.digest, GENESIS, epoch.length, sums, private=False)
    one, two = (learn(plan, Belief.before(plan), epoch, release) for plan in plans)
    assert np.allclose(one.precision, two.precision, rtol=0, atol=1e-9)
    assert np.allclose(one.information, two.information, rtol=0, atol=1e-9)
    assert not np.allclose(one.posterior.precision, two.posterior.precision)


@pytest.mark.parametrize("decisions", KINDS)
def test_the_kernel_is_chosen_by_the_releases(decisions):
    options = tuple(SquaredExponential(scale) for scale in (0.03, 0.1, 0.4))
    plan = _plan("none", decisions, kernel=Learned(options))

    def waves(frequency):
        def answers(points, rng):
            x = points[:, 0]
            return 0.3 * np.sin(frequency * x) + 0.03 * rng.standard_normal(len(x))

        return answers

    found = [_epochs(plan, waves(f), count=3)[-1].choice.options[0] for f in (3, 60)]
    assert found == [2, 0]
    assert Belief.before(plan).choice.options == (1,)


def test_an_earlier_study_leaves_only_the_variance_of_rewards_to_learn():
    plan = _plan("none", kernel=Learned())
    m = plan.map.dimension
    prior = Prior(
        canonical.digest(plan.domain),
        canonical.digest(plan.map),
        plan.rewards,
        7.0 * np.eye(m),
        np.ones(m),
        True,
    )
    warm = _plan("none", kernel=Learned(), features=plan.map, prior=prior)
    before = Belief.before(warm)
    assert np.array_equal(before.posterior.precision, prior.precision)
    assert np.array_equal(before.posterior.information, prior.information)
    after = _epochs(warm, _wave(0.1))[-1]
    assert after.choice == before.choice
    assert after.scales.shape is None
    assert after.scales.noise**0.5 == pytest.approx(0.1, rel=0.2)
    assert np.allclose(after.posterior.precision - after.precision, prior.precision, atol=1e-6)
