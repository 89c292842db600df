"""The only door to random bits.

Noise for a release comes from the operating system, fresh for each call; no generator state is
kept, so none can be saved, forked or replayed. A `Simulation` replaces it by a seeded generator
and is never private.

**Numerical slack.** A normal is z = +-Phi^-1((k + 1/2) 2^-64), k a uniform 63-bit integer. With
double precision the distribution function of z is off by at most e(z) = 2^-49 (|z| phi(z) +
Phi(-|z|)) + 2^-64: `ndtri` is good to 4 ulp, the argument to an ulp, and the last term is its
discreteness and the cut at |z| = 9.2 (it adds less than 2^-55 below). `integer_noise` adds two
independent rounded normals, rint(s z) + rint(t z') with t = s / 16: adding the second is
post-processing of the first, and smooths what rounding errors leave. Summation by parts bounds
the total variation between this and the ideal by

    1/2 (sum_n e(n / s)) (sum_n |p'(n+1) - p'(n)|) <= 1/2 (2 s 2^-49) (0.8 / t + t 2^-46)
                                                   <  2^-45 + s^2 2^-99

for every coordinate, p' the law of the second, and below `SLACK_PER_INTEGER` for every allowed s;
below `COARSE_SLACK` up to `LARGEST_COARSE_STD` (the first term is 12.8 2^-49, the second 2^-48.5).
A round touches two releases at most (a late answer), and more where rounds are looked at again or
noise is correlated. Together they are within slack = releases size slack-per-integer of ideal. It
adds (1 + e^epsilon) slack to delta (`GaussianPrivacy`), for which `Plan.cost` makes room.
"""

import os
import random
from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from discreet.arrays import Floats, Integers
from discreet.errors import InvalidArgument
from discreet.privacy.budget import Simulation
from discreet.privacy.cap import THRESHOLD_BITS, Cap
from discreet.privacy.clipping import LARGEST_STD, SMALLEST_STD

T = TypeVar("T")
Words: TypeAlias = NDArray[np.uint64]
#: How much finer the smoothing noise is than the noise itself.
SMOOTHING = 16.0


def secret_key() -> str:
    """32 fresh bytes, in hexadecimal."""
    return os.urandom(32).hex()


def mixed(things: Iterable[T]) -> list[T]:
    """These things in an order that is uniformly random, by the operating system's bits.

    Each is put in a place below a uniform whole number, which is drawn without bias (bits that
    would bend it are drawn again): Fisher and Yates' way to all orders alike.

    >>> sorted(mixed([3, 1, 2]))
    [1, 2, 3]
    """
    own = list(things)
    random.SystemRandom().shuffle(own)
    return own


class OperatingSystem:
    """Fresh bits from the operating system for every draw.

    >>> OperatingSystem().normals(3).shape
    (3,)
    """

    private = True

    def normals(self, count: int) -> Floats:
        """Independent standard normals."""
        return normals_from(np.frombuffer(os.urandom(8 * count), dtype=np.uint64))

    def words(self, rows: int, columns: int) -> Words:
        """Independent uniform 64-bit integers."""
        return np.frombuffer(os.urandom(8 * rows * columns), dtype=np.uint64).reshape(rows, columns)


class Seeded:
    """Reproducible bits: for simulations, never private."""

    private = False

    def __init__(self, simulation: Simulation, epoch: int) -> None:
        self._bits = np.random.Philox(np.random.SeedSequence([simulation.seed, epoch]))

    def normals(self, count: int) -> Floats:
        """Independent standard normals, the next of the stream."""
        return normals_from(self._bits.random_raw(count))

    def words(self, rows: int, columns: int) -> Words:
        """Independent uniform 64-bit integers, the next of the stream."""
        return self._bits.random_raw(rows * columns).reshape(rows, columns)


class SeededRows:
    """For one draw of `integer_noise` over many rows: to each what `Seeded` would give it alone."""

    private = Seeded.private

    def __init__(self, simulation: Simulation, rows: Sequence[int]) -> None:
        self._streams = [Seeded(simulation, row) for row in rows]

    def normals(self, count: int) -> Floats:
        """Independent standard normals: every row's first half, then every row's second."""
        each = np.stack([stream.normals(count // len(self._streams)) for stream in self._streams])
        return each.reshape(len(each), 2, -1).transpose(1, 0, 2).ravel()

    def words(self, rows: int, columns: int) -> Words:
        """Independent uniform 64-bit integers, of each row's own stream."""
        return np.concatenate([stream.words(1, columns) for stream in self._streams])


Source = OperatingSystem | Seeded | SeededRows


def source(simulation: Simulation | None, epoch: int) -> Source:
    """The operating system, unless this is a simulation; then a stream for each epoch."""
    return OperatingSystem() if simulation is None else Seeded(simulation, epoch)


def sources(simulation: Simulation | None, rows: Sequence[int]) -> Source:
    """The same for many reports that are drawn together, a stream for each."""
    return OperatingSystem() if simulation is None else SeededRows(simulation, rows)


def normals_from(bits: NDArray[np.uint64]) -> Floats:
    """Standard normals from 64 uniform bits each: a sign, and 63 bits of tail probability.

    >>> normals_from(np.array([2**63 - 1, 2**64 - 1, 0], dtype=np.uint64)).round(2).tolist()
    [0.0, -0.0, -9.16]
    """
    tail = np.ldexp((bits & np.uint64(2**63 - 1)).astype(np.float64) + 0.5, -64)
    half = ndtri(tail)
    return np.where(bits >> np.uint64(63), -half, half)


def places(cap: Cap, reports: int, *, bits: Source) -> Integers:
    """Where in its ranking each report's index is: uniform below K with probability p, else above.

    Exactly: 62 uniform bits are compared with the threshold of p, and a uniform integer below K or
    N - K is drawn by rejection. No two places of a class differ in probability.
    """
    inside = (bits.words(reports, 1)[:, 0] >> np.uint64(64 - THRESHOLD_BITS)) < cap.threshold
    bounds = np.where(inside, cap.nearest, cap.size - cap.nearest).astype(np.uint64)
    return _below(bounds, bits).astype(np.int64) + np.where(inside, 0, cap.nearest)


def coins(reports: int, *, bits: Source) -> Integers:
    """Uniform 62-bit integers, for what is rounded or signed at random."""
    return (bits.words(reports, 1)[:, 0] >> np.uint64(64 - THRESHOLD_BITS)).astype(np.int64)


def _below(bounds: Words, bits: Source) -> Words:
    """Uniform integers below each bound, exactly: 63 bits, drawn again above a whole multiple."""
    whole = np.uint64(1 << 63) // bounds * bounds
    found = bits.words(len(bounds), 1)[:, 0] >> np.uint64(1)
    while (beyond := found >= whole).any():
        found = np.where(beyond, bits.words(len(bounds), 1)[:, 0] >> np.uint64(1), found)
    return found % bounds


def integer_noise(stds: Floats, *, bits: Source) -> Integers:
    """Rounded Gaussian noise on the integer lattice, one standard deviation a coordinate.

    For an integer v, v + rint(g) = rint(v + g): rounding is post-processing of the Gaussian
    mechanism, whatever the covariance of g. A standard deviation of zero adds nothing.
    """
    noisy = stds != 0
    inside = (stds[noisy] >= SMALLEST_STD) & (stds[noisy] <= LARGEST_STD)
    if not inside.all():  # NaN and negative numbers, too: they never mean no noise
        raise InvalidArgument("stds", f"zero, or between {SMALLEST_STD:g} and {LARGEST_STD:g}")
    drawn = bits.normals(2 * int(noisy.sum())).reshape(2, -1)
    noise = np.zeros(stds.shape, dtype=np.int64)
    coarse = np.rint(stds[noisy] * drawn[0])
    smoothing = np.rint(stds[noisy] / SMOOTHING * drawn[1])
    noise[noisy] = (coarse + smoothing).astype(np.int64)
    return noise
