"""Bounds on regret, the rates of the corollaries, information and features."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument, OutOfReach
from discreet.features.choose import choose
from discreet.features.kernels import Additive, Matern, Polynomial, SquaredExponential
from discreet.learning.information import (
    GainRate,
    approximate_volume,
    gain_rate,
    information_gain,
    volume,
)
from discreet.learning.regret_bounds import crossover, prior_bound, regret_bound
from discreet.learning.theory import Assumptions, Spectrum, calibrated, width
from discreet.privacy.correlation import SquareRoot, Tree

WORLD = Assumptions(norm=1.0, noise=0.5)
CALM = Spectrum(shift=2.0, smallest=1.0, largest=3.0, kappa=0.5)


def unit_rows(rows, columns, seed):
    rng = np.random.Generator(np.random.Philox(seed))
    phi = rng.standard_normal((rows, columns))
    return phi / np.linalg.norm(phi, axis=1, keepdims=True)


def log_volume(phi, noise=1.0):
    return float(np.linalg.slogdet(np.eye(phi.shape[1]) + phi.T @ phi / noise)[1])


# -- the bound


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), rounds=st.integers(1, 60), floor=st.floats(1.0, 50.0))
def test_the_potential_of_any_actions_is_below_what_the_bound_takes(seed, rounds, floor):
    """sum of ||phi_t||^2 in V_t^-1 <= 2 log det <= 2 m ln(1 + T / (m floor)): the proof's step."""
    m, potential = 4, 0.0
    phi = unit_rows(rounds, m, seed)
    V = floor * np.eye(m)
    for row in phi:
        potential += row @ np.linalg.solve(V, row)
        V += np.outer(row, row)
    volume = log_volume(phi, floor)
    assert potential <= 2.0 * volume + 1e-9
    assert volume <= m * math.log1p(rounds / (m * floor)) + 1e-9


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), rounds=st.integers(1, 60))
def test_the_bound_before_data_is_above_the_one_after(seed, rounds):
    m = 4
    phi = unit_rows(rounds, m, seed)
    released = phi.T @ phi + CALM.largest * np.eye(m)  # at most this, in a calm spectrum
    V = released + WORLD.regularisation * np.eye(m)
    W = width(CALM, WORLD, rounds=rounds, log_determinant=np.linalg.slogdet(V)[1], side=m)
    after = regret_bound(W, WORLD, rounds=rounds, log_determinant=log_volume(phi, 2.0))
    assert after <= prior_bound(CALM, WORLD, rounds=rounds, dimension=m) * (1 + 1e-12)


def test_a_kernel_error_is_paid_for_in_every_round():
    rough = Assumptions(norm=2.0, noise=0.5, error=0.01)
    with_error, without = (
        regret_bound(1.0, world, rounds=100, log_determinant=1.0) for world in (rough, WORLD)
    )
    assert with_error - without == pytest.approx(2 * 100 * 2.0 * 0.01)


@given(scale=st.floats(0.1, 100.0), uniform=st.floats(0.01, 1.0))
def test_the_crossover_is_where_the_bound_first_beats_uniform_play(scale, uniform):
    def bound(rounds):
        return scale * math.sqrt(rounds)

    found = crossover(bound, uniform=uniform)
    assert bound(found) < uniform * found
    assert found == 1 or bound(found - 1) >= uniform * (found - 1)


def test_better_noise_crosses_earlier():
    def bound(strategy):
        def of(rounds):
            each = calibrated(strategy, releases=rounds, mu=1.0)
            spectrum = Spectrum.joint(strategy, each, dimension=20, releases=rounds, failure=0.05)
            return prior_bound(spectrum, WORLD, rounds=rounds, dimension=20)

        return of

    tree, root = (crossover(bound(s), uniform=0.5) for s in (Tree(), SquareRoot()))
    assert 10**5 < root < 0.6 * tree < 10**9


def test_a_bound_that_grows_with_every_round_never_crosses():
    with pytest.raises(OutOfReach, match="does not beat"):
        crossover(lambda rounds: 2.0 * rounds, uniform=1.0)


# -- rates


# -- information and features


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 5),
    rounds=st.integers(1, 4),
    noise=st.floats(0.05, 5.0),
)
def test_greedy_information_is_near_the_best_by_brute_force(seed, rows, rounds, noise):
    phi = unit_rows(rows, 3, seed)
    found = information_gain(phi, rounds=rounds, noise_variance=noise)
    assert found.gain == pytest.approx(log_volume(phi[list(found.chosen)], noise) / 2, abs=1e-9)
    best = max(
        log_volume(phi[list(some)], noise) / 2
        for some in itertools.combinations_with_replacement(range(rows), rounds)
    )
    assert (1 - math.exp(-1)) * best <= found.gain + 1e-12 <= best + 1e-9
    assert best <= found.at_most


def test_information_of_many_rounds_stays_exact():
    phi = unit_rows(200, 10, 3)
    found = information_gain(phi, rounds=500, noise_variance=0.1)
    assert len(found.chosen) == 500
    assert found.gain == pytest.approx(log_volume(phi[list(found.chosen)], 0.1) / 2, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (
            lambda: prior_bound(
                Spectrum(0.2, 0.1, 0.3, 1.0),
                Assumptions(norm=1.0, noise=1.0, regularisation=0.1),
                rounds=5,
                dimension=2,
            ),
            "spectrum",
        ),
        (lambda: crossover(math.sqrt, uniform=0.0), "uniform"),
        (lambda: information_gain(np.ones(3), rounds=1, noise_variance=1.0), "phi"),
        (lambda: information_gain(np.eye(3), rounds=0, noise_variance=1.0), "rounds"),
        (lambda: information_gain(np.eye(3), rounds=1, noise_variance=0.0), "noise_variance"),
    ],
)
def test_what_makes_no_sense_is_refused(call, argument):
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert caught.value.argument == argument


# -- volumes


MAPS = {
    "one coordinate": choose(SquaredExponential(0.3), widths=np.ones(1), error=1e-4),
    "two": choose(SquaredExponential(0.5), widths=np.ones(2), error=1e-3),
    "Matern": choose(Matern(1.5, 0.4), widths=np.ones(1), error=3e-2),
    "a sum": choose(Additive.over(SquaredExponential(0.4), 2), widths=np.ones(2), error=1e-2),
    "a polynomial": choose(Polynomial(3), widths=np.ones(2)),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("floor", [1.0, 40.0])
def test_no_actions_have_more_volume_than_said(name, floor):
    """Greedy actions, and actions all alike or spread evenly."""
    features = MAPS[name]
    rng = np.random.Generator(np.random.Philox(8))
    phi = features(rng.random((300, features.inputs)))
    for rounds in (1, 30, 300):
        said = volume(features, rounds, floor)
        greedy = information_gain(phi, rounds=rounds, noise_variance=floor)
        assert log_volume(phi[:rounds], floor) <= said * (1 + 1e-12)
        assert 2.0 * greedy.gain <= said * (1 + 1e-12)
        assert said <= features.dimension * math.log1p(rounds / (features.dimension * floor)) + 1e-9


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), rounds=st.integers(1, 40), floor=st.floats(1.0, 30.0))
def test_an_approximate_kernel_adds_at_most_what_concavity_allows(seed, rounds, floor):
    kernel = SquaredExponential(0.3)
    rough = choose(kernel, widths=np.ones(1), error=0.05)
    x = np.random.Generator(np.random.Philox(seed)).random((rounds, 1))
    gain = np.linalg.slogdet(np.eye(rounds) + kernel(x, x) / floor)[1] / 2
    said = approximate_volume(gain, rounds=rounds, error=rough.error_bound, floor=floor)
    assert log_volume(rough(x), floor) <= said + 1e-9


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), rounds=st.integers(1, 200), floor=st.floats(1.0, 100.0))
def test_a_kernel_error_moves_an_estimate_by_at_most_either_form(seed, rounds, floor):
    rng = np.random.Generator(np.random.Philox(seed))
    phi, error = unit_rows(rounds, 5, seed), rng.choice([-1.0, 1.0], rounds)
    V = phi.T @ phi + floor * np.eye(5)
    moved = phi.T @ error
    length = math.sqrt(moved @ np.linalg.solve(V, moved))
    assert length <= min(rounds / math.sqrt(floor), math.sqrt(rounds)) + 1e-9


def test_the_width_takes_the_smaller_form_and_the_smaller_volume():
    rough = Assumptions(norm=1.0, noise=0.0, error=0.01)
    short, long = (width(CALM, rough, rounds=t, log_determinant=0.0, side=1) for t in (1, 10_000))
    plain = width(CALM, WORLD, rounds=1, log_determinant=0.0, side=1)
    assert short == pytest.approx(2.5 + 0.01 / math.sqrt(2.0))
    assert long == pytest.approx(2.5 + 1.0)
    wide = width(CALM, WORLD, rounds=1, log_determinant=50.0, side=1)
    assert width(CALM, WORLD, rounds=1, log_determinant=50.0, side=1, volume=3.0) < wide
    assert plain <= wide


def test_rates_of_information():
    assert gain_rate(SquaredExponential(0.2), 2) == GainRate(0.0, 3.0)
    assert gain_rate(Matern(1.5), 1) == GainRate(0.25, 0.75)
    assert gain_rate(Polynomial(3), 4).power == 0.0
    with pytest.raises(InvalidArgument, match="one kernel"):
        gain_rate(Additive.over(Matern(1.5), 2), 2)
