"""The posterior against scikit-learn, the textbook process and closed-form conditioning."""

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as oracle
from tests.support.exact_process import ExactProcess

from discreet.errors import InvalidArgument
from discreet.features.choose import choose
from discreet.features.kernels import Additive, Polynomial, SquaredExponential
from discreet.learning.posterior import Posterior
from discreet.learning.search import Score

SMALL = choose(SquaredExponential(0.4), widths=np.ones(2), error=1e-2)
EXACT = [(1, 0.5), (1, 0.8), (2, 0.7), (2, (0.5, 1.5)), (3, 1.2), (3, (0.9, 1.3, 2.0))]


def _learnt(features, points, rewards, *, signal_variance=1.0, noise_variance=0.1):
    phi = features(points)
    prior = Posterior.prior(features, signal_variance)
    return prior.absorb(phi.T @ phi, phi.T @ rewards, noise_variance=noise_variance)


def _problem(seed, d, count=40):
    rng = np.random.default_rng(seed)
    return rng.random((count, d)), rng.uniform(-1, 1, count), rng.random((200, d))


@pytest.fixture(scope="module")
def accurate():
    """One map for each exact problem, with kernel error below 1e-9."""
    return {
        case: choose(SquaredExponential(case[1]), widths=np.ones(case[0]), error=9e-10, limit=4096)
        for case in EXACT
    }


@pytest.mark.parametrize("case", EXACT, ids=str)
def test_mean_and_variance_are_those_of_scikit_learn(case, accurate):
    d, lengthscale = case
    features = accurate[case]
    assert features.error_bound < 1e-9
    worst = 0.0
    for seed in range(4 if d < 3 else 2):
        points, rewards, x = _problem(seed, d)
        signal, noise = np.random.default_rng(seed).uniform(0.05, 1.0, 2)
        posterior = _learnt(features, points, rewards, signal_variance=signal, noise_variance=noise)
        kernel = oracle.ConstantKernel(signal) * oracle.RBF(lengthscale)
        peer = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(points, rewards)
        mean, std = peer.predict(x, return_std=True)
        worst = max(
            worst,
            np.abs(posterior.mean(x) - mean).max(),
            np.abs(posterior.variance(x) - std**2).max(),
        )
    print(f"d = {d}, lengthscale {lengthscale}, m = {features.dimension}: {worst:.1e}")
    assert worst < 1e-6


@pytest.mark.parametrize(
    "kernel",
    [Polynomial(2), Additive.over(Polynomial(3, bias=0.5), 2)],
    ids=["polynomial", "additive"],
)
def test_exact_maps_give_the_textbook_process(kernel):
    points, rewards, x = _problem(3, 2)
    posterior = _learnt(choose(kernel, widths=np.ones(2)), points, rewards, signal_variance=0.7)
    exact = ExactProcess(kernel, points, rewards, signal_variance=0.7, noise_variance=0.1)
    assert np.allclose(posterior.mean(x), exact.mean(x), rtol=0, atol=1e-10)
    variance = np.diagonal(exact.covariance(x))
    assert np.allclose(posterior.variance(x), variance, rtol=0, atol=1e-10)


def test_the_approximate_kernel_is_the_model_at_any_kernel_error():
    points, rewards, x = _problem(4, 2)
    posterior = _learnt(SMALL, points, rewards, signal_variance=0.3, noise_variance=0.02)
    exact = ExactProcess(
        lambda a, b: SMALL(a) @ SMALL(b).T,
        points,
        rewards,
        signal_variance=0.3,
        noise_variance=0.02,
    )
    assert np.allclose(posterior.mean(x), exact.mean(x), rtol=0, atol=1e-10)
    variance = np.diagonal(exact.covariance(x))
    assert np.allclose(posterior.variance(x), variance, rtol=0, atol=1e-10)


def test_the_prior_has_mean_zero_and_the_signal_variance():
    prior = Posterior.prior(SMALL, 0.3)
    x = np.random.default_rng(0).random((20, 2))
    assert np.allclose(prior.mean(x), 0.0)
    assert np.allclose(prior.variance(x), 0.3)


def test_the_variance_of_the_shape_leaves_out_the_level():
    points, rewards, x = _problem(12, 2)
    posterior = _learnt(SMALL, points, rewards)
    phi = SMALL(x)
    covariance = phi @ np.linalg.inv(posterior.precision) @ phi.T
    centring = np.eye(len(x)) - 1 / len(x)
    expected = np.mean(np.diag(centring @ covariance @ centring.T))
    assert posterior.shape_variance(x) == pytest.approx(expected, rel=1e-9)
    assert posterior.shape_variance(x) < posterior.variance(x).mean()


def test_observing_the_exact_statistics_is_absorbing_them():
    points, rewards, x = _problem(5, 2, count=400)
    features = choose(Polynomial(2), widths=np.ones(2))
    phi = features(points)
    gram, cross = phi.T @ phi, phi.T @ rewards
    prior = Posterior.prior(features, 0.5)
    absorbed = prior.absorb(gram, cross, noise_variance=0.2)
    observed = prior.observe(gram, cross, 0.2 * gram)
    assert np.allclose(observed.mean(x), absorbed.mean(x), rtol=0, atol=1e-9)
    assert np.allclose(observed.variance(x), absorbed.variance(x), rtol=1e-8, atol=0)


def test_noisy_linear_observations_are_gaussian_conditioning():
    rng = np.random.default_rng(6)
    m, k = SMALL.dimension, 7
    design, values = rng.standard_normal((k, m)), rng.standard_normal(k)
    root = rng.standard_normal((k, k))
    covariance = root @ root.T + 0.1 * np.eye(k)
    posterior = Posterior.prior(SMALL, 0.4).observe(design, values, covariance)
    gain = 0.4 * design.T @ np.linalg.inv(0.4 * design @ design.T + covariance)
    assert np.allclose(posterior.coefficients, gain @ values, rtol=0, atol=1e-10)
    expected = 0.4 * np.eye(m) - gain @ design * 0.4
    assert np.allclose(np.linalg.inv(posterior.precision), expected, rtol=0, atol=1e-10)


def test_rounding_in_an_empty_corner_of_the_covariance_is_no_asymmetry():
    """As of three actions: nothing correlates some of their sums but the last bits."""
    covariance = np.diag([6.9, 5.7])
    covariance[0, 1], covariance[1, 0] = -2.28012796e-15, -2.28011354e-15
    design, values = np.eye(2, SMALL.dimension), np.zeros(2)
    prior = Posterior.prior(SMALL, 0.4)
    learnt = prior.observe(design, values, covariance)
    expected = prior.observe(design, values, np.diag([6.9, 5.7]))
    assert np.allclose(learnt.precision, expected.precision, rtol=1e-12, atol=1e-12)
    covariance[0, 1] = 1e-6
    with pytest.raises(InvalidArgument, match="a symmetric matrix"):
        prior.observe(design, values, covariance)


def test_observations_in_turn_are_the_observations_together():
    rng = np.random.default_rng(7)
    m, prior = SMALL.dimension, Posterior.prior(SMALL, 1.0)
    first, second = (
        (rng.standard_normal((k, m)), rng.standard_normal(k), np.diag(rng.uniform(0.1, 2, k)))
        for k in (3, 5)
    )
    in_turn = prior.observe(*first).observe(*second)
    other_way = prior.observe(*second).observe(*first)
    noise = np.zeros((8, 8))
    noise[:3, :3], noise[3:, 3:] = first[2], second[2]
    together = prior.observe(
        np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]]), noise
    )
    for one in (in_turn, other_way):
        assert np.allclose(one.precision, together.precision, rtol=0, atol=1e-10)
        assert np.allclose(one.coefficients, together.coefficients, rtol=0, atol=1e-10)


def test_absorbing_in_parts_is_absorbing_all():
    points, rewards, x = _problem(8, 2)
    whole = _learnt(SMALL, points, rewards)
    parts = Posterior.prior(SMALL, 1.0)
    for rows in np.array_split(np.arange(len(points)), 6):
        phi = SMALL(points[rows])
        parts = parts.absorb(phi.T @ phi, phi.T @ rewards[rows], noise_variance=0.1)
    assert np.allclose(parts.mean(x), whole.mean(x), rtol=0, atol=1e-11)
    assert np.allclose(parts.variance(x), whole.variance(x), rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    "features",
    [
        SMALL,
        choose(Polynomial(3, bias=0.5), widths=np.ones(2)),
        choose(Additive.over(SquaredExponential(0.3), 2), widths=np.ones(2)),
    ],
    ids=["grid", "polynomial", "additive"],
)
def test_gradients_of_a_score_are_those_of_finite_differences(features):
    points, rewards, x = _problem(9, 2)
    posterior = _learnt(features, points, rewards)
    h = 1e-6
    tilts = np.tile(posterior.coefficients, (len(x), 1))
    for optimism in (0.0, 0.7):
        score = Score(features, posterior.whitening, optimism)
        shifts = h * np.eye(2)
        values = [[score.values(x + sign * each, tilts) for sign in (1, -1)] for each in shifts]
        numeric = [(up - down) / (2 * h) for up, down in values]
        found = score.values_and_gradient(x, tilts)[1]
        assert np.allclose(found, np.stack(numeric, axis=1), rtol=0, atol=1e-7)


def test_samples_have_the_posterior_mean_and_covariance():
    """False-alarm rate below 1e-6: two chi-squared statistics at 2e-7 each."""
    points, rewards, _ = _problem(10, 2, count=5)
    posterior = _learnt(SMALL, points, rewards)
    x = np.random.default_rng(1).random((4, 2))
    count = 20_000
    normals = np.random.default_rng(2).standard_normal((count, SMALL.dimension))
    samples = posterior.draws(normals) @ SMALL(x).T
    assert samples.shape == (count, 4)
    phi = SMALL(x)
    covariance = phi @ np.linalg.solve(posterior.precision, phi.T)
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), (samples - posterior.mean(x)).T)
    # The mean of white samples is N(0, I / count): count |mean|^2 is chi-squared.
    of_mean = count * np.square(whitened.mean(axis=1)).sum()
    assert stats.chi2.sf(of_mean, df=4) > 2e-7
    # The likelihood-ratio statistic for covariance I is chi-squared with 4 * 5 / 2 degrees.
    scatter = whitened @ whitened.T / count
    of_covariance = count * (np.trace(scatter) - np.linalg.slogdet(scatter)[1] - 4)
    assert stats.chi2.sf(of_covariance, df=10) > 2e-7


def test_a_posterior_is_not_changed_by_learning():
    prior = Posterior.prior(SMALL, 1.0)
    before = prior.precision.copy(), prior.information.copy()
    _learnt(SMALL, *_problem(11, 2)[:2])
    m = SMALL.dimension
    prior.absorb(np.eye(m), np.ones(m), noise_variance=1.0)
    prior.observe(np.eye(m), np.ones(m), np.eye(m))
    assert np.array_equal(prior.precision, before[0])
    assert np.array_equal(prior.information, before[1])


M = SMALL.dimension
GOOD = (np.ones((2, M)), np.ones(2), np.eye(2))


@pytest.mark.parametrize(
    ("position", "bad", "argument"),
    [
        (0, np.ones((2, M + 1)), "design"),
        (0, np.ones(M), "design"),
        (0, np.full((2, M), np.nan), "design"),
        (1, np.ones(3), "values"),
        (1, np.ones((2, 1)), "values"),
        (1, np.array([1.0, np.inf]), "values"),
        (2, np.eye(3), "covariance"),
        (2, np.ones(2), "covariance"),
        (2, -np.eye(2), "covariance"),
        (2, np.zeros((2, 2)), "covariance"),
        (2, np.array([[1.0, 0.9], [0.0, 1.0]]), "covariance"),
        (2, np.array([[1.0, np.nan], [np.nan, 1.0]]), "covariance"),
    ],
)
def test_bad_observations_are_refused(position, bad, argument):
    given = [*GOOD[:position], bad, *GOOD[position + 1 :]]
    with pytest.raises(InvalidArgument, match=argument):
        Posterior.prior(SMALL, 1.0).observe(*given)


@pytest.mark.parametrize(
    ("gram", "cross", "noise_variance", "argument"),
    [
        (np.ones(M), np.ones(M), 1.0, "gram"),
        (np.eye(M + 1), np.ones(M), 1.0, "gram"),
        (np.eye(M), np.ones((M, 1)), 1.0, "cross"),
        (np.eye(M), np.full(M, np.nan), 1.0, "cross"),
        (np.full((M, M), np.inf), np.ones(M), 1.0, "gram"),
        (np.eye(M), np.ones(M), 0.0, "noise_variance"),
        (np.eye(M), np.ones(M), -1.0, "noise_variance"),
        (np.eye(M), np.ones(M), np.nan, "noise_variance"),
    ],
)
def test_bad_statistics_are_refused(gram, cross, noise_variance, argument):
    with pytest.raises(InvalidArgument, match=argument):
        Posterior.prior(SMALL, 1.0).absorb(gram, cross, noise_variance=noise_variance)
