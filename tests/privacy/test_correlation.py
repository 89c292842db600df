"""Correlated noise: the four strategies, and the figures of the errata."""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import toeplitz
from scipy.special import comb
from tests.contracts.noise import NoiseContract, streamed

from discreet.errors import InvalidArgument
from discreet.privacy.correlation import BLT, Independent, SquareRoot, State, Tree, multiplier
from discreet.privacy.cost import GaussianPrivacy

#: The set of the errata, section 2, for 10^4 releases.
ERRATA_BLT = BLT(
    decays=(0.9999185498, 0.9987782597, 0.9905509694, 0.9312431336, 0.5845091332),
    scales=(0.0121295833, 0.0237307894, 0.0618299443, 0.1565140362, 0.2414870325),
)
#: Largest / root mean square std of a prefix for change = mu = 1 (errata, section 2).
ERRATA_STDS = [
    (Independent(), 1024, "32.00", "22.64"),
    (Independent(), 10_000, "100.00", "70.71"),
    (Independent(), 1 << 20, "1024.00", "724.08"),
    (Tree(), 1024, "10.49", "7.42"),
    (Tree(), 10_000, "13.49", "9.51"),
    (Tree(), 1 << 20, "20.49", "14.49"),
    (SquareRoot(), 1024, "3.273", "3.110"),
    (SquareRoot(), 10_000, "3.998", "3.836"),
    (SquareRoot(), 1 << 20, "5.479", "5.317"),
    ("BLT", 1024, "3.273", "3.110"),
    ("BLT", 10_000, "3.999", "3.836"),
    ("BLT", 1 << 20, "5.502", "5.336"),
]
#: epsilon, delta, and the smallest std of a node for T = 1024 and 10^4 (errata, section 1).
ERRATA_NODES = [
    (0.1, 0.01, "63.3", "71.4"),
    (0.1, 0.1, "18.9", "21.3"),
    (1, 0.01, "12.5", "14.1"),
    (1, 0.1, "7.2", "8.13"),
    (10, 0.01, "2.32", "2.62"),
    (10, 0.1, "1.87", "2.11"),
]


class TestIndependent(NoiseContract):
    endless = True
    most_rows = staticmethod(lambda released: 1)

    @pytest.fixture
    def strategy(self):
        return Independent()

    @staticmethod
    def encoder(strategy, horizon):
        return np.eye(horizon)


class TestTree(NoiseContract):
    most_rows = staticmethod(lambda released: math.floor(math.log2(released)) + 1)

    @pytest.fixture
    def strategy(self):
        return Tree()

    @staticmethod
    def encoder(strategy, horizon):
        C = np.zeros((horizon, horizon))
        for t in range(1, horizon + 1):
            size = max(2**j for j in range(t.bit_length()) if t % 2**j == 0)
            C[t - 1, t - size : t] = 1.0
        return C


class TestSquareRoot(NoiseContract):
    @pytest.fixture
    def strategy(self):
        return SquareRoot()

    @staticmethod
    def encoder(strategy, horizon):
        k = np.arange(horizon)
        return np.tril(toeplitz(comb(2 * k, k) / 4.0**k))


class TestBLT(NoiseContract):
    endless = True
    most_rows = staticmethod(lambda released: 6)

    @pytest.fixture
    def strategy(self):
        return ERRATA_BLT

    @staticmethod
    def encoder(strategy, horizon):
        pairs = list(zip(strategy.decays, strategy.scales, strict=True))
        column = [1.0] + [sum(w * d**k for d, w in pairs) for k in range(horizon - 1)]
        return np.tril(toeplitz(column))


class TestBLTWithOneBuffer(TestBLT):
    """A buffer so strong that its inverse changes sign."""

    @pytest.fixture
    def strategy(self):
        return BLT(decays=(0.3,), scales=(1.0,))


def errors(strategy, horizon):
    return strategy.sensitivity(horizon) * strategy.stds(horizon)


@pytest.mark.parametrize(("strategy", "horizon", "largest", "mean"), ERRATA_STDS)
def test_the_stds_of_the_errata_are_reproduced(strategy, horizon, largest, mean):
    strategy = BLT.fit(horizon) if strategy == "BLT" else strategy
    found = errors(strategy, horizon)
    digits = len(largest.partition(".")[2])
    assert f"{found.max():.{digits}f}" == largest
    assert f"{math.sqrt(np.mean(found**2)):.{digits}f}" == mean


@pytest.mark.parametrize(("epsilon", "delta", "short", "long"), ERRATA_NODES)
def test_the_node_stds_of_the_errata_are_reproduced(epsilon, delta, short, long):
    mu = GaussianPrivacy.of(epsilon, delta).mu
    for horizon, std in ((1024, short), (10_000, long)):
        assert f"{multiplier(Tree(), horizon=horizon, mu=mu, change=2.0):.3g}" == std


@pytest.mark.parametrize(("horizon", "within"), [(1024, 0.01), (10_000, 0.01), (1 << 20, 0.02)])
def test_a_fitted_blt_is_nearly_the_square_root(horizon, within):
    best = errors(SquareRoot(), horizon)[-1]
    assert errors(BLT.fit(horizon), horizon)[-1] < (1 + within) * best


def test_the_endless_stream_of_the_errata_costs_what_it_says():
    limit = ERRATA_BLT.sensitivity(None)
    assert f"{limit:.5f}" == "2.04305"
    assert f"{limit * ERRATA_BLT.stds(10_000)[-1]:.5f}" == "4.08637"
    dense = np.linalg.norm(ERRATA_BLT.coefficients(1_000_000))
    assert limit == pytest.approx(dense, rel=1e-9)


def test_an_endless_fit_costs_less_than_a_finite_one_that_goes_on():
    endless, finite = BLT.fit(10_000, endless=True), BLT.fit(10_000)
    both = [blt.sensitivity(None) * blt.stds(10_000)[-1] for blt in (endless, finite)]
    assert both[0] < 0.99 * both[1]


@settings(max_examples=40, deadline=None)
@given(data=st.data(), buffers=st.integers(1, 4))
def test_any_blt_streams_its_dense_product(data, buffers):
    numbers = st.lists(st.floats(0.001, 0.999), min_size=buffers, max_size=buffers)
    decays, weights = data.draw(numbers), np.array(data.draw(numbers))
    blt = BLT(tuple(decays), tuple((weights / max(1.0, 1.001 * weights.sum())).tolist()))
    B = np.tri(30) @ np.linalg.inv(TestBLT.encoder(blt, 30))
    np.testing.assert_allclose(streamed(blt, np.eye(30), 30), B, atol=1e-12)
    np.testing.assert_allclose(blt.stds(30), np.linalg.norm(B, axis=1), rtol=1e-9)


@settings(max_examples=15, deadline=None)
@given(horizon=st.integers(1, 10**9), buffers=st.integers(1, 6))
def test_every_fit_is_a_valid_blt_and_near_the_square_root(horizon, buffers):
    blt = BLT.fit(horizon, buffers=buffers)
    assert len(blt.decays) == buffers
    assert blt.decays == tuple(sorted(blt.decays, reverse=True))
    short = min(horizon, 5_000)
    assert np.isfinite(errors(blt, short)).all()
    if buffers >= 3 and horizon <= 5_000:
        assert errors(blt, short)[-1] <= 1.03 * errors(SquareRoot(), short)[-1]


def test_more_buffers_are_not_worse():
    costs = [errors(BLT.fit(1 << 14, buffers=n), 1 << 14)[-1] for n in (1, 2, 3, 4, 5)]
    assert all(more < fewer for fewer, more in itertools.pairwise(costs))


def test_a_million_releases_are_quick():
    """Seconds, where a dense factor would take terabytes: a generous alarm."""
    begun = time.process_time()
    for strategy in (Independent(), Tree(), SquareRoot(), ERRATA_BLT):
        assert len(strategy.stds(1 << 20)) == 1 << 20
        strategy.sensitivity(1 << 20)
    assert time.process_time() - begun < 10.0


def test_few_releases_cost_what_the_errata_says():
    for releases, std in ((1, "1.00"), (14, "1.90"), (100, "2.53"), (1000, "3.27")):
        assert f"{errors(SquareRoot(), releases)[-1]:.2f}" == std


@pytest.mark.parametrize(
    ("decays", "scales", "argument"),
    [
        ((), (), "scales"),
        ((0.5,), (0.1, 0.1), "scales"),
        ((1.0,), (0.1,), "decays"),
        ((0.0,), (0.1,), "decays"),
        ((0.5,), (0.0,), "scales"),
        ((0.5, 0.4), (0.6, 0.6), "scales"),
        ((math.nan,), (0.1,), "decays"),
    ],
)
def test_a_blt_outside_its_proof_is_refused(decays, scales, argument):
    with pytest.raises(InvalidArgument) as caught:
        BLT(decays, scales)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("released", "horizon", "memory"),
    [(-1, 5, np.zeros((1, 1))), (6, 5, np.zeros((1, 1))), (0, 5, np.zeros(3)), (0, 0, np.eye(2))],
)
def test_a_state_that_cannot_be_is_refused(released, horizon, memory):
    with pytest.raises(InvalidArgument):
        State(released, horizon, memory)


def test_a_state_of_another_strategy_is_refused():
    state = State.start(ERRATA_BLT, size=2, horizon=10)
    with pytest.raises(InvalidArgument, match="state of Tree"):
        Tree().advance(state, np.ones(2))


@pytest.mark.parametrize(("mu", "change"), [(0.0, 1.0), (1.0, 0.0), (math.inf, 1.0), (-1.0, 1.0)])
def test_a_multiplier_needs_a_change_and_a_budget(mu, change):
    with pytest.raises(InvalidArgument, match=r"mu|change"):
        multiplier(Tree(), horizon=10, mu=mu, change=change)
