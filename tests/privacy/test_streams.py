"""Correlated noise in integers: the three kinds, and a stream without end."""

import math

import numpy as np
import pytest
from tests.contracts.streams import StreamContract

from discreet.errors import InvalidArgument
from discreet.privacy.correlation import BLT, SquareRoot
from discreet.privacy.streams import MOST, USUAL, Stream


def doubling_error(releases: int) -> float:
    """The std of a prefix, for Delta = mu = 1, when the paper's doubling stands in for a horizon.

    Each period of 1, 2, 4, ... releases has a square root of its own, calibrated to its length, and
    a prefix sums the last releases of all periods before: their variances add up.

        sqrt(sum over periods of (sensitivity(L) std_L)^2)

    A person is in one period, so this costs mu once; what it costs is noise. A known horizon has
    3.27 at 1024 releases, and a BLT without end 3.47.

    """
    root, length, left, total = SquareRoot(), 1, releases, 0.0
    while left > 0:
        last = min(length, left)
        total += (root.sensitivity(length) * float(root.stds(last)[-1])) ** 2
        length, left = 2 * length, left - last
    return math.sqrt(total)


class TestTree(StreamContract):
    name = "tree"


class TestSquareRoot(StreamContract):
    name = "square root"


class TestBLT(StreamContract):
    name = "blt"


def test_a_blt_without_end_pays_for_any_number_of_releases():
    stream = Stream.without_end("blt", 1000)
    assert stream.endless
    assert stream.releases == 1000
    assert stream.norm >= stream.strategy.sensitivity(None)
    assert stream.norm == Stream.without_end("blt", 1000).norm
    assert stream.start(3).horizon is None
    assert Stream.without_end("blt", 10**9).releases == MOST


@pytest.mark.parametrize("name", ["tree", "square root"])
def test_other_strategies_have_no_finite_cost_without_end(name):
    with pytest.raises(InvalidArgument, match=r"horizon: expected a number of asks.*'blt'"):
        Stream.without_end(name, 1000)


def test_what_an_unknown_horizon_costs_in_noise():
    """The table of docs/decisions/0015: known, without end, and doubled, for Delta = mu = 1."""
    root, blt = SquareRoot(), BLT.fit(USUAL, endless=True)
    found = [
        (
            f"{root.sensitivity(t) * root.stds(t)[-1]:.2f}",
            f"{blt.sensitivity(None) * blt.stds(t)[-1]:.2f}",
            f"{doubling_error(t):.2f}",
        )
        for t in (64, 256, 1024, 4096, 10_000)
    ]
    assert found == [
        ("2.39", "2.99", "4.31"),
        ("2.83", "3.24", "5.62"),
        ("3.27", "3.47", "7.02"),
        ("3.71", "3.74", "8.53"),
        ("4.00", "4.18", "9.82"),
    ]


def test_doubling_is_what_independent_periods_add_up_to():
    root = SquareRoot()
    ends = [root.sensitivity(n) * root.stds(n)[-1] for n in (1, 2, 4)]
    assert doubling_error(7) == pytest.approx(np.linalg.norm(ends))
    assert doubling_error(1) == 1.0
    begun = root.sensitivity(8) * root.stds(2)[-1]
    assert doubling_error(9) == pytest.approx(np.linalg.norm([*ends, begun]))
