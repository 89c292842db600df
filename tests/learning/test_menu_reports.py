"""What reports of an index say at public actions: their moments, and what is learnt from them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.agreement.plan import Plan
from discreet.domain.box import Box
from discreet.features.kernels import Learned, SquaredExponential
from discreet.learning.clipped_lines import Lines, mean_square
from discreet.learning.inference import Clipped
from discreet.learning.menu_reports import Rows, report_variances, square_variances
from discreet.learning.posterior import Posterior
from discreet.learning.scales_by_evidence import NOISES
from discreet.privacy.budget import LocalDP
from discreet.privacy.clipping import Residual
from discreet.privacy.interval import IntervalEncoding
from discreet.simulation.play import Setting, simulate
from discreet.simulation.problems import CAMELBACK

#: Two-sided tails beyond this many standard deviations have probability 6e-7.
SURE = 5.0


def _plan(**parts):
    usual = {
        "domain": Box({"dose": (0.0, 1.0)}),
        "privacy": LocalDP(2.0),
        "kernel": SquaredExponential(0.3),
        "rewards": (-1.0, 1.0),
        "horizon": 5_000,
    }
    return Plan(**(usual | parts))


def _sent(encoding, level, count, rng):
    """The codewords that so many people at h / w = level send."""
    plan, cap = _plan(), encoding.cap
    near = rng.random(count) < float(cap.share)
    places = np.where(
        near, rng.integers(cap.nearest, size=count), rng.integers(cap.nearest, cap.size, size=count)
    )
    return encoding.indices(
        plan.map,
        np.full((count, 1), 0.5),
        np.full(count, level * encoding.residual.width),
        coins=rng.integers(1 << 62, size=count),
        places=places,
    )


@pytest.mark.parametrize("epsilon", [1, 8])
@pytest.mark.parametrize("level", [-1.0, 0.0, 0.6])
def test_sums_of_h_and_of_its_square_have_the_mean_and_the_variance_that_is_read(epsilon, level):
    m, count = _plan().map.dimension, 40_000
    encoding = IntervalEncoding.fit(Residual(np.zeros(m), 0.5), count, Fraction(epsilon))
    indices = _sent(encoding, level, count, np.random.default_rng(epsilon))
    _, cross, spread = encoding.decode(encoding.statistics(indices, np.arange(count)))
    h = 0.5 * level
    variance = report_variances(encoding, np.array([h * h]))[0]
    assert abs(cross.mean() - h) < SURE * np.sqrt(variance / count)
    # A variance of 40,000 bounded numbers is within 5 of its deviations: 6e-7 at most.
    checked = [(cross, variance)]
    if abs(level) in (0.0, 1.0):
        checked.append((spread, square_variances(encoding, np.array([h * h]))[0]))
    for values, expected in checked:
        squares = np.square(values - values.mean())
        assert abs(squares.mean() - expected) < SURE * squares.std() / np.sqrt(count)
    assert abs(spread.mean() - h * h) < SURE * spread.std() / np.sqrt(count) + 1e-7


def test_an_update_is_that_of_a_dense_linear_model():
    plan, rng = _plan(), np.random.default_rng(3)
    phi = plan.map(rng.random((7, 1)))
    encoding = IntervalEncoding.fit(
        Residual(0.1 * rng.standard_normal(plan.map.dimension), 0.4), 7, Fraction(2)
    )
    before = Posterior.prior(plan.map, 0.25)
    counts = np.arange(1.0, 8.0)
    rows = Rows(encoding, phi, counts, rng.standard_normal(7), 1.0)
    slopes, variances = rows.observed(before, 0.04, clips=True)
    design = slopes[:, None] * phi
    dense = before.observe(
        design, rows.cross + design @ encoding.residual.prediction, np.diag(variances)
    )
    precision, information = rows.told(before, 0.04, clips=True)
    np.testing.assert_allclose(before.precision + precision, dense.precision, rtol=1e-9)
    np.testing.assert_allclose(before.information + information, dense.information, rtol=1e-9)


def test_lines_at_many_points_are_those_at_each():
    unknown = np.array([0.0, 0.1, 2.0])
    lines = Lines.at(0.5, unknown, 0.2)
    for slope, variance, each in zip(lines.slope, lines.variance, unknown, strict=True):
        one = Clipped.at(0.5, each, 0.2)
        assert slope == pytest.approx(one.slope)
        assert variance == pytest.approx(one.variance)
    assert mean_square(9.0, np.array([0.3]))[0] == pytest.approx(0.3)


@pytest.mark.parametrize("noise", [0.15, 0.4])
def test_evidence_finds_how_much_rewards_vary(noise):
    plan, rng = _plan(privacy=LocalDP(4.0)), np.random.default_rng(1)
    points = rng.random((32, 1))
    phi, count = plan.map(points), 200
    encoding = IntervalEncoding.fit(Residual(np.zeros(plan.map.dimension), 0.4), 32, Fraction(4))
    rewards = np.repeat(0.2 * np.sin(5 * points[:, 0]), count)
    rewards = rewards + noise * rng.standard_normal(len(rewards))
    cap, size = encoding.cap, len(rewards)
    near = rng.random(size) < float(cap.share)
    places = np.where(
        near, rng.integers(cap.nearest, size=size), rng.integers(cap.nearest, cap.size, size=size)
    )
    indices = encoding.indices(
        plan.map,
        np.repeat(points, count, axis=0),
        rewards,
        coins=rng.integers(1 << 62, size=size),
        places=places,
    )
    integers = encoding.statistics(indices, np.repeat(np.arange(32), count))
    counts, cross, spread = encoding.decode(integers)
    rows = Rows(encoding, phi, counts, cross, float(spread.sum()))
    before = Posterior.prior(plan.map, 0.1)
    likely = [rows.evidence(before, std**2, clips=True) for std in NOISES]
    assert NOISES[int(np.argmax(likely))] == pytest.approx(noise, rel=0.45)


def _camelback(epsilon, rounds, seed, **changes):
    setting = Setting(model="local", rounds=rounds, privacy=LocalDP(epsilon), changes=changes)
    return simulate(lambda rng: CAMELBACK, setting, seed=seed)


def test_camelback_is_learnt_from_indices_alone():
    regret = _camelback(4.0, 2_000, seed=1).regrets.sum()
    assert regret < 0.25 * 864  # uniform play costs 864; seeded, so no false alarm


def test_lengthscales_are_still_chosen_by_evidence():
    kernel = Learned((SquaredExponential(0.05), SquaredExponential(0.3)))
    run = _camelback(8.0, 2_000, seed=2, kernel=kernel)
    belief = run.study.belief
    assert belief.choice.options == (1,)


def test_intervals_cover_the_truth():
    inside = total = 0
    for seed in range(4):
        run = _camelback(2.0, 3_000, seed=seed)
        plan, belief = run.study.plan, run.study.belief
        points = np.random.default_rng(seed).random((200, 2))
        truth = (CAMELBACK.mean(plan.domain.numbers(points)) - plan.centre) / plan.half_width
        std = np.sqrt(belief.posterior.variance(points))
        miss = np.abs(belief.posterior.mean(points) - truth)
        inside += int(np.sum(miss <= belief.margin(std)))
        total += len(points)
    assert inside / total > 0.8  # seeded; nominal 95%, of a kernel that is only about right


def test_a_release_without_reports_teaches_nothing():
    plan = _plan()
    run = _camelback(4.0, 200, seed=1)
    study = run.study
    silent = replace(study.releases[-1], reports=0)
    belief = study.belief
    assert belief.after(study.epochs[-1], silent) is belief
    assert plan.sends_indices
