"""Random bits: the documented map to normals, fresh bits for each draw, noise within its range."""

import itertools
import os
import warnings
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr

from discreet.agreement.plan import Plan
from discreet.agreement.release import GENESIS
from discreet.domain.box import Box
from discreet.errors import InvalidArgument
from discreet.features.choose import choose
from discreet.features.kernels import Additive, Matern, Polynomial, SquaredExponential
from discreet.learning.belief import SHARES, SMALLEST_WIDTH, Belief
from discreet.learning.next_epoch import open_epoch
from discreet.privacy.budget import JointDP, Simulation
from discreet.privacy.clipping import SLACK_PER_INTEGER, Residual
from discreet.privacy.cost import GaussianPrivacy
from discreet.privacy.encodings import ENCODINGS
from discreet.trusted.randomness import (
    LARGEST_STD,
    SMALLEST_STD,
    OperatingSystem,
    Seeded,
    integer_noise,
    normals_from,
    secret_key,
    source,
    sources,
)

SIGN = 1 << 63
words = st.integers(0, SIGN - 1)


def _normals(*bits):
    return normals_from(np.array(bits, dtype=np.uint64)).tolist()


def test_edge_bits_are_the_documented_normals():
    assert _normals(0)[0] == pytest.approx(-9.155, abs=1e-3)  # Phi^-1(2^-65)
    assert _normals(SIGN)[0] == -_normals(0)[0]
    assert abs(_normals(SIGN - 1)[0]) == abs(_normals(2 * SIGN - 1)[0]) == 0.0
    assert _normals(SIGN >> 1)[0] == pytest.approx(-0.6744897501960817, rel=1e-15)


@given(words)
def test_the_top_bit_is_the_sign(word):
    below, above = _normals(word, word | SIGN)
    assert below == -above
    assert below <= 0.0


@given(words, words)
def test_more_tail_probability_is_nearer_to_zero(first, second):
    low, high = sorted((first, second))
    assert _normals(low)[0] <= _normals(high)[0]


@given(words)
def test_the_distribution_function_comes_back(word):
    with mpmath.workdps(40):
        exact = (mpmath.mpf(word) + 0.5) / mpmath.mpf(2) ** 64
        z = mpmath.mpf(_normals(word)[0])
        error = abs(mpmath.ncdf(z) - exact)
        # The bound of the module's docstring.
        assert error <= mpmath.mpf(2) ** -49 * (abs(z) * mpmath.npdf(z) + mpmath.ncdf(z))


@pytest.mark.parametrize("bits", [OperatingSystem(), Seeded(Simulation(5), 0)], ids=["os", "seed"])
def test_normals_are_standard_normal(bits):
    """False-alarm rate below 1e-6: four tests at 1e-7 and one correlation at 1e-7."""
    z = bits.normals(200_000)
    assert stats.kstest(z, "norm").pvalue > 1e-7
    assert stats.kstest(np.abs(z), stats.halfnorm.cdf).pvalue > 1e-7
    assert 2 * ndtr(-abs(z.mean()) * len(z) ** 0.5) > 1e-7
    tail = stats.chi2.cdf(np.sum(z**2), len(z))
    assert 5e-8 < tail < 1 - 5e-8
    assert 2 * ndtr(-abs(np.mean(z[1:] * z[:-1])) * len(z) ** 0.5) > 1e-7


def test_the_operating_system_never_repeats_itself():
    draws = [OperatingSystem().normals(4).tobytes() for _ in range(100)]
    assert len(set(draws)) == 100
    assert len({secret_key() for _ in range(100)}) == 100
    assert len(bytes.fromhex(secret_key())) == 32


def test_no_draw_at_all_is_an_empty_one():
    assert OperatingSystem().normals(0).shape == (0,)
    assert integer_noise(np.zeros(3), bits=OperatingSystem()).tolist() == [0, 0, 0]
    assert integer_noise(np.zeros(0), bits=OperatingSystem()).shape == (0,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_parent_and_child_draw_different_noise_after_a_fork():
    bits, stds = OperatingSystem(), np.full(8, 2.0**20)
    integer_noise(stds, bits=bits)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads, on Python 3.12
        child = os.fork()
    if child == 0:
        os.write(writing, integer_noise(stds, bits=bits).tobytes())
        os._exit(0)
    os.close(writing)
    theirs = np.frombuffer(os.read(reading, 1000), dtype=np.int64)
    os.close(reading)
    assert os.waitpid(child, 0)[1] == 0
    ours = integer_noise(stds, bits=bits)
    assert theirs.shape == ours.shape
    assert not np.any(theirs == ours)


def test_a_seed_and_an_epoch_make_the_same_noise_again_and_others_do_not():
    stds = np.full(6, 2.0**20)

    def noise(seed, epoch):
        return integer_noise(stds, bits=source(Simulation(seed), epoch)).tobytes()

    assert noise(1, 0) == noise(1, 0)
    assert len({noise(seed, epoch) for seed in range(10) for epoch in range(10)}) == 100


def test_only_the_operating_system_is_private():
    assert OperatingSystem().private is True
    assert source(None, 3).private is True
    assert Seeded(Simulation(1), 0).private is False
    assert source(Simulation(1), 3).private is False
    assert sources(None, [3]).private is True
    assert sources(Simulation(1), [3]).private is False


def test_a_seeded_stream_goes_on():
    stream, again = Seeded(Simulation(1), 0), Seeded(Simulation(1), 0)
    parts = np.concatenate([stream.normals(3), stream.normals(4)])
    assert np.array_equal(parts, again.normals(7))
    assert len(np.unique(parts)) == 7


@pytest.mark.parametrize(
    "std", [SMALLEST_STD / 1.001, 1.0, 1e-300, LARGEST_STD * 1.001, np.inf], ids=str
)
def test_noise_outside_the_proven_range_is_refused(std):
    with pytest.raises(InvalidArgument, match="stds"):
        integer_noise(np.array([2.0**20, std]), bits=OperatingSystem())


@pytest.mark.parametrize("bad", [np.nan, -1.0, -(2.0**20)])
def test_noise_without_meaning_is_refused_and_not_taken_for_none(bad):
    with pytest.raises(InvalidArgument, match="stds"):
        integer_noise(np.array([2.0**20, bad]), bits=OperatingSystem())


@pytest.mark.parametrize("std", [SMALLEST_STD, 2.0**20, LARGEST_STD])
def test_noise_has_the_standard_deviation_that_was_asked_for(std):
    """False-alarm rate below 1e-6: a chi-squared and a Kolmogorov-Smirnov test at 1e-7 each."""
    noise = integer_noise(np.full(100_000, std), bits=OperatingSystem())
    assert noise.dtype == np.int64
    # The smoothing adds 2^-12 of the variance, rounding at most 2 / 12: both far below 1 %.
    total = std**2 * (1 + 2.0**-12) + 1 / 6
    tail = stats.chi2.cdf(np.sum(noise.astype(float) ** 2) / total, len(noise))
    assert 5e-8 < tail < 1 - 5e-8
    assert stats.kstest(noise / total**0.5, "norm").pvalue > 1e-7


def test_coordinates_get_independent_noise_of_their_own_width():
    """False-alarm rate below 1e-6: a correlation at 1e-7."""
    stds = np.tile([2.0**12, 0.0, 2.0**27], 20_000)
    noise = integer_noise(stds, bits=OperatingSystem()).reshape(-1, 3)
    assert not noise[:, 1].any()
    assert np.abs(noise[:, 0]).max() < 10 * 2**12 < np.abs(noise[:, 2]).max()
    correlation = np.mean(noise[:, 0] / 2.0**12 * noise[:, 2] / 2.0**27)
    assert 2 * ndtr(-abs(correlation) * len(noise) ** 0.5) > 1e-7


def test_the_slack_of_one_integer_covers_the_bound_for_every_allowed_std():
    assert 2.0**-45 + LARGEST_STD**2 * 2.0**-99 < SLACK_PER_INTEGER


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_plan_pays_for_finite_precision_out_of_its_delta(epsilon):
    privacy = JointDP(epsilon, 1e-6)
    plan = Plan(domain=Box({"x": (0, 1), "y": (0, 1)}), privacy=privacy)
    slack = 2 * (1 + np.exp(epsilon)) * plan.map.dimension * SLACK_PER_INTEGER
    assert GaussianPrivacy(plan.mu).delta(epsilon) + slack <= privacy.delta
    assert plan.mu == pytest.approx(privacy.mu_per_round, rel=0.02)


def test_a_plan_whose_precision_cannot_be_certified_is_refused():
    with pytest.raises(InvalidArgument, match="finite precision"):
        Plan(domain=Box({"x": (0, 1)}), privacy=JointDP(25.0, 1e-9))


# -- what real plans ask of the noise

KERNELS = [
    (SquaredExponential(0.2), 1, 1e-3),
    (SquaredExponential(0.2), 1, 1e-9),
    (SquaredExponential(0.1), 2, 1e-4),
    (SquaredExponential(0.3), 2, 1e-3),
    (SquaredExponential(0.7), 3, 1e-4),
    (SquaredExponential(10.0), 2, 1e-10),
    (Matern(0.5, 0.5), 1, 3e-2),
    (Matern(2.5, 0.5), 2, 1e-2),
    (Polynomial(3), 2, 1e-3),
    (Additive.over(SquaredExponential(0.3), 3), 3, 1e-3),
]
BUDGETS = [
    (epsilon, delta)
    for epsilon in (0.01, 0.1, 1.0, 10.0, 50.0)
    for delta in (1e-12, 1e-6, 1e-3, 0.3)
    if delta <= epsilon
]


@pytest.mark.parametrize(("kernel", "d", "error"), KERNELS, ids=str)
def test_every_encoding_of_every_budget_can_be_released_and_summed(kernel, d, error):
    features = choose(kernel, widths=np.ones(d), error=error)
    lattice = getattr(features, "indices", None) is not None
    kinds = [kind for name, kind in ENCODINGS.items() if lattice or name != "fourier"]
    for kind, (epsilon, delta) in itertools.product(kinds, BUDGETS):
        mu = GaussianPrivacy.of(epsilon, delta).mu
        for width, share in itertools.product((SMALLEST_WIDTH, 0.2, 1.0), (SHARES[0], SHARES[-1])):
            residual = Residual(np.zeros(features.dimension), width)
            for rounds in (1, 20_000, 1 << 34):
                encoding = kind.fit(features, residual, mu, share, rounds)
                stds = encoding.stds(features)
                noisy = stds[stds > 0]
                assert noisy.min() >= SMALLEST_STD
                assert noisy.max() <= LARGEST_STD
                assert encoding.bits > 0
                assert rounds * encoding.largest + 10 * noisy.max() < 2**63
                assert encoding.bound(features) <= mu * (1 + 1e-12)


@pytest.mark.parametrize("decisions", ["box", "candidates"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("noise_std", [1e-6, 0.5])
def test_the_epochs_of_real_plans_can_be_released(decisions, epsilon, noise_std):
    plan = Plan(
        domain=Box({"x": (0, 1), "y": (0, 1)}),
        kernel=SquaredExponential(0.3),
        privacy=JointDP(epsilon, 1e-6),
        decisions=decisions,
        noise_std=noise_std,
    )
    m = plan.map.dimension
    blank = Belief.before(plan)
    sure = replace(blank, window=blank.window.plus(np.eye(m) * 1e12, np.zeros(m)))
    for number, (belief, first) in enumerate([(blank, 0), (sure, 10**6)]):
        epoch = open_epoch(plan, belief, number=number, first=first, previous=GENESIS)
        stds = epoch.encoding.stds(plan.map)
        assert integer_noise(stds, bits=OperatingSystem()).shape == stds.shape
        assert epoch.encoding.bound(plan.map) <= JointDP(epsilon, 1e-6).mu_per_round
