"""What a report that is an index costs a client: against the matrix-vector product alone.

    .venv/bin/python benchmarks/index_reports.py

The yardstick is one product of the whole book, N = 2^14 codewords of r = 32 entries, with a vector.
A client ranks half of the book (the other half is its opposite) and draws a place.
"""

import timeit
from fractions import Fraction

import numpy as np
from threadpoolctl import threadpool_limits

from discreet.privacy.book import book_seed, half_book
from discreet.privacy.clipping import Residual
from discreet.privacy.codebook import CodebookEncoding
from discreet.privacy.interval import IntervalEncoding
from discreet.trusted import randomness

R, SIZE = 32, 1 << 14


class Plain:
    """A feature map that leaves points as they are."""

    dimension = R

    def __call__(self, points):
        return points


def milliseconds(act, repeats=40, number=20):
    """The best of several."""
    return min(timeit.repeat(act, number=number, repeat=repeats)) / number * 1e3


def report(encoding, point, reward):
    bits = randomness.OperatingSystem()
    places = randomness.places(encoding.cap, 1, bits=bits)
    coins = randomness.coins(1, bits=bits)
    return encoding.indices(Plain(), point, reward, coins=coins, places=places)


def main():
    point, reward = np.full((1, R), 1.0 / np.sqrt(R)), np.array([0.4])
    half = half_book(book_seed("time"), R, SIZE)[1]
    whole, vector = np.concatenate([half, -half]), point[0]
    product = milliseconds(lambda: whole @ vector)
    print(f"matrix-vector product, N = {SIZE}, r = {R}: {product:.3f} ms")
    residual = Residual(np.zeros(R), 1.0)
    for epsilon in (1.0, 4.0, 8.0):
        book = CodebookEncoding.fit(
            residual, np.eye(R), Fraction(epsilon), book_seed("time"), lift=False
        )
        took = milliseconds(lambda book=book: report(book, point, reward))
        print(f"codebook report, epsilon = {epsilon:g}: {took:.3f} ms, {took / product:.2f} times")
    interval = IntervalEncoding.fit(residual, 64, Fraction(4))
    took = milliseconds(lambda: report(interval, point, reward))
    print(f"interval report: {took:.3f} ms")
    seeds = iter(range(10**6))
    for r in (8, 33):
        took = milliseconds(lambda r=r: half_book(book_seed(str(next(seeds))), r, SIZE), 5, 3)
        print(f"expanding a book of r = {r}: {took:.1f} ms")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
