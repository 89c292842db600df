"""The choice of an index: its probabilities as rational numbers, against e^epsilon from outside."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.privacy.cap import LARGEST_EPSILON, SMALLEST_EPSILON, THRESHOLD_BITS, Cap, exp_below

EPSILONS = st.floats(2.0**-20, 40.0).map(Fraction)


def exp_within(epsilon):
    """Rational numbers below and above e^epsilon, by another library's exponential."""
    with localcontext() as context:
        context.prec = 80
        value = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        hair = value * Decimal(10) ** -70
        return Fraction(value - hair), Fraction(value + hair)


@given(EPSILONS)
def test_the_rational_number_is_below_the_exponential_and_hardly(epsilon):
    low, high = exp_within(epsilon)
    assert exp_below(epsilon) < high
    assert exp_below(epsilon) > low * (1 - Fraction(1, 1 << 170))


@given(EPSILONS, st.integers(2, 1 << 20), st.data())
def test_no_index_is_likelier_by_more_than_the_factor_as_rational_numbers(epsilon, size, data):
    nearest = data.draw(st.integers(1, size - 1))
    try:
        cap = Cap.of(epsilon, size, nearest)
    except InvalidArgument:
        assert epsilon * size < 1 or nearest * 2**62 < size or epsilon > 20
        return
    low, _ = exp_within(epsilon)
    assert cap.inside <= low * cap.outside  # not even a hair
    assert cap.outside <= low * cap.inside
    assert nearest * cap.inside + (size - nearest) * cap.outside == 1
    assert cap.is_within(epsilon)


@given(EPSILONS, st.integers(2, 1 << 14), st.data())
def test_the_threshold_is_the_largest_that_keeps_the_factor(epsilon, size, data):
    cap = Cap.of(epsilon, size, data.draw(st.integers(1, size - 1)))
    if cap.threshold + 1 < 1 << THRESHOLD_BITS:
        more = Cap(cap.size, cap.nearest, cap.threshold + 1)
        assert not more.is_within(epsilon)


def test_odds_that_are_too_large_or_a_smaller_cap_are_not_within_the_promise():
    cap = Cap.of(Fraction(2), 1 << 14, 3_800)
    odds = cap.share / (1 - cap.share) * Fraction(10_001, 10_000)
    assert not Cap(cap.size, cap.nearest, int(odds / (1 + odds) * 2**62)).is_within(Fraction(2))
    assert not Cap(cap.size, cap.nearest - 1, cap.threshold).is_within(Fraction(2))


def test_a_cap_that_is_less_likely_than_the_rest_is_held_to_the_factor_too():
    unlikely = Cap(4, 2, 1)
    assert unlikely.inside < unlikely.outside
    assert not unlikely.is_within(Fraction(10))


@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON / 2, 2 * LARGEST_EPSILON])
def test_an_epsilon_that_a_threshold_cannot_keep_is_refused(epsilon):
    with pytest.raises(InvalidArgument, match="epsilon"):
        Cap.of(Fraction(epsilon), 64, 8)


@pytest.mark.parametrize(
    ("size", "nearest", "threshold"),
    [(1, 1, 1), (4, 0, 1), (4, 4, 1), (4, 2, 0), (4, 2, 1 << 62), (1 << 21, 2, 1), (4, True, 1)],
)
def test_what_is_no_cap_cannot_be_made(size, nearest, threshold):
    with pytest.raises(InvalidArgument):
        Cap(size, nearest, threshold)
