"""Sums: the same bytes however the work is ordered, grouped or sharded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.trusted.sums import Sums


def test_sums_do_not_depend_on_order_or_grouping():
    rng = np.random.default_rng(0)
    users = rng.integers(-(2**52), 2**52, size=(40, 9))
    expected = users.sum(axis=0).tobytes()
    for _ in range(1000):
        order = rng.permutation(len(users))
        shards = [Sums(9) for _ in range(rng.integers(1, 8))]
        for user in order:
            shards[rng.integers(len(shards))].add(users[user])
        while len(shards) > 1:  # merge in any tree
            left = shards.pop(rng.integers(len(shards)))
            shards[rng.integers(len(shards))].add(left.total)
        assert shards[0].total.tobytes() == expected


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=50))
def test_sums_are_exact(values):
    sums = Sums(1)
    for value in values:
        sums.add(np.array([value]))
    assert sums.total.tolist() == [sum(values)]


def test_no_rounds_sum_to_zero():
    assert Sums(3).total.tolist() == [0, 0, 0]


def test_the_total_is_a_copy():
    sums = Sums(2)
    sums.total[:] = 7
    assert sums.total.tolist() == [0, 0]


@pytest.mark.parametrize(
    "integers",
    [
        np.zeros(2, dtype=np.int64),
        np.zeros(4, dtype=np.int64),
        np.zeros((1, 3), dtype=np.int64),
        np.array(0),
        np.zeros(3),
        np.zeros(3, dtype=np.int32),
        np.zeros(3, dtype=np.uint64),
        np.zeros(3, dtype=bool),
    ],
    ids=["short", "long", "matrix", "scalar", "float", "int32", "uint64", "bool"],
)
def test_other_shapes_and_types_are_refused_and_change_nothing(integers):
    sums = Sums(3)
    sums.add(np.array([1, 2, 3]))
    with pytest.raises(InvalidArgument, match="integers"):
        sums.add(integers)
    assert sums.total.tolist() == [1, 2, 3]


def test_shards_of_another_size_are_refused():
    with pytest.raises(InvalidArgument):
        Sums(3).add(Sums(1).total)
