"""Policies: the formula by brute force, the first of equals, and the same after storage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.domain.box import Box
from discreet.features.choose import choose
from discreet.features.kernels import SquaredExponential
from discreet.learning.policy import Policy, packed, unpacked
from discreet.storage import canonical

FEATURES = choose(SquaredExponential(0.3), widths=np.ones(2), error=1e-2)
M = FEATURES.dimension


def choose(policy, index, candidates):
    return policy.choose(FEATURES, np.array([index]), [candidates])[0]


def _policy(optimism=1.5, tilts=3, seed=0, menu=None):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((M, M))
    return Policy(
        tilts=rng.standard_normal((tilts, M)),
        packed_whitening=packed(np.linalg.inv(np.linalg.cholesky(root @ root.T / M + np.eye(M)))),
        optimism=optimism,
        menu=np.zeros((0, 2)) if menu is None else menu,
    )


@pytest.mark.parametrize("optimism", [0.0, 0.7, 5.0])
def test_the_chosen_candidate_maximises_the_upper_confidence_bound(optimism):
    policy = _policy(optimism)
    whitening = unpacked(policy.packed_whitening, M)
    covariance = whitening.T @ whitening
    rng = np.random.default_rng(1)
    for index in range(12):
        candidates = rng.random((30, 2))
        scores = [
            policy.tilts[index % 3] @ phi + optimism * np.sqrt(phi @ covariance @ phi)
            for phi in FEATURES(candidates)
        ]
        assert choose(policy, index, candidates) == int(np.argmax(scores))


def test_the_first_of_equal_candidates_is_chosen():
    rng = np.random.default_rng(2)
    for seed in range(60):
        policy = _policy(seed=seed)
        assert choose(policy, 0, np.tile(rng.random((1, 2)), (seed + 2, 1))) == 0


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(12)))
def test_the_order_of_candidates_does_not_change_the_best_one(order):
    policy, candidates = _policy(), np.random.default_rng(3).random((12, 2))
    best = candidates[choose(policy, 1, candidates)]
    shuffled = candidates[list(order)]
    assert np.array_equal(shuffled[choose(policy, 1, shuffled)], best)


def test_asks_take_the_tilts_in_turn():
    policy, candidates = _policy(optimism=0.0), np.random.default_rng(4).random((50, 2))
    chosen = [choose(policy, index, candidates) for index in range(9)]
    assert chosen[:3] == chosen[3:6] == chosen[6:]
    assert len(set(chosen[:3])) > 1


def test_the_menu_is_served_in_turn():
    menu = np.random.default_rng(5).random((3, 2))
    policy = Policy(np.zeros((0, M)), np.zeros(0), 0.0, menu)
    served = np.stack([policy.from_menu(index) for index in range(7)])
    assert np.array_equal(served, menu[[0, 1, 2, 0, 1, 2, 0]])


def test_searching_under_a_context_beats_candidates_with_that_context():
    domain = Box({"dose": (0, 1), "age": (0, 1)}, context=["age"])
    policy, age = _policy(), np.array([0.37])
    found = policy.search(FEATURES, np.array([2]), domain, age[None])[0][0]
    line = np.stack([np.linspace(0, 1, 500), np.full(500, age[0])], axis=1)
    assert found[1] == age[0]
    assert choose(policy, 2, np.concatenate([[found], line])) == 0


@given(st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_packing_keeps_every_entry(m, seed):
    lower = np.tril(np.random.default_rng(seed).standard_normal((m, m)))
    vector = packed(lower)
    assert vector.shape == (m * (m + 1) // 2,)
    assert np.array_equal(unpacked(vector, m), lower)
    assert np.array_equal(packed(unpacked(vector, m)), vector)


@pytest.mark.parametrize("menu", [np.zeros((0, 2)), np.random.default_rng(6).random((4, 2))])
def test_a_policy_survives_storage_bit_for_bit(menu):
    policy = _policy(menu=menu)
    data = canonical.encode(policy)
    again = canonical.decode(Policy, data)
    assert canonical.encode(again) == data
    for name in ("tilts", "packed_whitening", "menu"):
        assert getattr(again, name).tobytes() == getattr(policy, name).tobytes()
        assert getattr(again, name).shape == getattr(policy, name).shape
    assert again.optimism == policy.optimism
    candidates = np.random.default_rng(7).random((40, 2))
    for index in range(6):
        first, second = (choose(each, index, candidates) for each in (policy, again))
        assert first == second


def test_nobody_can_change_a_policy():
    policy = _policy()
    for name in ("tilts", "packed_whitening", "menu"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(policy, name)[:] = 0.0
