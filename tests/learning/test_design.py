import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.learning.design import TOLERANCE, g_optimal, most_rows, rounded, thinned, turn


@pytest.mark.parametrize(("rows", "rank"), [(30, 1), (50, 3), (400, 8), (9, 9), (300, 20)])
def test_every_lever_is_within_the_tolerance_of_the_best_possible(rows, rank):
    psi = np.random.default_rng(rows).standard_normal((rows, rank))
    design = g_optimal(psi)
    spread = (psi[design.rows] * design.weights[:, None]).T @ psi[design.rows]
    levers = np.einsum("nr,rs,ns->n", psi, np.linalg.inv(spread), psi)
    assert design.weights.sum() == pytest.approx(1.0)
    assert levers.max() == pytest.approx(design.lever)
    assert rank * (1 - 1e-9) <= levers.max() <= (1 + TOLERANCE) * rank
    assert levers[design.rows].min() >= (1 - TOLERANCE) * rank
    assert len(design.rows) <= most_rows(rank)


def test_rows_that_depend_on_each_other_are_refused():
    with pytest.raises((InvalidArgument, np.linalg.LinAlgError)):
        g_optimal(np.ones((5, 2)))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_thinning_changes_nothing_but_the_number_of_rows(rank):
    rng = np.random.default_rng(rank)
    psi, weights = rng.standard_normal((40, rank)), rng.dirichlet(np.ones(40))
    rows, kept = thinned(psi, np.arange(40), weights)
    assert len(rows) <= most_rows(rank)
    assert (kept > 0).all()
    assert kept.sum() == pytest.approx(1.0)
    before = (psi * weights[:, None]).T @ psi
    np.testing.assert_allclose((psi[rows] * kept[:, None]).T @ psi[rows], before, rtol=1e-8)


@given(
    shares=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=30),
    asks=st.integers(1, 5000),
)
def test_counts_add_up_exactly_and_none_falls_short(shares, asks):
    weights = np.array(shares) / np.sum(shares)
    counts = rounded(weights, asks)
    assert counts.sum() == asks
    assert (counts >= (asks - len(weights)) * weights * (1 - 1e-9)).all()
    assert (counts >= 0).all()


@given(counts=st.lists(st.integers(0, 50), min_size=1, max_size=20).filter(any))
def test_asks_give_every_row_its_count(counts):
    given_to = turn(np.array(counts), np.arange(sum(counts)))
    assert np.bincount(given_to, minlength=len(counts)).tolist() == counts


def test_the_first_asks_are_spread_by_their_shares_too():
    counts = np.array([5000, 3000, 1500, 500])
    first = np.bincount(turn(counts, np.arange(1000)), minlength=4)
    assert np.abs(first - counts / 10).max() <= 5


def test_turns_do_not_overflow_in_the_longest_epochs():
    counts = np.array([2**31, 2**31 - 1])
    assert set(turn(counts, np.array([0, 2**32 - 2, 2**32 - 1])).tolist()) <= {0, 1}
