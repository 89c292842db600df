"""Where a public policy sends people whose options nobody knows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Box, JointDP, Plan, SquaredExponential
from discreet.learning.inference import DOUBTS, likeliest
from discreet.learning.policy import OPTIONS, best_of
from discreet.learning.search import public_points
from discreet.learning.study import Study


def _plan(decisions="candidates"):
    return Plan(
        domain=Box({"x": (0, 1), "y": (0, 1)}),
        privacy=JointDP(1.0, 1e-3),
        kernel=SquaredExponential(0.3),
        decisions=decisions,
    )


@given(options=st.integers(1, 100), points=st.integers(1, 300))
def test_the_best_of_some_options_is_somewhere_and_rather_a_good_one(options, points):
    chances = best_of(options, points)
    assert chances.sum() == pytest.approx(1.0)
    assert (np.diff(chances) >= -1e-12).all()


@pytest.mark.parametrize("options", [1, 4, 25])
def test_the_best_of_draws_has_the_law_it_is_said_to_have(options):
    """Chi-square over 16 ranks, 15 degrees of freedom: above 60 once in 2e6."""
    rng = np.random.default_rng(options)
    best = rng.integers(0, 16, (20_000, options)).max(axis=1)
    expected = 20_000 * best_of(options, 16)
    counts = np.bincount(best, minlength=16)
    common = expected > 5
    rare = max(expected[~common].sum(), 1e-9), counts[~common].sum()
    squares = np.square(counts - expected)[common] / expected[common]
    assert squares.sum() + (rare[1] - rare[0]) ** 2 / max(rare[0], 1.0) < 60


def test_laws_follow_the_policy_and_one_option_ignores_it():
    plan = _plan()
    policy = Study(plan).next_epoch().policy
    laws = policy.laws(plan.map, public_points(plan.domain))
    assert laws.shape == (len(OPTIONS), len(public_points(plan.domain)))
    assert np.allclose(laws.sum(axis=1), 1.0)
    assert np.allclose(laws[0], 1.0 / len(public_points(plan.domain)))
    one = replace(policy, tilts=policy.tilts[:1].copy())
    laws, scores = (
        one.laws(plan.map, public_points(plan.domain)),
        one.scores(plan.map, public_points(plan.domain))[0],
    )
    means = laws @ scores
    assert (np.diff(means) > 0).all()  # the more options, the better the best
    assert laws[-1].argmax() == scores.argmax()


def test_a_menu_has_no_laws():
    plan = _plan("box")
    assert Study(plan).next_epoch().policy.laws(plan.map, public_points(plan.domain)) is None


def _sums(law, asks, noise, seed):
    rng = np.random.default_rng(seed)
    rows = np.cos(np.linspace(0, 1, 64)[:, None] * np.arange(1, 30) * 3.0)
    points = rng.choice(64, size=asks, p=law)
    values = rows[points].sum(axis=0) + noise * rng.standard_normal(rows.shape[1])
    return rows, values, np.full(rows.shape[1], noise**2)


@pytest.mark.parametrize("true", [0, 1, 2])
def test_the_law_people_follow_is_found_and_hardly_doubted(true):
    """Fixed seeds: no false alarms."""
    laws = np.stack([best_of(options, 64) for options in (1, 4, 25)])
    rows, values, variances = _sums(laws[true], 200, 5.0, seed=true)
    expected, spread = likeliest(laws, rows, values, variances, 200)
    assert np.allclose(expected, 200 * laws[true] @ rows)
    own = laws[true] @ rows**2 - (laws[true] @ rows) ** 2
    assert np.allclose(spread, 200 * own + 200**2 * DOUBTS[0] * rows.var(axis=0))


def test_people_who_follow_no_law_are_believed_themselves():
    laws = np.stack([best_of(options, 64) for options in (1, 4, 25)])
    alone = np.zeros(64)
    alone[20] = 1.0
    rows, values, variances = _sums(alone, 200, 5.0, seed=3)
    expected, spread = likeliest(laws, rows, values, variances, 200)
    share = spread / (spread + variances)
    assert np.allclose(expected + share * (values - expected), values, rtol=0, atol=5.0)


def test_where_noise_drowns_everything_the_law_itself_is_taken():
    laws = best_of(1, 64)[None, :]
    rows, values, variances = _sums(laws[0], 10, 1e4, seed=4)
    expected, spread = likeliest(laws, rows, values, variances, 10)
    share = spread / (spread + variances)
    assert np.allclose(expected, 10 * laws[0] @ rows)
    assert share.max() < 1e-4
