"""Correlated noise in integers: what the releases of a stream are, and what they cost.

A strategy C (see `correlation`) spreads a round over later releases. Release k is the *node*

    Y_k = sum over j <= k of C_kj x_j + noise of its own,        x_j the exact sums of epoch j,

so noise is drawn for each release alone, as it is for independent epochs: what correlates the
noise of prefix sums is that the public decodes them as B Y = A x + B z (`Strategy.advance`, fed
with releases instead of normals). There is no noise to remember, to keep secret or to redraw. The
memory is in the data: the exact sums of closed epochs, which answers replay.

**Exactly.** For the tree a node is the sum of a block of epochs. Otherwise C is rounded to
multiples of 2^-20, summed in integers, and a node rounded to the nearest one. So the nodes of two
studies differ by C times the difference of their sums, plus less than one integer in each of the
`touched` releases that a difference reaches. The column norm that is paid for, `norm`, allows for
the rounding of C; what rounding nodes adds is `rounding`.

**The cost of one round.** A replaced round changes one x_j by v - v', which the encoding bounds:
||v - v'|| <= m after division by the noise, ||v||, ||v'|| <= m / sqrt(2). It moves all nodes by at
most norm m. That also holds for an answer that comes with release a in one world and, replaced,
with release b in the other: with columns c_a, c_b of C, which have no negative entries, and r =
c_a c_b / norm^2 in [0, 1],

    ||c_a v - c_b v'||^2 <= norm^2 (||v||^2 + ||v'||^2 - 2 r v v')
                         <= norm^2 ((1 - r) (||v||^2 + ||v'||^2) + r m^2) <= norm^2 m^2.

k rounds of one person can enter with one release, when they are answered late: their columns are
then the same one, and k norm m is reached. No set costs more (triangle inequality).

**Adaptively.** What people do depends on earlier releases. Let d_k be the whitened difference of
node k between the two worlds, given what was released before: it is a function of that, and the
sum of ||d_k||^2 is at most mu^2 whatever is released. Add one more release with the difference that
is missing from mu^2. Then log(P' / P) = sum d_k z_k - mu^2 / 2 under P, z the noise, and because
E exp(i s sum d_k z_k + s^2 / 2 sum ||d_k||^2) = 1, step by step from the last one, the sum of
d_k z_k is exactly N(0, mu^2); under P' it is shifted by mu^2. No test does better than between
N(0, 1) and N(mu, 1).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from discreet import checks
from discreet.arrays import Floats, Integers
from discreet.errors import InvalidArgument
from discreet.privacy.correlation import BLT, SquareRoot, State, Tree

Correlation = Literal["tree", "square root", "blt"]
NoiseChoice = Literal["independent", "tree", "square root", "blt"]
CORRELATIONS: tuple[Correlation, ...] = get_args(Correlation)

#: C is rounded to multiples of 2^-FRACTION.
FRACTION = 20
#: Sums are multiplied in halves of so many bits: over a million releases, where a row of C sums
#: to less than 2^11, products fit 64.
HALF = 31
#: A BLT without end is best for so many releases, and never keeps more.
USUAL, MOST = 1 << 12, 1 << 14


def fitted_buffers(releases: int | None) -> BLT:
    """The best for so many releases; for an unknown number, with a price that holds for all."""
    if releases is None:
        return BLT.fit(USUAL, endless=True)
    return BLT.fit(max(releases, 2))


@dataclass(frozen=True)
class Stream:
    """A strategy for at most `releases` releases; `endless` pays for any number.

    >>> stream = Stream.of("tree", 1024)
    >>> round(stream.norm ** 2, 9), stream.touched
    (11.0, 11)
    """

    strategy: Tree | SquareRoot | BLT
    releases: int
    endless: bool = False

    @classmethod
    def of(cls, name: Correlation, releases: int, buffers: BLT | None = None) -> "Stream":
        """The strategy of this name for a known number of releases."""
        releases = checks.count("releases", releases)
        if name == "blt":
            return cls(buffers or fitted_buffers(releases), releases)
        return cls(Tree() if name == "tree" else SquareRoot(), releases)

    @classmethod
    def without_end(cls, name: Correlation, releases: int, buffers: BLT | None = None) -> "Stream":
        """BLT with its infinite-stream sensitivity: what a round costs does not depend on T.

        Only finite precision, which adds up over releases, limits their number.
        """
        if name != "blt":
            raise InvalidArgument(
                "horizon",
                f"a number of asks: without end noise={name!r} has no finite cost (take 'blt')",
            )
        return cls(buffers or fitted_buffers(None), min(releases, MOST), endless=True)

    @property
    def touched(self) -> int:
        """How many releases one answer is part of, at most."""
        return self.releases.bit_length() if self.weights is None else self.releases

    @cached_property
    def norm(self) -> float:
        """The largest norm of a column of C, as rounded."""
        plain = self.strategy.sensitivity(None if self.endless else self.releases)
        if self.weights is None:
            return plain
        return plain + math.sqrt(self.releases) * 2.0 ** -(FRACTION + 1)

    def rounding(self, stds: Floats) -> float:
        """How much further apart rounded nodes may be, in stds of their noise."""
        if self.weights is None:
            return 0.0
        return math.sqrt(self.releases) * float(np.linalg.norm(1.0 / stds))

    @cached_property
    def weights(self) -> Integers | None:
        """The first column of C, in multiples of 2^-20; None for the tree, which is no Toeplitz."""
        if isinstance(self.strategy, Tree):
            return None
        column = self.strategy.coefficients(self.releases)
        return np.rint(np.ldexp(column, FRACTION)).astype(np.int64)

    def node(self, sums: Integers) -> Integers:
        """The next release before its noise, from the sums of every epoch so far, one a row.

        >>> Stream.of("tree", 4).node(np.array([[1], [10], [100], [1000]]))
        array([1111])
        >>> Stream.of("square root", 4).node(np.array([[0], [16]])), 16 * 0.5
        (array([16]), 8.0)
        >>> Stream.of("square root", 4).node(np.array([[16], [0]]))
        array([8])
        """
        count = len(sums)
        if not 1 <= count <= self.releases:
            raise InvalidArgument("sums", f"those of 1 to {self.releases} epochs", count)
        if self.weights is None:
            return sums[-(count & -count) :].sum(axis=0)
        column = self.weights[:count][::-1]
        high = column @ (sums >> HALF)
        low = column @ (sums & ((1 << HALF) - 1))
        return (high << (HALF - FRACTION)) + ((low + (1 << (FRACTION - 1))) >> FRACTION)

    def std(self, released: int) -> float:
        """The std of the prefix after so many releases, in stds of the noise of one node."""
        return float(self._stds[released - 1])

    @cached_property
    def _stds(self) -> Floats:
        return self.strategy.stds(self.releases)

    @property
    def guarantee(self) -> str:
        """What to add to the sentence for the review board."""
        kind = {Tree: "binary tree", SquareRoot: "square root", BLT: "buffers"}[type(self.strategy)]
        number = "any number of" if self.endless else f"up to {self.releases}"
        return (
            f"Noise is correlated over {number} releases ({kind}): an answer is part of several, "
            f"priced together as the one mechanism they are (column norm {self.norm:.4g}); several "
            "rounds of one person as if all came with one release, the worst case."
        )

    def start(self, size: int) -> State:
        """Before the first release: what `strategy.advance` goes on from."""
        return State.start(
            self.strategy, size=size, horizon=None if self.endless else self.releases
        )
