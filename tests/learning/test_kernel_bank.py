"""The bank of priors: evidence against dense likelihoods, and choices that data make clear."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from discreet.agreement.plan import Plan
from discreet.agreement.prior import Prior
from discreet.domain.box import Box, Categorical
from discreet.features.kernels import Learned, Matern, Polynomial, SquaredExponential
from discreet.learning.kernel_bank import AMPLITUDES, LEVEL, Bank, Choice, _gain, _Judge, bank_of
from discreet.learning.search import public_points
from discreet.privacy.budget import NonPrivate
from discreet.storage import canonical

LINE = Box({"x": (0, 1)})
SQUARE = Box({"x": (0, 1), "y": (0, 1)})
CUBE = Box(dict.fromkeys("abcd", (0, 1)))
THREE = tuple(SquaredExponential(scale) for scale in (0.06, 0.15, 0.4))
KERNELS = {
    "one": (SQUARE, SquaredExponential(0.5)),
    "together": (LINE, Learned(THREE)),
    "mixed": (SQUARE, Learned((SquaredExponential((0.3, 0.5)), Matern(2.5, 0.5)))),
    "additive": (SQUARE, Learned(THREE, additive=True, shares=(0.0, 0.5, 0.9))),
    "polynomial": (SQUARE, Polynomial(2)),
}


def _plan(domain, kernel, **parts):
    return Plan(domain=domain, privacy=NonPrivate(), kernel=kernel, kernel_error=1e-2, **parts)


@pytest.fixture(scope="module")
def banks() -> dict[str, Bank]:
    return {name: bank_of(_plan(*parts)) for name, parts in KERNELS.items()}


def _choices(bank):
    """Every choice: all combinations without a share, the same option everywhere with one."""
    counts = [range(len(group)) for group in bank.variances]
    own = [Choice(options) for options in itertools.product(*counts)]
    alike = [
        Choice((option,) * len(counts), share) for share in bank.shares[1:] for option in counts[0]
    ]
    return own + alike


@pytest.mark.parametrize("name", KERNELS)
def test_precision_is_the_inverse_of_the_covariance(banks, name):
    bank = banks[name]
    for choice in _choices(bank):
        for signal in (0.01, 1.0, 30.0):
            product = bank.precision(choice, signal) @ (signal * bank.covariance(choice))
            assert np.allclose(product, np.eye(len(product)), rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_a_prior_is_its_options_kernel_and_a_level(banks, name):
    """phi K phi^T, less what the constant may vary by, within the error of the map."""
    bank = banks[name]
    plan, kernel = bank.plan, bank.plan.kernel
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 60, plan.domain.dimension))
    phi, psi = plan.map(x), plan.map(y)
    level = phi @ np.diag(bank.level) @ psi.T
    assert np.allclose(level, 0.0 if name == "polynomial" else LEVEL, rtol=1e-9)
    for choice in _choices(bank):
        found = phi @ bank.covariance(choice) @ psi.T - level
        if not isinstance(kernel, Learned):
            expected = kernel(x, y)
        elif not kernel.additive:
            expected = kernel.options[choice.options[0]](x, y)
        else:
            d = plan.domain.dimension
            each = [kernel.options[option] for option in choice.options]
            expected = sum(each[j](x[:, [j]], y[:, [j]]) for j in range(d)) / d
            for i, j in itertools.permutations(range(d), 2):
                expected += choice.share * each[i](x[:, [i]], y[:, [j]]) / d
        terms = 1 + choice.share * (len(bank.blocks) - 1)
        assert np.abs(found - expected).max() <= terms * plan.map.error_bound + 1e-6


@pytest.mark.parametrize("name", KERNELS)
def test_the_variance_of_the_shape_is_that_of_functions_around_their_mean(banks, name):
    """2,000 draws over the public_points: within 7 standard errors (false alarms below 1e-10)."""
    bank = banks[name]
    phi = bank.plan.map(public_points(bank.plan.domain))
    for choice in _choices(bank)[:: max(1, len(_choices(bank)) // 3)]:
        root = np.linalg.cholesky(bank.covariance(choice))
        normals = np.random.default_rng(1).standard_normal((2000, len(root)))
        functions = normals @ root.T @ phi.T
        variances = functions.var(axis=1)
        error = variances.std() / math.sqrt(len(variances))
        assert bank.shape_variance(choice) == pytest.approx(variances.mean(), abs=7 * error)


# -- evidence


def _told(m, seed, rows=40):
    """Noisy linear observations, dense, and the sums that a belief keeps of them."""
    rng = np.random.default_rng(seed)
    design, root = rng.standard_normal((rows, m)), rng.standard_normal((rows, rows))
    noise = root @ root.T / rows + 0.5 * np.eye(rows)
    values = 3.0 * rng.standard_normal(rows)
    weighted = np.linalg.solve(noise, design)
    return (design, noise, values), weighted.T @ design, weighted.T @ values


def _likelihood(design, noise, values, covariance):
    """log N(v; 0, A K A^T + R)."""
    whole = design @ covariance @ design.T + noise
    return stats.multivariate_normal(np.zeros(len(values)), whole).logpdf(values)


@pytest.mark.parametrize("name", ["together", "mixed", "additive"])
@pytest.mark.parametrize("shape", [0.03, 0.8])
def test_evidence_is_the_log_likelihood_up_to_what_all_share(banks, name, shape):
    bank = banks[name]
    observed, precision, information = _told(bank.plan.map.dimension, seed=3)
    judge = _Judge(bank, shape, precision, information)
    around = bank.plan.map(public_points(bank.plan.domain))
    around = around - around.mean(axis=0)
    dense = []
    for choice in _choices(bank):
        covariance = bank.covariance(choice)
        scale = shape / np.mean(np.diag(around @ covariance @ around.T))
        dense.append(_likelihood(*observed, scale * covariance))
    found = np.array([judge.evidence(choice) for choice in _choices(bank)])
    assert np.ptp(dense) > 1.0  # they do differ
    assert np.allclose(found - found[0], np.array(dense) - dense[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_gain_of_a_block_is_the_difference_of_evidences(banks, seed):
    bank = banks["additive"]
    signal, start = 0.7, Choice((1, 2))
    observed, precision, information = _told(bank.plan.map.dimension, seed=seed)
    posterior = np.linalg.inv(bank.precision(start, signal) + precision)
    mean = posterior @ information
    before = _likelihood(*observed, signal * bank.covariance(start))
    for g, block in enumerate(bank.blocks):
        tried = [signal * (each + bank.level[block]) for each in bank.variances[g]]
        for option in range(3):
            options = list(start.options)
            options[g] = option
            after = _likelihood(*observed, signal * bank.covariance(Choice(tuple(options))))
            gain = _gain(
                posterior[block, block], mean[block], tried[start.options[g]], tried[option]
            )
            assert gain == pytest.approx(after - before, abs=1e-6)


# -- choices


def _exact(plan, function, *, count=600, noise_std=0.05, seed=0):
    """The sums that exact answers add."""
    rng = np.random.default_rng(seed)
    x = rng.random((count, plan.domain.dimension))
    phi = plan.map(x)
    answers = function(x) + noise_std * rng.standard_normal(count)
    return phi.T @ phi / noise_std**2, phi.T @ answers / noise_std**2


@pytest.mark.parametrize("truth", range(3))
@pytest.mark.parametrize("start", range(3))
def test_the_true_lengthscale_is_chosen_from_enough_exact_data(truth, start):
    """Fixed seeds: five functions of each lengthscale, drawn from the kernel itself."""
    plan = _plan(LINE, Learned(THREE))
    bank = bank_of(plan)
    grid = np.linspace(0, 1, 300)[:, None]
    covariance = 0.2 * THREE[truth](grid, grid) + 1e-9 * np.eye(300)
    functions = np.random.default_rng(truth).multivariate_normal(np.zeros(300), covariance, size=5)
    for values in functions:
        told = _exact(plan, lambda x, values=values: np.interp(x[:, 0], grid[:, 0], values))
        assert bank.best(Choice((start,)), 0.2, *told).options == (truth,)


def test_each_coordinate_gets_the_option_that_fits_it():
    plan = _plan(SQUARE, Learned(THREE, additive=True))
    told = _exact(plan, lambda x: np.sin(30 * x[:, 0]) / 4 + np.sin(3 * x[:, 1]) / 2)
    found = bank_of(plan).best(bank_of(plan).first, 0.1, *told)
    assert found.share == 0.0
    assert found.options[0] < found.options[1]


@pytest.mark.parametrize("seed", range(3))
def test_a_part_in_common_is_chosen_where_coordinates_are_alike_and_only_there(seed):
    plan = _plan(CUBE, Learned(THREE, additive=True))
    bank = bank_of(plan)
    rng = np.random.default_rng(seed)
    waves = rng.uniform(4, 9, 4), rng.uniform(0, 2 * math.pi, 4)

    def symmetric(x):
        return np.sin(waves[0][0] * x + waves[1][0]).sum(axis=1) / 4

    def asymmetric(x):
        return np.sin(waves[0] * x + waves[1]).sum(axis=1) / 4

    assert bank.best(bank.first, 0.1, *_exact(plan, symmetric)).share > 0.0
    assert bank.best(bank.first, 0.1, *_exact(plan, asymmetric)).share == 0.0


def test_coordinates_of_other_widths_have_nothing_in_common():
    """Two columns of three categories are not alike: no share, and no error either."""
    domain = Box({"x": (0, 1), "arm": Categorical(("a", "b", "c"))})
    plan = _plan(domain, Learned(THREE, additive=True))
    bank = bank_of(plan)
    assert len({block.stop - block.start for block in bank.blocks}) > 1
    assert bank.shares == (0.0,)
    told = _exact(plan, lambda x: np.sin(30 * x[:, 0]))
    assert bank.best(bank.first, 0.1, *told).share == 0.0


def test_without_data_no_group_changes_its_option():
    plan = _plan(SQUARE, Learned(THREE, additive=True))
    bank, m = bank_of(plan), plan.map.dimension
    for choice in (Choice((0, 2)), Choice((2, 1))):
        judge = _Judge(bank, 0.1, np.zeros((m, m)), np.zeros(m))
        assert judge.each_group(choice) == choice
        assert judge.evidence(choice) == pytest.approx(0.0, abs=1e-9)


def test_an_earlier_study_is_the_prior_and_leaves_nothing_to_choose():
    plan = _plan(LINE, Learned(THREE))
    m = plan.map.dimension
    precision = np.diag(np.arange(1.0, m + 1))
    prior = Prior(
        canonical.digest(plan.domain),
        canonical.digest(plan.map),
        plan.rewards,
        precision,
        np.ones(m),
        True,
    )
    bank = bank_of(_plan(LINE, Learned(THREE), features=plan.map, prior=prior))
    for option in range(3):
        assert np.array_equal(bank.precision(Choice((option,)), 0.3), precision)
        told = _exact(plan, lambda x: np.sin(30 * x[:, 0]))
        assert bank.best(Choice((option,)), 0.1, *told) == Choice((option,))


def test_the_pool_is_the_same_for_everyone_and_within_the_domain():
    domain = Box({"x": (0, 1), "y": (0, 1)}, feasible="x + y <= 1")
    other = Box({"x": (0, 1), "y": (0, 1)}, feasible="x + y <= 1")
    assert public_points(domain).tobytes() == public_points(other).tobytes()
    assert domain.admits(public_points(domain)).all()


@pytest.mark.parametrize("amplitude", AMPLITUDES)
def test_a_function_louder_than_its_first_answers_is_found_out(amplitude):
    """Twenty functions from the prior itself, well seen; fixed seed, so no false alarms."""
    plan = _plan(LINE, Learned(THREE))
    bank = bank_of(plan)
    quiet = Choice((1,))
    precision = 1e4 * np.eye(plan.map.dimension)
    covariance = amplitude * 0.2 / bank.shape_variance(quiet) * bank.covariance(quiet)
    rng = np.random.default_rng(3)
    thetas = rng.multivariate_normal(np.zeros(len(covariance)), covariance, size=20)
    found = [bank.best(quiet, 0.2, precision, precision @ theta).amplitude for theta in thetas]
    assert np.exp(np.mean(np.log(found))) == pytest.approx(amplitude, rel=0.5)


def test_a_signal_that_the_plan_states_is_not_learnt():
    stated = _plan(LINE, Learned(THREE), signal_std=0.2)
    assert bank_of(stated).amplitudes == (1.0,)
    assert bank_of(_plan(LINE, THREE[0])).amplitudes == (1.0,)
