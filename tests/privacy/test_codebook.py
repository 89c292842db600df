"""Codebooks: private whatever is ranked, the same on every machine, and read without bias."""

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet.errors import InvalidArgument
from discreet.features.choose import choose
from discreet.features.kernels import Linear
from discreet.privacy.book import (
    BOOK_BITS,
    best_cap,
    book_seed,
    contraction,
    half_book,
    index_at,
    ranked,
)
from discreet.privacy.cap import Cap, exp_below
from discreet.privacy.clipping import Residual
from discreet.privacy.codebook import MOST_BOOK_DIRECTIONS, CodebookEncoding

ANY = st.floats(allow_nan=True, allow_infinity=True)
FEATURES = choose(Linear(), widths=np.ones(6))
M = FEATURES.dimension
#: Of the integers of one book.
DIGEST = "bf396dea8ed276c40f360a37c38a69eb65cc34c6c8d67c77cbb4a6649abd07ba"


def encoding(*, epsilon=2.0, size=64, r=3, lift=False, width=1.0, directions=None, m=M):
    along = np.eye(r, m) if directions is None else directions
    residual = Residual(np.zeros(m), width)
    return CodebookEncoding.fit(
        residual, along, Fraction(epsilon), book_seed("test"), lift=lift, size=size
    )


def law_of(found, vector):
    """The exact law of the index for this vector: a rational number an index."""
    cap = found.cap
    law = {}
    everywhere = found.nearest_to(np.tile(vector, (cap.size, 1)), np.arange(cap.size))
    for place, index in enumerate(everywhere.tolist()):
        law[index] = law.get(index, 0) + (cap.inside if place < cap.nearest else cap.outside)
    return law


def largest_ratio(first, second):
    assert first.keys() == second.keys()
    return max(max(first[i] / second[i], second[i] / first[i]) for i in first)


# -- exactness


@given(st.data())
@settings(max_examples=40)
def test_any_two_vectors_give_every_index_probabilities_within_the_factor(data):
    found = encoding(r=3)
    first, second = (law_of(found, data.draw(arrays(np.float64, 3, elements=ANY))) for _ in "ab")
    assert sum(first.values()) == 1
    assert len(first) == found.cap.size
    assert largest_ratio(first, second) <= exp_below(Fraction(2))


@pytest.mark.parametrize("value", [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0])
def test_ties_zeros_and_numbers_that_are_none_leave_a_cap_of_exactly_k(value):
    found = encoding(r=3)
    law = law_of(found, np.full(3, value))
    inside = [index for index, share in law.items() if share == found.cap.inside]
    assert len(inside) == found.cap.nearest
    assert len(law) == found.cap.size


def test_at_full_size_the_law_of_the_index_is_within_the_factor_on_the_integers_used():
    found = encoding(epsilon=4.0, size=1 << 14, r=8, m=8)
    rng = np.random.default_rng(0)
    laws = [law_of(found, v) for v in rng.standard_normal((2, len(found.directions)))]
    assert largest_ratio(*laws) <= exp_below(Fraction(4))


@given(arrays(np.float64, 3, elements=st.floats(-1.0, 1.0)), st.integers(0, 2))
@settings(max_examples=30)
def test_vectors_one_bit_apart_are_told_apart_by_no_more_than_the_factor(vector, which):
    found = encoding(r=3)
    other = vector.copy()
    other[which] = np.nextafter(vector[which], 2.0)
    assert largest_ratio(law_of(found, vector), law_of(found, other)) <= exp_below(Fraction(2))


@pytest.mark.parametrize(
    "book",
    [
        np.zeros((8, 2)),
        np.ones((8, 2)),
        np.full((8, 2), np.nan),
        np.full((8, 2), np.inf),
        np.vstack([np.full((4, 2), np.nan), np.eye(2), -np.eye(2)]),
    ],
)
@pytest.mark.parametrize("nearest", [1, 3, 8])
def test_a_hostile_book_leaves_every_index_possible_and_a_cap_of_k(book, nearest):
    with np.errstate(all="ignore"):
        order, scores = ranked(book, np.array([0.6, 0.8]), nearest)
    indices = [index_at(order, scores, nearest, place) for place in range(16)]
    assert sorted(indices) == list(range(16))


@pytest.mark.parametrize("lift", [False, True])
@pytest.mark.parametrize("scale", [0.0, 1e-200, 1e100, -1e100])
def test_hostile_directions_still_lead_to_an_index(lift, scale):
    found = encoding(r=3, lift=lift, directions=scale * np.eye(3, M))
    n = found.cap.size
    points, rewards = np.full((n, 6), 0.5), np.full(n, 0.9)
    sent = found.indices(
        FEATURES, points, rewards, coins=np.zeros(n, dtype=np.int64), places=np.arange(n)
    )
    assert sorted(sent.tolist()) == list(range(n))


def test_directions_that_see_nothing_send_a_fixed_direction_with_a_fair_sign():
    found = encoding(r=3, directions=np.zeros((3, M)))
    g, h = np.zeros((2, 3)), np.array([1.0, -1.0])
    half = 1 << 61
    for coin, sign in ((0, 1.0), (half, -1.0)):
        vectors = found.vectors(g, h, np.full(2, coin))
        assert vectors.tolist() == [[sign, 0.0, 0.0]] * 2
    lifted = encoding(r=3, lift=True, directions=np.zeros((3, M)))
    assert lifted.vectors(g, h, np.array([0, half])).tolist() == [[0, 0, 0, 1], [0, 0, 0, -1]]


# -- the book


@pytest.mark.parametrize("dimension", [1, 2, 8, 33])
def test_codewords_are_of_length_one_up_to_the_grid(dimension):
    integers, floats = half_book(book_seed("length"), dimension, 1 << 10)
    assert np.abs(np.linalg.norm(floats, axis=1) - 1.0).max() <= 2.0**-BOOK_BITS * 3
    assert np.array_equal(np.ldexp(integers.astype(float), -BOOK_BITS), floats)


def test_every_machine_makes_the_same_book():
    integers, _ = half_book("ab" * 32, 5, 256)
    digest = hashlib.sha256(integers.astype("<i8").tobytes()).hexdigest()
    assert digest == DIGEST


def test_another_seed_is_another_book():
    first, second = (half_book(book_seed(name), 4, 64)[0] for name in "ab")
    assert not np.array_equal(first, second)


def test_the_book_fills_the_sphere_evenly():
    """Second moments of N/2 = 8192 directions: five standard errors (false alarms below 1e-5)."""
    _, floats = half_book(book_seed("even"), 8, 1 << 14)
    moments = floats.T @ floats / len(floats)
    assert np.abs(moments - np.eye(8) / 8).max() < 5 * np.sqrt(2 / 8**2 / 8192)


# -- how many are near


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("dimension", [1, 2, 3, 8, 33])
def test_no_other_k_contracts_less(epsilon, dimension):
    size = 1 << 12
    best = best_cap(Fraction(epsilon), dimension, size)
    least = contraction(best, dimension)
    others = [Cap.of(Fraction(epsilon), size, k) for k in range(1, size // 2, 37)]
    assert all(contraction(other, dimension) <= least + 1e-6 for other in others)


@pytest.mark.parametrize(("r", "epsilon", "variance"), [(8, 1, 6.0), (8, 8, 0.20), (32, 4, 0.445)])
def test_the_contraction_is_that_of_real_caps(r, epsilon, variance):
    found = encoding(epsilon=epsilon, size=1 << 14, r=r, m=r, directions=np.eye(r))
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((12, r))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    real = np.mean([found.moments_of(v).first @ v for v in vectors])
    assert real == pytest.approx(found.contraction, rel=0.03)
    assert 1 / (r * found.contraction**2) == pytest.approx(variance, rel=0.02)


# -- reading


@pytest.mark.parametrize("lift", [False, True])
def test_expectations_are_exact_for_the_book_at_hand(lift):
    """Every place and every coin that matters, weighed by its probability."""
    found = encoding(epsilon=3.0, size=32, r=2, lift=lift)
    g, h = np.array([[0.6, 0.8]]), np.array([0.3])
    size, half = found.cap.size, 1 << 61
    shares = np.where(
        np.arange(size) < found.cap.nearest, float(found.cap.inside), float(found.cap.outside)
    )
    first, second = np.zeros(found.dimension), np.zeros((found.dimension,) * 2)
    up = 0.5 if lift else 0.65
    for coin, chance in ((0, up), (2 * half - 1, 1.0 - up)):
        vector = found.vectors(g, h, np.array([coin]))
        indices = found.nearest_to(np.tile(vector, (size, 1)), np.arange(size))
        words = np.ldexp(found.codewords(indices).astype(float), -BOOK_BITS)
        first += chance * shares @ words
        second += chance * (words.T * shares) @ words
    assert found.expected(g, h)[0] == pytest.approx(first, abs=1e-12)
    assert found.second(g, h)[0] == pytest.approx(second, abs=1e-12)


def test_without_lift_the_expectation_is_exactly_linear_in_the_residual():
    found = encoding(r=3)
    g = np.array([[0.6, 0.0, 0.8]])
    whole = found.expected(g, np.array([1.0]))[0]
    for h in (-1.0, -0.25, 0.0, 0.5):
        assert found.expected(g, np.array([h]))[0] == pytest.approx(h * whole, abs=1e-12)
    assert np.allclose(found.second(g, np.array([0.9])), found.second(g, np.array([-0.1])))


@pytest.mark.parametrize("lift", [False, True])
def test_a_release_decodes_to_the_sums_of_what_was_sent(lift):
    found = encoding(r=3, lift=lift)
    indices = np.array([0, 5, 63, 32, 5])
    words = np.ldexp(found.codewords(indices).astype(float), -BOOK_BITS)
    parts = [found.statistics(indices[i : i + 1], np.zeros(1, dtype=int)) for i in range(5)]
    sums = found.decode(np.sum(parts, axis=0))
    assert np.array_equal(sums.first, words.sum(axis=0))
    assert np.array_equal(sums.second, words.T @ words)
    assert np.array_equal(found.statistics(indices, np.zeros(5, dtype=int)), np.sum(parts, axis=0))
    assert sum(parts).size == found.size(FEATURES)


def test_codeword_n_half_on_is_the_opposite_one():
    found = encoding(r=3)
    both = found.codewords(np.array([7, 7 + 32]))
    assert np.array_equal(both[0], -both[1])


# -- what is refused


@pytest.mark.parametrize(
    "change",
    [
        {"directions": np.zeros((0, M))},
        {"directions": np.eye(MOST_BOOK_DIRECTIONS + 1, M)},
        {"directions": np.full((2, M), np.nan)},
        {"directions": np.eye(2, M + 1)},
        {"seed": "ab"},
        {"lift": 1},
        {"cap": Cap.of(Fraction(1), 64, 40)},
        {"cap": Cap.of(Fraction(1), 63, 4)},
    ],
)
def test_what_is_no_codebook_cannot_be_made(change):
    fine = encoding()
    names = ("residual", "cap", "directions", "seed", "lift")
    parts = {name: getattr(fine, name) for name in names}
    with pytest.raises(InvalidArgument):
        CodebookEncoding(**(parts | change))
