"""Directions: the stated gain by dense conditioning, its gradient, and never worse than phi."""

import numpy as np
import pytest

from discreet.features.choose import choose
from discreet.features.kernels import Learned, SquaredExponential
from discreet.learning.directions import Prospect, _Gain, best_directions
from discreet.learning.inference import Clipped
from discreet.learning.posterior import Posterior
from discreet.learning.window import Block, Window
from discreet.privacy.clipping import Noise, Residual
from discreet.privacy.reward import MOST_DIRECTIONS, RewardEncoding

FEATURES = {
    "line": choose(SquaredExponential(0.15), widths=(1.0,), error=1e-2),
    "square": choose(SquaredExponential(0.5), widths=(1.0, 1.0), error=1e-2),
    "additive": choose(Learned(additive=True), widths=(1.0, 1.0), error=1e-1),
}


def _case(name, seed, actions=40):
    """A posterior that knows some of f, a menu, and how often each action is asked."""
    rng = np.random.default_rng(seed)
    features = FEATURES[name]
    phi = features(rng.random((rng.integers(1, 30), features.inputs)))
    posterior = Posterior.prior(features, 0.25).absorb(
        phi.T @ phi, phi.T @ rng.standard_normal(len(phi)), noise_variance=0.1
    )
    menu = rng.random((actions, features.inputs))
    return posterior, menu, rng.integers(1, 40, actions).astype(float)


def _prospect(posterior, menu, counts, variance):
    """One block of asks, rewards having this variance and nothing clipped."""
    nothing = Window.empty(np.zeros(posterior.features.dimension))
    window = nothing.entered(Block(menu, counts), variance)
    line = Clipped(1.0, variance)
    return Prospect.of(posterior, window, posterior.precision, [line], variance)


def _best(posterior, menu, counts, *, variance, noise, most=MOST_DIRECTIONS):
    ahead = _prospect(posterior, menu, counts, variance)
    return best_directions(posterior, ahead, noise=noise, most=most)


def _along(posterior, menu, directions):
    """g of each action, as the encoding makes it."""
    features = posterior.features
    residual = Residual(np.zeros(features.dimension), 1.0)
    encoding = RewardEncoding(residual, Noise(0.0, 1.0), bits=20, directions=directions)
    return encoding.along(features(menu))


def _left(posterior, menu, counts, g, *, variance, noise):
    """The mean variance of f over the asks after v = sum of g_j s_j + noise, conditioned densely.

    s_j is the sum of n_j rewards f(x_j) + N(0, variance).
    """
    phi = posterior.features(menu)
    covariance = phi @ np.linalg.inv(posterior.precision) @ phi.T
    design = g.T * counts
    seen = design @ covariance @ design.T + variance * (g.T * counts) @ g
    seen += noise**2 * np.eye(len(seen))
    gain = covariance @ design.T @ np.linalg.solve(seen, design @ covariance)
    return float(counts @ np.diag(covariance - gain) / counts.sum())


def _compared(posterior, menu, counts, *, variance, noise):
    """What is left unknown under the directions that were found, and under g = phi."""
    directions = _best(posterior, menu, counts, variance=variance, noise=noise)
    every = np.eye(posterior.features.dimension)
    return [
        _left(
            posterior,
            menu,
            counts,
            _along(posterior, menu, each),
            variance=variance,
            noise=noise,
        )
        for each in (directions, every)
    ]


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("noise", [0.1, 3.0, 100.0])
def test_every_action_is_carried_by_a_unit_vector(name, noise):
    posterior, menu, counts = _case(name, seed=0)
    directions = _best(posterior, menu, counts, variance=0.1, noise=noise)
    assert directions.shape[0] <= min(MOST_DIRECTIONS, posterior.features.dimension)
    assert directions.shape[1] == posterior.features.dimension
    lengths = np.linalg.norm(_along(posterior, menu, directions), axis=1)
    assert np.allclose(lengths, 1.0, rtol=0, atol=1e-12)


def test_no_more_directions_are_found_than_a_plan_allows():
    posterior, menu, counts = _case("square", seed=0)
    shapes = [
        _best(posterior, menu, counts, variance=0.1, noise=0.1, most=most).shape[0]
        for most in (1, 3, 5)
    ]
    assert shapes == [1, 3, 5]


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("seed", range(3))
def test_the_gain_is_the_variance_that_conditioning_takes_away(name, seed):
    posterior, menu, counts = _case(name, seed)
    ahead = _prospect(posterior, menu, counts, 0.2)
    rows = np.random.default_rng(seed).standard_normal((len(menu), 5))
    gain, _ = _Gain(np.eye(len(menu)), ahead.useful, ahead.total, 2.0)(rows)
    g = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    nothing = np.zeros((len(menu), 1))
    before, after = (
        _left(posterior, menu, counts, each, variance=0.2, noise=2.0) for each in (nothing, g)
    )
    assert gain / counts.sum() == pytest.approx(before - after, rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_of_the_gain_is_that_of_finite_differences(seed):
    rng = np.random.default_rng(seed)
    roots = rng.standard_normal((2, 12, 12))
    basis = np.linalg.qr(rng.standard_normal((12, 7)))[0]
    gain = _Gain(basis, roots[0] @ roots[0].T, roots[1] @ roots[1].T + np.eye(12), 1.5)
    mixing = rng.standard_normal((7, 4))
    _, slope = gain(mixing)
    for index in np.ndindex(mixing.shape):
        step = np.zeros_like(mixing)
        step[index] = 1e-6
        numeric = (gain(mixing + step)[0] - gain(mixing - step)[0]) / 2e-6
        assert slope[index] == pytest.approx(numeric, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("noise", [0.3, 3.0, 30.0, 300.0])
def test_found_directions_never_leave_more_unknown_than_phi_itself(name, noise):
    for seed in range(4):
        case = _case(name, seed)
        for variance in (0.01, 0.5):
            found, plain = _compared(*case, variance=variance, noise=noise)
            assert found <= plain * (1 + 1e-6)


@pytest.mark.parametrize("clusters", [2, 3])
def test_on_a_clustered_menu_directions_are_clearly_better(clusters):
    """Noise is better spent within clusters than on what phi tells apart between them."""
    offsets = 0.1 * (np.random.default_rng(0).random((10 * clusters, 1)) - 0.5)
    menu = np.repeat(np.linspace(0.1, 0.9, clusters), 10)[:, None] + offsets
    posterior = Posterior.prior(FEATURES["line"], 0.25)
    found, plain = _compared(posterior, menu, np.full(len(menu), 10.0), variance=0.1, noise=3.0)
    assert found < 0.75 * plain


def test_where_only_the_level_is_unknown_all_rounds_are_pooled():
    features = FEATURES["line"]
    precision = np.full(features.dimension, 40.0)
    precision[0] = 0.4
    posterior = Posterior(features, np.diag(precision), np.zeros(features.dimension))
    menu = np.random.default_rng(0).random((30, 1))
    found, plain = _compared(posterior, menu, np.full(30, 10.0), variance=0.1, noise=100.0)
    assert found < 0.6 * plain


def test_more_noise_pools_the_rounds_in_fewer_directions():
    posterior, menu, counts = _case("square", seed=1)
    effective = []
    for noise in (0.1, 1.0, 10.0, 100.0, 1000.0):
        directions = _best(posterior, menu, counts, variance=0.1, noise=noise)
        g = _along(posterior, menu, directions)
        shares = np.linalg.eigvalsh((g.T * counts) @ g / counts.sum())
        effective.append(1.0 / np.square(shares).sum())  # of k equal ones: k
    assert effective == sorted(effective, reverse=True)
    assert effective[0] > 3 * effective[-1]
    assert effective[-1] < 2.0


def test_the_search_is_deterministic():
    case = _case("square", seed=2)
    one, two = (_best(*case, variance=0.1, noise=5.0) for _ in range(2))
    assert one.tobytes() == two.tobytes()


def test_a_single_action_has_a_single_direction():
    posterior, _, _ = _case("square", seed=0)
    menu, counts = np.array([[0.3, 0.6]]), np.array([50.0])
    directions = _best(posterior, menu, counts, variance=0.1, noise=5.0)
    assert len(directions) == 1
    assert abs(_along(posterior, menu, directions)[0, 0]) == pytest.approx(1.0)
