"""What every strategy of correlated noise does; a suite inherits it and says what C is.

`encoder(T)` is written down from the strategy's definition, B comes from streaming, and they have
to multiply to the matrix of prefix sums: neither is computed from the other.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument, Refused
from discreet.privacy.correlation import State, Strategy, multiplier
from discreet.storage import canonical

HORIZONS = [1, 2, 3, 7, 8, 9, 64, 100]
#: Suites inherit these tests, so one method runs for several classes: nothing is replayed.
FREELY = settings(
    max_examples=40,
    deadline=None,
    database=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,
    ],
)


def streamed(strategy, normals, horizon):
    """The noise of each prefix, one row of normals at a time."""
    state = State.start(strategy, size=normals.shape[1], horizon=horizon)
    rows = []
    for vector in normals:
        noise, state = strategy.advance(state, vector)
        rows.append(noise)
    return np.array(rows)


class NoiseContract:
    #: Whether a stream without end has a finite sensitivity.
    endless = False
    #: How many vectors may be kept after t releases.
    most_rows = staticmethod(lambda released: released)

    @pytest.fixture
    def strategy(self) -> Strategy:
        """The strategy under test."""
        raise NotImplementedError

    @staticmethod
    def encoder(strategy, horizon):
        """C, dense, from the definition."""
        raise NotImplementedError

    def decoder(self, strategy, horizon):
        """B, dense, by streaming unit vectors."""
        return streamed(strategy, np.eye(horizon), horizon)

    @pytest.mark.parametrize("horizon", HORIZONS)
    def test_the_factors_multiply_to_prefix_sums(self, strategy, horizon):
        product = self.decoder(strategy, horizon) @ self.encoder(strategy, horizon)
        np.testing.assert_allclose(product, np.tri(horizon), atol=1e-12)

    @pytest.mark.parametrize("horizon", HORIZONS)
    def test_nothing_looks_ahead_and_nothing_is_negative(self, strategy, horizon):
        """Lower-triangular factors allow adaptive rounds; several rounds need C >= 0."""
        C = self.encoder(strategy, horizon)
        assert (np.triu(C, 1) == 0.0).all()
        assert (C >= 0.0).all()
        assert (np.triu(self.decoder(strategy, horizon), 1) == 0.0).all()

    @pytest.mark.parametrize("horizon", HORIZONS)
    def test_streaming_is_the_dense_product(self, strategy, horizon):
        normals = np.random.default_rng(horizon).standard_normal((horizon, 3))
        B = np.tri(horizon) @ np.linalg.inv(self.encoder(strategy, horizon))
        np.testing.assert_allclose(streamed(strategy, normals, horizon), B @ normals, atol=1e-12)

    @pytest.mark.parametrize("horizon", HORIZONS)
    def test_the_sensitivity_is_the_longest_column(self, strategy, horizon):
        longest = np.linalg.norm(self.encoder(strategy, horizon), axis=0).max()
        assert strategy.sensitivity(horizon) == pytest.approx(longest, rel=1e-12)

    @pytest.mark.parametrize("horizon", HORIZONS)
    def test_stds_are_the_row_norms(self, strategy, horizon):
        rows = np.linalg.norm(self.decoder(strategy, horizon), axis=1)
        np.testing.assert_allclose(strategy.stds(horizon), rows, rtol=1e-12)

    def several(self, strategy, times, horizon):
        """What rounds of one user that enter with these releases cost: a sum of columns."""
        return np.linalg.norm(self.encoder(strategy, horizon)[:, list(times)].sum(axis=1))

    @FREELY
    @given(data=st.data())
    def test_several_rounds_cost_at_most_as_if_all_came_first(self, strategy, data):
        horizon = data.draw(st.integers(1, 40))
        times = data.draw(st.lists(st.integers(0, horizon - 1), min_size=1, max_size=6))
        cost = self.several(strategy, times, horizon)
        assert cost <= len(times) * strategy.sensitivity(horizon) * (1 + 1e-12)

    @FREELY
    @given(data=st.data())
    def test_no_directions_of_change_cost_more_than_the_plain_sum(self, strategy, data):
        times = data.draw(st.lists(st.integers(0, 19), min_size=1, max_size=5))
        seed = data.draw(st.integers(0, 2**32 - 1))
        changes = np.random.default_rng(seed).standard_normal((len(times), 3))
        changes /= np.linalg.norm(changes, axis=1, keepdims=True)
        moved = np.linalg.norm(self.encoder(strategy, 20)[:, times] @ changes)
        assert moved <= self.several(strategy, times, 20) * (1 + 1e-12)

    def test_the_first_releases_are_the_worst_ones_to_be_in(self, strategy):
        for horizon, k in itertools.product((5, 8, 13), (1, 2, 3, 4)):
            any_k = itertools.combinations(range(horizon), k)
            worst = max(self.several(strategy, times, horizon) for times in any_k)
            assert self.several(strategy, range(k), horizon) == pytest.approx(worst, rel=1e-12)

    def test_k_rounds_in_the_first_release_cost_k_times_as_much(self, strategy):
        assert self.several(strategy, [0] * 5, 33) == pytest.approx(5 * strategy.sensitivity(33))

    @FREELY
    @given(horizon=st.integers(1, 300), more=st.integers(0, 300))
    def test_a_longer_stream_never_costs_less(self, strategy, horizon, more):
        now, later = strategy.sensitivity(horizon), strategy.sensitivity(horizon + more)
        assert now <= later * (1 + 1e-12)
        np.testing.assert_allclose(
            strategy.stds(horizon + more)[:horizon], strategy.stds(horizon), rtol=1e-12
        )

    def test_noise_is_linear_in_its_normals(self, strategy):
        one, two = np.random.default_rng(1).standard_normal((2, 20, 2))
        both = streamed(strategy, 2.0 * one - two, 20)
        apart = 2.0 * streamed(strategy, one, 20) - streamed(strategy, two, 20)
        np.testing.assert_allclose(both, apart, atol=1e-12)

    def test_a_stream_without_end_is_paid_for_or_refused_with_advice(self, strategy):
        if self.endless:
            limit = strategy.sensitivity(None)
            assert limit >= strategy.sensitivity(10**6)
            assert State.start(strategy, size=1, horizon=None).horizon is None
            return
        for ask in (
            lambda: strategy.sensitivity(None),
            lambda: State.start(strategy, size=1, horizon=None),
        ):
            with pytest.raises(InvalidArgument, match=r"horizon.*BLT"):
                ask()

    def test_a_release_beyond_the_horizon_is_refused(self, strategy):
        state = State.start(strategy, size=1, horizon=2)
        for _ in range(2):
            _, state = strategy.advance(state, np.ones(1))
        with pytest.raises(Refused, match="2 releases"):
            strategy.advance(state, np.ones(1))

    def test_a_state_goes_through_the_codec_and_on_bit_for_bit(self, strategy):
        normals = np.random.default_rng(2).standard_normal((13, 3))
        state = State.start(strategy, size=3, horizon=13)
        for vector in normals[:6]:
            _, state = strategy.advance(state, vector)
        resumed = canonical.decode(State, canonical.encode(state))
        for vector in normals[6:]:
            ours, state = strategy.advance(state, vector)
            theirs, resumed = strategy.advance(resumed, vector)
            assert (ours == theirs).all()

    def test_a_strategy_goes_through_the_codec(self, strategy):
        assert canonical.decode(Strategy, canonical.encode(strategy)) == strategy

    def test_advancing_leaves_the_state_as_it_was(self, strategy):
        _, state = strategy.advance(State.start(strategy, size=2, horizon=9), np.ones(2))
        before = state.memory.copy()
        noise, after = strategy.advance(state, np.ones(2))
        kept = after.memory.copy()
        noise += 1.0  # the caller's own
        assert (state.memory == before).all()
        assert (after.memory == kept).all()
        with pytest.raises(ValueError, match="read-only"):
            after.memory[0] = 0.0

    def test_no_more_is_kept_than_promised(self, strategy):
        state = State.start(strategy, size=1, horizon=70)
        for _ in range(70):
            _, state = strategy.advance(state, np.ones(1))
            assert len(state.memory) <= self.most_rows(state.released)

    @pytest.mark.parametrize("normals", [np.ones(3), np.ones((1, 2)), np.array([1.0, math.nan])])
    def test_normals_that_do_not_fit_are_refused(self, strategy, normals):
        with pytest.raises(InvalidArgument, match="normals"):
            strategy.advance(State.start(strategy, size=2, horizon=5), normals)

    @pytest.mark.parametrize("horizon", [0, -1, 1.5, True, "8"])
    def test_a_horizon_is_a_count(self, strategy, horizon):
        for ask in (strategy.sensitivity, strategy.stds):
            with pytest.raises(InvalidArgument, match="horizon"):
                ask(horizon)

    def test_the_multiplier_costs_mu(self, strategy):
        """One Gaussian mechanism: mu = change * longest column / std."""
        std = multiplier(strategy, horizon=30, mu=0.7, change=1.3)
        moved = 1.3 * np.linalg.norm(self.encoder(strategy, 30), axis=0).max()
        assert moved / std == pytest.approx(0.7, rel=1e-12)
