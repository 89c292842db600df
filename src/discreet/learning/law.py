"""Who comes: a law of what people bring, learnt from released grams.

Nobody's context is known. A law over them is public: it begins as the plan's belief and moves to
explain the grams that are released. It is an exponential family over the columns z in [-1, 1]
that people bring,

    p(c) ~ p_0(c) exp(a . psi(c)),        psi = z_i, z_i^2 and z_i z_j,  standardised under p_0,

with a Gaussian over a that each release narrows by one Gauss-Newton step. Where the law is
wrong, learning is slower; privacy does not depend on it. Everything here is post-processing.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve

from discreet.agreement.beginning import Around, ContextLaws, Shares
from discreet.arrays import Floats
from discreet.domain.box import Box, Categorical
from discreet.learning.search import latin_hypercube

#: People who stand for those to come.
PEOPLE = 512
#: Where one coordinate's density is looked at.
CELLS = 64
#: Rounds of drawing each coordinate given the others, where coordinates depend on each other.
SWEEPS = 8
#: No step moves a parameter further.
LONGEST_STEP = 1.0
#: How strongly pairs are held to be independent before anything is known.
INDEPENDENT = 4.0


@dataclass(frozen=True, eq=False)
class Kind:
    """What a law can say about some coordinates: their parameters, and how to draw from it."""

    domain: Box
    names: tuple[str, ...]

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The columns of these coordinates, in their order."""
        return tuple(column for name in self.names for column in self.domain.columns(name))

    @cached_property
    def _numbers(self) -> list[int]:
        """Places of columns that hold numbers."""
        places = {column: place for place, column in enumerate(self.columns)}
        return [
            places[column]
            for name in self.names
            if not isinstance(self.domain.coordinate(name), Categorical)
            for column in self.domain.columns(name)
        ]

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(itertools.combinations(self._numbers, 2))

    @cached_property
    def _standard(self) -> tuple[Floats, Floats]:
        """Mean and deviation of psi under the even law."""
        rng = np.random.Generator(np.random.Philox(PEOPLE))
        placed = [self.domain.coordinate(n).place(rng.random(16 * PEOPLE)) for n in self.names]
        raw = self._raw(np.concatenate(placed, axis=1))
        return raw.mean(axis=0), np.maximum(raw.std(axis=0), 1e-9)

    def _raw(self, brought: Floats) -> Floats:
        z = 2.0 * brought - 1.0
        squares = np.square(z[:, self._numbers])
        products = [z[:, i] * z[:, j] for i, j in self._pairs]
        return np.column_stack([z, squares, *products])

    def psi(self, brought: Floats) -> Floats:
        """The statistics of each row of what people bring."""
        mean, deviation = self._standard
        return (self._raw(brought) - mean) / deviation

    @property
    def size(self) -> int:
        """The number of parameters."""
        return len(self._standard[0])

    @property
    def prior_precision(self) -> Floats:
        """Of the parameters: 1, and more for pairs."""
        single = self.size - len(self._pairs)
        return np.diag(np.where(np.arange(self.size) < single, 1.0, INDEPENDENT))

    def fitted(self, laws: ContextLaws) -> Floats:
        """The parameters by which each coordinate is as its law says, on its own."""
        weights, place = np.zeros(self.size), 0
        for name in self.names:
            coordinate, law = self.domain.coordinate(name), laws.get(name)
            own = slice(place, place + coordinate.columns)
            if isinstance(law, Shares) and isinstance(coordinate, Categorical):
                weights[own] = _category_slope(coordinate, law)
            elif isinstance(law, Around):
                square = len(self.columns) + self._numbers.index(place)
                weights[place], weights[square] = _number_slopes(coordinate, law)
            place = own.stop
        return weights * self._standard[1]

    def people(self, tilt: Floats) -> Floats:
        """Rows of what people bring, drawn afresh from the law with these parameters.

        The uniform numbers behind them are always the same, so the rows move as the law does.
        """
        weights = tilt / self._standard[1]
        linear, rest = weights[: len(self.columns)], weights[len(self.columns) :]
        squares = dict(zip(self._numbers, rest, strict=False))
        links = np.zeros((len(self.columns), len(self.columns)))
        for (i, j), weight in zip(self._pairs, rest[len(self._numbers) :], strict=True):
            links[i, j] = links[j, i] = weight
        sweeps = SWEEPS if links.any() else 1
        uniforms = _uniforms(sweeps, len(self.names))
        brought = np.full((PEOPLE, len(self.columns)), 0.5)
        for sweep in range(sweeps):
            place = 0
            for number, name in enumerate(self.names):
                coordinate = self.domain.coordinate(name)
                own = list(range(place, place + coordinate.columns))
                place += coordinate.columns
                others = 2.0 * brought - 1.0
                others[:, own] = 0.0
                slope = linear[own] + others @ links[:, own]
                square = np.array([squares.get(i, 0.0) for i in own])
                drawn = uniforms[sweep, :, number]
                if isinstance(coordinate, Categorical):
                    brought[:, own] = _category(coordinate, slope, drawn)
                else:
                    brought[:, own[0]] = _number(slope[:, 0], square[0], drawn)
        return brought


def _number(slope: Floats, square: float, uniforms: Floats) -> Floats:
    """For each row a number of density exp(slope z + square z^2), z = 2x - 1."""
    z = (2.0 * np.arange(CELLS) + 1.0) / CELLS - 1.0
    heights = slope[:, None] * z + square * z**2
    mass = np.cumsum(np.exp(heights - heights.max(axis=1, keepdims=True)), axis=1)
    mass /= mass[:, -1:]
    cell = np.sum(mass < uniforms[:, None], axis=1)
    rows = np.arange(len(cell))
    below = np.where(cell > 0, mass[rows, cell - 1], 0.0)
    inside = (uniforms - below) / np.maximum(mass[rows, cell] - below, 1e-300)
    return (cell + np.clip(inside, 0.0, 1.0)) / CELLS


def _category(coordinate: Categorical, slope: Floats, uniforms: Floats) -> Floats:
    heights = slope @ (2.0 * coordinate.vertices - 1.0).T
    mass = np.cumsum(np.exp(heights - heights.max(axis=1, keepdims=True)), axis=1)
    chosen = np.sum(mass / mass[:, -1:] < uniforms[:, None], axis=1)
    return coordinate.vertices[np.minimum(chosen, coordinate.count - 1)]


def _category_slope(coordinate: Categorical, law: Shares) -> Floats:
    """What gives categories their shares; one that nobody is in counts a thousandth."""
    shares = np.array([max(law.shares.get(value, 0.0), 1e-3) for value in coordinate.values])
    corners = np.column_stack([2.0 * coordinate.vertices - 1.0, np.ones(coordinate.count)])
    return solve(corners, np.log(shares))[:-1]


def _number_slopes(coordinate: Any, law: Around) -> Floats:
    """(slope, square) of the density exp(slope z + square z^2) with this mean and deviation.

    The nearest that Newton's method finds: a mean outside the range is taken for its end.
    """
    ends = coordinate.scale(np.array([law.mean - law.std, law.mean + law.std]))[:, 0]
    mean, std = float(np.sum(ends)) - 1.0, max(float(ends[1] - ends[0]), 0.02)
    mean = min(max(mean, -0.95), 0.95)
    wanted = np.array([mean, mean**2 + std**2])
    z = (2.0 * np.arange(CELLS) + 1.0) / CELLS - 1.0
    psi = np.column_stack([z, z**2])
    slopes: Floats = np.array([mean, -0.5]) / std**2
    for _ in range(50):
        heights = psi @ slopes
        mass = np.exp(heights - heights.max())
        mass /= mass.sum()
        found = mass @ psi
        spread = (psi * mass[:, None]).T @ psi - np.outer(found, found) + 1e-6 * np.eye(2)
        step: Floats = np.asarray(solve(spread, wanted - found), np.float64)
        slopes = slopes + np.clip(step, -5.0, 5.0)
    return slopes


@lru_cache(maxsize=8)
def _uniforms(sweeps: int, coordinates: int) -> Floats:
    rng = np.random.Generator(np.random.Philox(SWEEPS))
    return np.stack([latin_hypercube(PEOPLE, coordinates, rng) for _ in range(sweeps)])


@dataclass(frozen=True, eq=False)
class Seen:
    """People in a release: rows g (people, r) and psi, their weights, and how many they stand for.

    `counted` is how often all of them count, A n; `sampled` the variance of a sum over them in
    units of that of one, A^2 n.
    """

    g: Floats
    psi: Floats
    weights: Floats
    counted: float
    sampled: float


@dataclass(frozen=True, eq=False)
class Law:
    """A Gaussian over the parameters of who comes."""

    kind: Kind
    tilt: Floats
    precision: Floats

    @classmethod
    def before(cls, domain: Box, names: tuple[str, ...], laws: ContextLaws | None = None) -> "Law":
        """What is believed at first: everyone is as likely, but for what is said in public."""
        kind = Kind(domain, names)
        return cls(kind, kind.fitted(laws or {}), kind.prior_precision)

    @cached_property
    def people(self) -> Floats:
        """What people bring, by the law as it is now."""
        return self.kind.people(self.tilt)

    def reweighed(self, psi: Floats, tilt: Floats) -> Floats:
        """Weights by which people drawn under an earlier tilt stand for this law."""
        heights = psi @ (self.tilt - tilt)
        weights = np.exp(heights - heights.max())
        return weights / weights.sum()

    def told(self, gram: Floats, noise: Floats, seen: Sequence[Seen]) -> "Law":
        """After a released gram (upper triangle, packed) with noise of these variances."""
        rows, columns = np.triu_indices(seen[0].g.shape[1])
        misses, variance = gram.copy(), noise.copy()
        slopes = np.zeros((len(gram), len(self.tilt)))
        for each in seen:
            products = each.g[:, rows] * each.g[:, columns]
            weighed = products * each.weights[:, None]
            expected = weighed.sum(axis=0)
            centred = each.psi - each.weights @ each.psi
            misses -= each.counted * expected
            slopes += each.counted * (weighed.T @ centred)
            spread = np.maximum((weighed * products).sum(axis=0) - expected**2, 1e-6)
            # The same people are in every look: each look tells its share of what they tell.
            variance += 2.0 * len(seen) * each.sampled * spread
        precision = self.precision + slopes.T @ (slopes / variance[:, None])
        step = cho_solve(cho_factor(precision), slopes.T @ (misses / variance))
        tilt = self.tilt + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        return replace(self, tilt=tilt, precision=precision)
