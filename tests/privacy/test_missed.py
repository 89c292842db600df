"""A cost that holds but for a small probability: what is known of a promise (epsilon, delta)."""

import math

import pytest

from discreet import JointDP, LocalDP, ShuffledDP, compose
from discreet.privacy.cost import GaussianPrivacy, MixedPrivacy, PurePrivacy


def test_a_shuffled_promise_costs_what_it_says():
    cost = ShuffledDP(1.0, 1e-6).cost
    assert cost == PurePrivacy(1.0, missed=1e-6)
    assert (cost.epsilon(1e-6), cost.delta(1.0), cost.least_delta) == (1.0, 1e-6, 1e-6)
    assert cost.epsilon(1e-7) == math.inf
    assert 0.0 < cost.epsilon(0.1) < 1.0


def test_what_is_missed_adds_up_over_studies():
    both = compose([ShuffledDP(1.0, 1e-6).cost, ShuffledDP(0.5, 1e-7).cost])
    assert both.total == 1.5
    assert both.missed == pytest.approx(1.1e-6)
    pure = compose([ShuffledDP(1.0, 1e-6).cost, LocalDP(2.0).cost])
    assert pure == PurePrivacy(3.0, missed=1e-6)


def test_beside_gaussian_noise_both_deltas_are_needed():
    mixed = compose([JointDP(1.0, 1e-6).cost, ShuffledDP(0.5, 1e-7).cost])
    assert isinstance(mixed, MixedPrivacy)
    assert mixed.epsilon(1.1e-6) == pytest.approx(1.5)
    assert mixed.delta(1.5) == pytest.approx(1.1e-6)
    assert mixed.epsilon(1e-7) == math.inf
    assert mixed.least_delta == pytest.approx(1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 1.7, 2.5, 4.0])
def test_epsilon_and_delta_of_a_mixed_cost_agree(epsilon):
    mixed = MixedPrivacy(GaussianPrivacy(0.4), PurePrivacy(1.5, missed=1e-3))
    delta = mixed.delta(epsilon)
    assert mixed.epsilon(delta) <= epsilon + 1e-9
    assert mixed.delta(mixed.epsilon(delta)) <= delta + 1e-9
