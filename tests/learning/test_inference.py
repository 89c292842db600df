"""Inference: the clipped line by numerical integration, and posteriors that mean what they say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from tests.support.plain_sums import LookedAt

from discreet.agreement.plan import Plan, Schedule
from discreet.agreement.release import GENESIS
from discreet.domain.box import Box
from discreet.features.choose import choose
from discreet.features.kernels import SquaredExponential
from discreet.learning.belief import Belief
from discreet.learning.inference import (
    SATURATED,
    Clipped,
    expected_posterior,
    nonnegative,
    observe,
    read,
    unclipped_variance,
)
from discreet.learning.next_epoch import learn, open_epoch
from discreet.learning.posterior import Posterior
from discreet.learning.window import Block
from discreet.privacy.budget import JointDP, Simulation
from discreet.privacy.clipping import Residual
from discreet.privacy.encodings import ENCODINGS
from discreet.trusted import mechanism
from discreet.trusted.randomness import Seeded
from discreet.trusted.sums import Sums

FEATURES = choose(SquaredExponential(0.3), widths=np.ones(1), error=1e-2)
M = FEATURES.dimension


@pytest.mark.parametrize("width", [0.01, 0.2, 0.5, 1.0, 3.0])
@pytest.mark.parametrize(("unknown", "noise"), [(0.25, 0.04), (0.01, 0.25), (1e-6, 0.3), (1, 1e-6)])
def test_the_clipped_line_is_the_one_of_numerical_integration(width, unknown, noise):
    law = stats.norm(scale=np.sqrt(unknown + noise))
    ends = [-width, width]

    def mean(function):
        pieces = [(-np.inf, ends[0]), tuple(ends), (ends[1], np.inf)]
        parts = [
            integrate.quad(lambda r: function(r) * law.pdf(r), *piece, epsabs=1e-13, epsrel=1e-11)
            for piece in pieces
        ]
        return sum(part[0] for part in parts)

    def clipped(r):
        return min(max(r, -width), width)

    # f - f_0 given the residual r is r unknown / (unknown + noise): regress h on it.
    slope = mean(lambda r: clipped(r) * r) / (unknown + noise)
    variance = mean(lambda r: clipped(r) ** 2) - slope**2 * unknown
    line = Clipped.at(width, unknown, noise)
    assert line.slope == pytest.approx(slope, rel=1e-7)
    assert line.variance == pytest.approx(variance, rel=1e-6, abs=1e-9)


@given(width=st.floats(1e-3, 1e6), unknown=st.floats(0.0, 10.0), noise=st.floats(1e-9, 10.0))
def test_a_clipped_line_is_never_steeper_than_one_and_always_uncertain(width, unknown, noise):
    line = Clipped.at(width, unknown, noise)
    assert 0.0 < line.slope <= 1.0
    assert 0.0 < line.variance <= (unknown + noise) * (1 + 1e-9)


@given(width=st.floats(0.01, 10.0), ratio=st.floats(0.001, 8.0))
def test_the_variance_behind_clipping_is_found_again(width, ratio):
    """Up to 8 widths: beyond, nearly all is clipped, and what is seen no longer tells."""
    variance = (ratio * width) ** 2
    second = Clipped.at(width, 0.0, variance).variance  # E[clip(s z, +-width)^2]
    if second < SATURATED * width**2:
        assert unclipped_variance(second, width) == pytest.approx(variance, rel=1e-5)
    else:
        assert unclipped_variance(second, width) <= variance * (1 + 1e-5)


@given(width=st.floats(0.01, 10.0), seen=st.floats(0.0, 1e3), more=st.floats(1.0, 10.0))
def test_the_variance_behind_clipping_grows_with_what_is_seen_and_never_without_end(
    width, seen, more
):
    low, high = (unclipped_variance(each * width**2, width) for each in (seen, more * seen))
    most = unclipped_variance(SATURATED * width**2, width)
    assert low <= high * (1 + 1e-9) <= most * (1 + 1e-8)
    assert seen * width**2 <= low * (1 + 1e-6) or seen >= SATURATED
    assert most < 1e4 * width**2


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_nearest_gram_is_symmetric_and_has_no_negative_eigenvalue(m, seed):
    root = np.random.default_rng(seed).standard_normal((m, m))
    noisy = root + root.T
    near = nonnegative(noisy)
    assert np.allclose(near, near.T, rtol=0, atol=1e-12)
    assert np.linalg.eigvalsh(near).min() > -1e-10
    # Nearest: the distance is that of the negative eigenvalues, and no more.
    negative = np.minimum(np.linalg.eigvalsh(noisy), 0.0)
    assert np.linalg.norm(near - noisy) == pytest.approx(np.linalg.norm(negative), abs=1e-10)
    assert np.allclose(nonnegative(near), near, rtol=0, atol=1e-9)


def _rounds(count=400, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((count, 1))
    return points, np.sin(5 * points[:, 0]) / 3 + 0.1 * rng.standard_normal(count)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("predicted", [False, True], ids=["fixed", "residual"])
def test_next_to_no_noise_gives_the_exact_posterior(name, predicted):
    points, rewards = _rounds()
    phi = FEATURES(points)
    prediction = predicted * np.random.default_rng(1).standard_normal(M) / 8
    encoding = ENCODINGS[name].fit(FEATURES, Residual(prediction, 50.0), 1e6, 0.5, 1000)
    total = encoding.encode(FEATURES, points, rewards).sum(axis=0)
    if name == "announced":
        total = total + encoding.announce(FEATURES, points).sum(axis=0)
    found = read(
        FEATURES,
        encoding,
        total,
        asks=len(points),
        points=points,
        blocks=(Block.of(points, len(points)),),
    )
    residuals = rewards - phi @ prediction
    assert found.spread == pytest.approx(np.square(residuals).sum(), rel=1e-3)
    moved = np.random.default_rng(2).standard_normal(M) / 8
    squares = np.square(residuals - phi @ moved).sum()
    if name != "reward":  # which knows sums along directions only
        assert found.residual_square(moved) == pytest.approx(squares, rel=1e-3)
    prior = Posterior.prior(FEATURES, 0.25)
    learnt = observe(prior, encoding, found, Clipped(1.0, 0.01))
    exact = prior.absorb(phi.T @ phi, phi.T @ rewards, noise_variance=0.01)
    x = np.linspace(0, 1, 50)[:, None]
    assert np.allclose(learnt.mean(x), exact.mean(x), rtol=0, atol=1e-4)
    assert np.allclose(learnt.variance(x), exact.variance(x), rtol=1e-2, atol=0)


@pytest.mark.parametrize("count", [M - 1, M], ids=["fewer", "as many"])
def test_along_directions_a_right_prediction_takes_its_own_square_from_the_spread(count):
    """As many directions as features are still other directions."""
    rng = np.random.default_rng(3)
    points, theta = rng.random((2000, 1)), rng.standard_normal(M) / 8
    phi = FEATURES(points)
    rewards = phi @ theta + 0.1 * rng.standard_normal(len(points))
    encoding = ENCODINGS["reward"].fit(FEATURES, Residual(np.zeros(M), 50.0), 1e6, 1.0, 3000)
    rotation = np.linalg.qr(rng.standard_normal((M, M)))[0][:count]
    encoding = replace(encoding, directions=rotation)
    total = encoding.encode(FEATURES, points, rewards).sum(axis=0)
    found = read(
        FEATURES,
        encoding,
        total,
        asks=len(points),
        points=points,
        blocks=(Block.of(points, len(points)),),
    )
    # 2,000 squares of variance 0.01, and twice the noise along f: within a quarter, by 5 errors.
    assert found.residual_square(theta) == pytest.approx(20.0, rel=0.25)
    assert found.residual_square(np.zeros(M)) == found.spread


@pytest.mark.parametrize("name", ENCODINGS)
def test_more_budget_means_less_expected_error(name):
    prior = Posterior.prior(FEATURES, 0.25)
    residual = Residual(np.zeros(M), 1.0)
    points = np.linspace(0, 1, 64)[:, None]
    errors = []
    for mu in (1e-4, 0.01, 0.1, 0.5, 2.0, 10.0, 1e3):
        encoding = ENCODINGS[name].fit(FEATURES, residual, mu, 0.5, 1000)
        after = expected_posterior(prior, encoding, 500, Clipped(1.0, 0.04), points)
        errors.append(after.variance(points).mean())
    assert errors == sorted(errors, reverse=True)
    assert errors[0] == pytest.approx(0.25, rel=0.05)  # nothing learnt: the prior
    assert errors[-1] < 0.01 * errors[0]


@pytest.mark.parametrize("name", ENCODINGS)
def test_without_noise_the_expected_posterior_is_that_of_spread_out_asks(name):
    prior = Posterior.prior(FEATURES, 0.25)
    points = np.linspace(0, 1, 64)[:, None]
    encoding = ENCODINGS[name].fit(FEATURES, Residual(np.zeros(M), 1.0), None, 1.0, 1000)
    after = expected_posterior(prior, encoding, 500, Clipped(1.0, 0.04), points)
    phi = FEATURES(points)
    gram = 500 * phi.T @ phi / len(points)
    exact = prior.absorb(gram, np.zeros(M), noise_variance=0.04)
    assert np.allclose(after.variance(points), exact.variance(points), rtol=1e-4, atol=0)


@pytest.mark.parametrize("name", ["gram", "fourier"])
def test_pure_noise_is_not_taken_for_evidence(name):
    """An epoch in which next to nothing can be seen leaves the prior as it was."""
    encoding = ENCODINGS[name].fit(FEATURES, Residual(np.zeros(M), 1.0), 0.001, 0.5, 1000)
    points = np.linspace(0, 1, 64)[:, None]
    stds = encoding.stds(FEATURES)
    total = mechanism.noisy(np.zeros(stds.shape, np.int64), stds, bits=Seeded(Simulation(1), 0))
    found = read(FEATURES, encoding, total, asks=100, points=points)
    after = observe(Posterior.prior(FEATURES, 0.25), encoding, found, Clipped(1.0, 0.04))
    assert after.variance(points).min() > 0.2
    assert np.abs(after.mean(points)).max() < 0.25


# -- calibration


def _standardized(plan, theta, seed, epochs):
    """((posterior mean - f) / posterior std)^2, on average over the domain, after each epoch."""
    rng = np.random.default_rng(seed)
    belief, previous, asked, found = Belief.before(plan), GENESIS, 0, []
    looked_at = LookedAt(plan)
    for number in range(epochs):
        epoch = open_epoch(plan, belief, number=number, first=asked, previous=previous)
        if plan.decisions == "box":
            points = np.stack([epoch.policy.from_menu(i) for i in range(epoch.length)])
        else:
            points = rng.random((epoch.length, 1))
        noise = np.sqrt(plan.noise_variance) * rng.standard_normal(len(points))
        rewards = np.clip(plan.map(points) @ theta + noise, -1.0, 1.0)
        sums = Sums(epoch.encoding.size(plan.map))
        sums.add(looked_at.sums(epoch, points, rewards))
        bits = Seeded(Simulation(seed), number)
        release = mechanism.release(plan, epoch, sums, asks=epoch.length, bits=bits)
        belief = learn(plan, belief, epoch, release)
        posterior = belief.posterior
        previous, asked = release.digest, epoch.end
        x = rng.random((50, 1))
        errors = posterior.mean(x) - plan.map(x) @ theta
        found.append(float(np.mean(errors**2 / posterior.variance(x))))
    return found


def _fixed_scales(**parts):
    return Plan(
        domain=Box({"x": (0, 1)}),
        kernel=SquaredExponential(0.2),
        rewards=(-1.0, 1.0),
        signal_std=0.25,
        noise_std=0.2,
        **parts,
    )


def _over_the_prior(plan, *, seed, epochs):
    """Its mean after each epoch, over 60 functions from the prior."""
    draws = np.random.default_rng(seed).standard_normal((60, plan.map.dimension))
    scaled = np.sqrt(plan.signal_variance) * draws
    found = [_standardized(plan, theta, number, epochs) for number, theta in enumerate(scaled)]
    return np.mean(found, axis=0)


def test_looking_again_leaves_standardized_errors_of_variance_near_one():
    """Seven epochs, each looked at four times. Fixed seeds, so no false alarms; within 0.3 of 1.

    There is more noise in rewards than in releases: counted anew in each look, it would show.
    """
    plan = _fixed_scales(privacy=JointDP(8.0, 1e-3), schedule=Schedule(40, 1.3, second=60))
    assert len(plan.looks) == 4
    means = _over_the_prior(plan, seed=11, epochs=7)
    print(f"four looks: mean squared standardized error: {means.round(2).tolist()}")
    assert np.abs(means - 1.0).max() < 0.3


@pytest.mark.parametrize("name", ["fourier", "reward"])
def test_standardized_errors_have_variance_near_one(name):
    """Functions from the prior, two epochs. Fixed seeds, so no false alarms; within 0.4 of 1."""
    plan = _fixed_scales(
        privacy=JointDP(1.0, 1e-3),
        decisions="box" if name == "reward" else "candidates",
        encoding=name,
        schedule=Schedule(200, 3.0),
    )
    means = _over_the_prior(plan, seed=7, epochs=2)
    print(f"{name}: mean squared standardized error after each epoch: {means.round(2).tolist()}")
    assert np.abs(means - 1.0).max() < 0.4
