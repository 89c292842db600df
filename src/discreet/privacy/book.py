"""Public codebooks: N unit vectors, made of integers alone out of a public seed."""

import hashlib
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import betaincinv, betaln

from discreet.arrays import Floats, Indices, Integers
from discreet.privacy.cap import Cap, check_level, exp_below

#: A codeword is a vector of multiples of 2^-14, so the products of two, over 2^34 reports, fit 62
#: bits: sums are exact.
BOOK_BITS = 14
#: Codewords of a book, unless a plan says otherwise: an index of 14 bits.
CODEWORDS = 1 << 14
#: A codebook has no more dimensions: one for each direction, and the lift.
MOST_DIMENSIONS = 33
#: Uniform integers that are added up for one normal one: four words of the generator.
_SUMMED, _WORDS = 16, 4


def book_seed(*digests: str) -> str:
    """The seed of an epoch's book, from public digests: of the plan, and of the release before.

    >>> book_seed("ab" * 32)[:8]
    '31fc6678'
    """
    return hashlib.sha256("".join(("codebook", *digests)).encode()).hexdigest()


@lru_cache(maxsize=4)
def half_book(seed: str, dimension: int, size: int) -> tuple[Integers, Floats]:
    """Codewords 0 .. N/2 - 1 in integers, and the same as floats of length about 1.

    Codeword N/2 + i is minus codeword i: the book is *antipodal*, so its sum is 0, and what a cap
    and the cap opposite say is exactly opposite.

    A coordinate is a sum of 16 uniform integers, nearly normal, so directions are nearly uniform;
    then the vector is divided by its length and rounded. Sums of squares are exact, square roots
    and divisions are correctly rounded: every machine makes the same book.
    """
    half = size // 2
    key = hashlib.sha256(f"{seed} {dimension} {size}".encode()).digest()[:16]
    words = np.random.Philox(key=int.from_bytes(key, "big")).random_raw(half * dimension * _WORDS)
    parts = np.ascontiguousarray(words.astype("<u8", copy=False)).view("<u2")
    normal = 2 * parts.reshape(half * dimension, _SUMMED).sum(axis=1, dtype=np.int64)
    normal = (normal - _SUMMED * 0xFFFF).reshape(half, dimension)
    normal[~normal.any(axis=1), 0] = 1  # a direction, all the same
    lengths = np.sqrt(np.sum(normal * normal, axis=1).astype(np.float64))
    book = np.rint(np.ldexp(normal / lengths[:, None], BOOK_BITS)).astype(np.int64)
    floats = np.ldexp(book.astype(np.float64), -BOOK_BITS)
    for each in (book, floats):
        each.setflags(write=False)
    return book, floats


# -- how many are near


def contraction(cap: Cap, dimension: int) -> float:
    """c of E[u_index | v] = c v, for a book that fills the sphere evenly.

        c = (p / q - (1 - p) / (1 - q)) M(q),       q = K / N,  M(q) = E[<u, v>; u in the cap]

    for u uniform on the sphere. A report u_index / c has variance 1 / (r c^2) in a coordinate,
    averaged over directions.

    >>> round(contraction(Cap.of(Fraction(8), 1 << 14, 90), 8), 2)
    0.79
    """
    return cap.excess * cap.size * _reach(cap.nearest / cap.size, dimension)


def best_cap(epsilon: Fraction, dimension: int, size: int) -> Cap:
    """The cap of the K that maximises the contraction, and so tells most: a public rule.

        c(q) = (E - 1) M(q) / (1 + q (E - 1)),  E = e^epsilon

    has one maximum, as M is concave (its slope is the height t of the cap's edge, which falls): the
    q where t (1 + q (E - 1)) = (E - 1) M(q).

    >>> best_cap(Fraction(1), 8, 1 << 14).nearest, best_cap(Fraction(8), 8, 1 << 14).nearest
    (5827, 90)
    """
    check_level(epsilon)
    gain = float(exp_below(epsilon)) - 1.0
    few, many = 0.0, 0.5
    for _ in range(60):
        share = (few + many) / 2.0
        if _height(share, dimension) * (1.0 + share * gain) > gain * _reach(share, dimension):
            few = share
        else:
            many = share
    nearest = min(max(round(many * size), 1), size // 2)
    return Cap.of(epsilon, size, nearest)


def _height(share: float, dimension: int) -> float:
    """t of P[<u, v> > t] = share, u uniform on the sphere: <u, v>^2 has a beta law."""
    if dimension == 1:
        return 1.0
    return math.sqrt(1.0 - betaincinv((dimension - 1) / 2.0, 0.5, 2.0 * share))


def _reach(share: float, dimension: int) -> float:
    """E[<u, v>; <u, v> > t] at this share: (1 - t^2)^((r-1)/2) / ((r - 1) B((r-1)/2, 1/2))."""
    if share > 0.5:
        return _reach(1.0 - share, dimension)
    if dimension == 1:
        return share
    a = (dimension - 1) / 2.0
    short = float(betaincinv(a, 0.5, 2.0 * share))  # 1 - t^2
    return math.exp(a * math.log(short) - betaln(a, 0.5)) / (dimension - 1) if short else 0.0


# -- the nearest few


def ranked(floats: Floats, vector: Floats, nearest: int) -> tuple[Indices, Floats]:
    """The pairs of a half book, those of the cap first, and <u, v> of each: on which side v is.

    The nearest K <= N / 2 of u and -u are, of the K largest |<u, v>|, those on the side of v. What
    comes back is always a permutation of the pairs, also for ties, zeros and NaN: so a cap always
    has exactly K distinct indices.
    """
    with np.errstate(all="ignore"):  # what is no number is ranked somewhere, and nobody hears of it
        scores = floats @ vector
    order = np.argpartition(np.abs(scores), len(scores) - nearest)[::-1]
    return order, scores


def index_at(order: Indices, scores: Floats, nearest: int, place: int) -> int:
    """The index at a place: 0 .. K - 1 in the cap, K .. 2 K - 1 opposite, the other pairs after.

    It runs through every index once as the place runs from 0 to N - 1, whatever the scores were.
    """
    half = len(order)
    if place < 2 * nearest:
        pair = int(order[place % nearest])
        return pair + half * (bool(scores[pair] < 0.0) ^ (place >= nearest))
    pair = int(order[nearest + (place - 2 * nearest) // 2])
    return pair + half * (place % 2)
