"""Residuals as points of an interval: private whatever they are, unbiased, h^2 included."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.features.choose import choose
from discreet.features.kernels import Linear
from discreet.privacy.cap import Cap, exp_below
from discreet.privacy.clipping import Residual
from discreet.privacy.interval import IntervalEncoding, best_window, window_variance

FEATURES = choose(Linear(), widths=np.ones(2))
M = FEATURES.dimension
COINS = st.integers(0, (1 << 62) - 1)


def encoding(epsilon=2.0, *, size=64, width=1.0, rows=1):
    residual = Residual(np.zeros(M), width)
    return IntervalEncoding.fit(residual, rows, Fraction(epsilon), size=size)


def sent(found, h, coin):
    """The index at each place, for this residual and coin."""
    n = found.cap.size
    return found.indices(
        FEATURES,
        np.zeros((n, 2)),
        np.full(n, h),
        coins=np.full(n, coin),
        places=np.arange(n),
    )


def law_of(found, h, coin):
    shares = [found.cap.inside] * found.cap.nearest
    shares += [found.cap.outside] * (found.cap.size - found.cap.nearest)
    return dict(zip(sent(found, h, coin).tolist(), shares, strict=True))


@given(st.floats(), st.floats(), COINS, COINS)
def test_any_two_residuals_give_every_index_probabilities_within_the_factor(a, b, coin, other):
    found = encoding()
    first, second = law_of(found, a, coin), law_of(found, b, other)
    assert len(first) == len(second) == found.cap.size
    ratio = max(max(first[i] / second[i], second[i] / first[i]) for i in first)
    assert ratio <= exp_below(Fraction(2))


def test_the_ends_of_the_width_use_the_promise_up():
    found = encoding()
    low, high = law_of(found, -1.0, 0), law_of(found, 1.0, 0)
    ratio = max(low[i] / high[i] for i in low)
    assert exp_below(Fraction(2)) * (1 - Fraction(1, 1 << 50)) < ratio <= exp_below(Fraction(2))


@pytest.mark.parametrize("h", [-0.5, -0.13, 0.0, 0.21, 0.5])
def test_one_report_tells_h_and_its_square_without_bias(h):
    """Exactly: every place and both roundings, weighed by their probabilities."""
    found = encoding(width=0.5)
    room = found.cap.size - found.cap.nearest
    exact = (h / 0.5 + 1) / 2 * room
    up = exact - np.floor(exact)
    cross = spread = square = 0.0
    for coin, chance in ((0, up), ((1 << 62) - 1, 1 - up)):
        for index, share in law_of(found, h, coin).items():
            sums = found.decode(found.statistics(np.array([index]), np.array([0])))
            weight = chance * float(share)
            cross += weight * sums.cross[0]
            spread += weight * sums.spread[0]
            square += weight * sums.cross[0] ** 2
    assert cross == pytest.approx(h, abs=1e-9)
    assert 0.0 <= spread - h * h + 1e-9 <= (0.5 / room) ** 2 + 1e-9
    rounding = up * (1 - up) * (2 * 0.5 / room) ** 2
    assert square - cross**2 == pytest.approx(found.variance(h), abs=2 * rounding + 1e-9)


def test_rows_of_the_menu_are_told_apart():
    found = encoding(rows=3)
    indices, rows = np.array([3, 9, 60, 11]), np.array([0, 2, 2, 0])
    whole = found.statistics(indices, rows)
    assert whole.size == found.size(FEATURES) == 9
    values = 2 * indices - 63
    assert whole.reshape(3, 3)[:, 0].tolist() == [2, 0, 2]
    assert whole.reshape(3, 3)[2].tolist() == [2, values[1:3].sum(), (values[1:3] ** 2).sum()]
    assert whole.reshape(3, 3)[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0, 8.0])
def test_no_other_k_tells_a_typical_residual_better(epsilon):
    best = best_window(Fraction(epsilon), 1 << 10)
    least = window_variance(best, 1 / 9)
    others = (Cap.of(Fraction(epsilon), 1 << 10, k) for k in range(1, 512, 7))
    assert all(window_variance(other, 1 / 9) >= least - 1e-9 for other in others)


def test_large_books_are_as_good_as_the_piecewise_mechanism():
    """Wang et al. (2019): at h = 0 and K = N / (e^(epsilon/2) + 1), (E + 3) / (3 (E - 1)^2)."""
    for epsilon in (1.0, 2.0, 4.0):
        grown = np.exp(epsilon / 2)
        cap = Cap.of(Fraction(epsilon), 1 << 16, round((1 << 16) / (grown + 1)))
        known = (grown + 3) / (3 * (grown - 1) ** 2)
        assert window_variance(cap, 0.0) == pytest.approx(known, rel=1e-3)


def test_without_rows_there_is_no_encoding():
    with pytest.raises(InvalidArgument, match="rows"):
        encoding(rows=0)
