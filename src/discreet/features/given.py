"""Features where some columns are given: combinations of few functions of the others.

    phi(x, c) = T(c) psi(x)        cos(a + b) = cos a cos b - sin a sin b

A person's context c fixes columns. Over the rest a map has as many functions psi as it has
different frequencies (or monomials) there, often far fewer than features, and the first is 1. So
what a score of phi is for one person is worked out once, and then costs little at each of their
options. No person's arithmetic touches another's.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from discreet.arrays import Floats, Indices, Integers
from discreet.features.fourier import FourierFeatures
from discreet.features.maps import AdditiveFeatures, FeatureMap, PolynomialFeatures
from discreet.features.products import ProductFeatures


class Rest(Protocol):
    """A feature map over the columns that are not given."""

    @property
    def dimension(self) -> int:
        """The number of functions psi, the constant 1 first."""
        ...

    def psi(self, points: Floats) -> Floats:
        """The functions at each point (row), of which the given columns do not matter."""
        ...

    def combinations(self, points: Floats) -> Floats:
        """T, (points, features, functions), by the given columns of each point."""
        ...


@lru_cache(maxsize=32)
def rest_of(features: FeatureMap, free: tuple[int, ...]) -> Rest | None:
    """The map over these columns, the others given; None where nothing is gained.

    >>> linear = PolynomialFeatures(1, 1.0, inputs=2)
    >>> rest, x = rest_of(linear, (0,)), np.array([[0.2, 0.7]])
    >>> rest.dimension, bool(np.allclose(rest.combinations(x)[0] @ rest.psi(x)[0], linear(x)[0]))
    (2, True)
    """
    if isinstance(features, FourierFeatures):
        return _Waves.of(features, free)
    if isinstance(features, PolynomialFeatures):
        return _Monomials.of(features, free)
    if isinstance(features, ProductFeatures):
        return _Products.of(features, free)
    return _Parts.of(features, free) if isinstance(features, AdditiveFeatures) else None


@dataclass(frozen=True, eq=False)
class _Waves:
    """1, the cosines and the sines of the different frequencies, those of opposite sign as one."""

    features: FourierFeatures
    free: tuple[int, ...]
    frequencies: Floats
    place: Indices  # which of them each frequency of the map is, from 1; 0 is the constant
    sign: Floats

    @classmethod
    def of(cls, features: FourierFeatures, free: tuple[int, ...]) -> "_Waves":
        over = features.frequencies[:, list(free)]
        leading = over[np.arange(len(over)), (over != 0.0).argmax(axis=1)] if free else over.sum(1)
        sign = np.where(leading < 0.0, -1.0, 1.0)
        different, place = np.unique(sign[:, None] * over, axis=0, return_inverse=True)
        moves = different.any(axis=1)
        numbered = np.where(moves, np.cumsum(moves), 0)
        return cls(features, free, different[moves], numbered[place.ravel()], sign)

    @property
    def dimension(self) -> int:
        return 1 + 2 * len(self.frequencies)

    def psi(self, points: Floats) -> Floats:
        count = len(self.frequencies)
        phases = _phases(points, self.free, self.frequencies)
        values = np.ones((len(points), self.dimension))
        np.cos(phases, out=values[:, 1 : 1 + count])
        np.sin(phases, out=values[:, 1 + count :])
        return values

    def combinations(self, points: Floats) -> Floats:
        given = tuple(c for c in range(self.features.inputs) if c not in self.free)
        phases = _phases(points, given, self.features.frequencies[:, list(given)])
        amplitudes = np.sqrt(self.features.weights)
        cosines, sines = amplitudes * np.cos(phases), amplitudes * np.sin(phases)
        every, count = np.arange(len(amplitudes)), len(amplitudes)
        found = np.zeros((len(points), 2 * count, self.dimension))
        moving = np.flatnonzero(self.place)
        also = self.place[moving] + len(self.frequencies)
        sign = self.sign[moving]
        found[:, every, self.place] = cosines
        found[:, count + every, self.place] = sines
        found[:, moving, also] = -sign * sines[:, moving]
        found[:, count + moving, also] = sign * cosines[:, moving]
        zeros = 2 * count - self.features.dimension  # the sine of a zero frequency is left out
        return np.delete(found, count, axis=1) if zeros else found


@dataclass(frozen=True, eq=False)
class _Monomials:
    """The different monomials of the free columns."""

    features: PolynomialFeatures
    free: tuple[int, ...]
    exponents: Integers
    place: Indices

    @classmethod
    def of(cls, features: PolynomialFeatures, free: tuple[int, ...]) -> "_Monomials":
        over = features.exponents[:, [1 + column for column in free]]
        constant = np.zeros((1, len(free)), dtype=over.dtype)
        different, place = np.unique(np.concatenate([constant, over]), axis=0, return_inverse=True)
        return cls(features, free, different, place.ravel()[1:])

    @property
    def dimension(self) -> int:
        return len(self.exponents)

    def psi(self, points: Floats) -> Floats:
        return _powers(points, self.free, self.exponents)

    def combinations(self, points: Floats) -> Floats:
        given = tuple(c for c in range(self.features.inputs) if c not in self.free)
        exponents = self.features.exponents[:, [1 + column for column in given]]
        found = np.zeros((len(points), self.features.dimension, self.dimension))
        scaled = self.features.scale * _powers(points, given, exponents)
        found[:, np.arange(len(self.place)), self.place] = scaled
        return found


@dataclass(frozen=True, eq=False)
class _Products:
    """1, and the different products of functions of the free columns."""

    features: ProductFeatures
    free: tuple[int, ...]
    first: Indices  # a feature for each of them
    place: Indices  # which of them each feature has, from 1

    @classmethod
    def of(cls, features: ProductFeatures, free: tuple[int, ...]) -> "_Products":
        own = [i for i, factor in enumerate(features.factors) if factor.columns[0] in free]
        _, first, place = np.unique(
            features.terms[:, own], axis=0, return_index=True, return_inverse=True
        )
        return cls(features, free, first, 1 + place.ravel())

    @property
    def dimension(self) -> int:
        return 1 + len(self.first)

    def psi(self, points: Floats) -> Floats:
        values = np.ones((len(points), self.dimension))
        values[:, 1:] = self.features.over(points, self.free, self.first)
        return values

    def combinations(self, points: Floats) -> Floats:
        given = [c for c in range(self.features.inputs) if c not in self.free]
        found = np.zeros((len(points), self.features.dimension, self.dimension))
        found[:, np.arange(len(self.place)), self.place] = self.features.over(points, given)
        return found


@dataclass(frozen=True, eq=False)
class _Parts:
    """The constant once, and what else the parts of a sum have."""

    features: AdditiveFeatures
    rests: tuple[Rest, ...]

    @classmethod
    def of(cls, features: AdditiveFeatures, free: tuple[int, ...]) -> "_Parts | None":
        rests = [
            rest_of(part.features, tuple(i for i, c in enumerate(part.columns) if c in free))
            for part in features.parts
        ]
        found = tuple(rest for rest in rests if rest is not None)
        return cls(features, found) if len(found) == len(rests) else None

    @property
    def dimension(self) -> int:
        return 1 + sum(rest.dimension - 1 for rest in self.rests)

    def psi(self, points: Floats) -> Floats:
        moving = [
            rest.psi(points[:, list(part.columns)])[:, 1:]
            for part, rest in zip(self.features.parts, self.rests, strict=True)
            if rest.dimension > 1
        ]
        return np.concatenate([np.ones((len(points), 1)), *moving], axis=1)

    def combinations(self, points: Floats) -> Floats:
        found = np.zeros((len(points), self.features.dimension, self.dimension))
        column = 1
        for part, group, rest in zip(
            self.features.parts, self.features.groups, self.rests, strict=True
        ):
            own = rest.combinations(points[:, list(part.columns)]) * np.sqrt(part.weight)
            found[:, group.features, 0] = own[:, :, 0]
            found[:, group.features, column : column + rest.dimension - 1] = own[:, :, 1:]
            column += rest.dimension - 1
        return found


def _phases(points: Floats, columns: tuple[int, ...], frequencies: Floats) -> Floats:
    # One coordinate after the other: a row's phases do not depend on the rows beside it.
    phases = np.zeros((len(points), len(frequencies)))
    for j, column in enumerate(columns):
        phases += points[:, column, None] * frequencies[:, j]
    return phases


def _powers(points: Floats, columns: tuple[int, ...], exponents: Integers) -> Floats:
    values = np.ones((len(points), len(exponents)))
    for j, column in enumerate(columns):
        z = 2.0 * points[:, column] - 1.0
        powers = [np.ones_like(z)]
        for _ in range(int(exponents[:, j].max())):
            powers.append(powers[-1] * z)
        values *= np.stack(powers, axis=1)[:, exponents[:, j]]
    return values
