"""Kernels made of kernels: sums and products over named coordinates, and banks to learn from.

A kernel is frozen public data. Coordinates are given by name, which a plan turns into columns of
its domain, or by column.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from discreet import checks
from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.features.simple_kernels import (
    Categories,
    Linear,
    Matern,
    Polynomial,
    Simple,
    SquaredExponential,
    Stationary,
    pair,
)
from discreet.features.structured import Structured

#: Which columns stand for a coordinate of this name.
ColumnsOf = Callable[[str], tuple[int, ...]]
#: Coordinates, by name or by column.
Columns = tuple[int | str, ...]


@dataclass(frozen=True)
class Part:
    """One term of a sum of kernels: `weight` times `kernel` on some of the coordinates.

    >>> Part(Linear(), columns=(0, 2), weight=0.5).columns
    (0, 2)
    >>> Part(Linear(), columns=("dose", "age"), weight=0.5).columns
    ('dose', 'age')
    """

    kernel: Simple
    columns: Columns
    weight: float

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Simple):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("part.kernel", "a kernel that is not itself a sum", self.kernel)
        object.__setattr__(self, "columns", _columns("part.columns", self.columns))
        object.__setattr__(self, "weight", checks.number("part.weight", self.weight, above=0.0))
        if not _named(self.columns):
            self.kernel.check(len(self.columns))

    @property
    def places(self) -> tuple[int, ...]:
        """The columns, once names are resolved."""
        return _places(self.columns)


@dataclass(frozen=True)
class KernelFactor:
    """One factor of a product of kernels: `kernel` on some of the coordinates.

    >>> KernelFactor(SquaredExponential(0.3), ("dose",)).columns
    ('dose',)
    """

    kernel: Simple
    columns: Columns

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Simple):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("factor.kernel", "a kernel that is not itself made of kernels")
        object.__setattr__(self, "columns", _columns("factor.columns", self.columns))
        if not _named(self.columns):
            self.kernel.check(len(self.columns))

    @property
    def places(self) -> tuple[int, ...]:
        """The columns, once names are resolved."""
        return _places(self.columns)


@dataclass(frozen=True)
class Product:
    """k(x, x') = prod_f k_f(x_f, x'_f), over groups f of coordinates that share none.

    A coordinate that no factor names does not matter to the function.

    >>> kernel = Product.over({"dose": SquaredExponential(0.3), ("arm",): Categories(0.5)})
    >>> [factor.columns for factor in kernel.factors]
    [('dose',), ('arm',)]
    >>> Product.over({0: SquaredExponential(1.0), 1: Categories(0.5)})([[0, 0]], [[1, 1]]).round(3)
    array([[0.303]])
    """

    factors: tuple[KernelFactor, ...]

    def __post_init__(self) -> None:
        factors = _tuple("factors", self.factors)
        if not factors or not all(isinstance(each, KernelFactor) for each in factors):
            raise InvalidArgument("factors", "one or more of KernelFactor")
        columns = [column for factor in factors for column in factor.columns]
        if len(set(columns)) < len(columns):
            raise InvalidArgument("factors", "coordinates of their own", columns)
        object.__setattr__(self, "factors", factors)

    @classmethod
    def over(cls, kernels: "Mapping[Any, Simple]") -> "Product":
        """A factor for each entry: a name, a column, or a tuple of them, and its kernel."""
        if not isinstance(kernels, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("kernels", "a mapping from coordinates to kernels")
        factors: list[KernelFactor] = []
        for key, kernel in kernels.items():
            columns: Columns = cast(Columns, key) if isinstance(key, tuple) else (key,)
            factors.append(KernelFactor(kernel, columns))
        return cls(tuple(factors))

    def check(self, dimension: int) -> None:
        """Refuse a dimension that lacks a column of some factor."""
        last = max(max(factor.places) for factor in self.factors)
        if last >= checks.count("dimension", dimension):
            raise InvalidArgument("columns", f"column numbers below {dimension}", last)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The matrix k(x_i, y_j)."""
        left, right = pair(x, y)
        self.check(left.shape[1])
        whole = np.ones((len(left), len(right)))
        for factor in self.factors:
            columns = list(factor.places)
            whole *= factor.kernel(left[:, columns], right[:, columns])
        return whole


@dataclass(frozen=True)
class Additive:
    """k(x, x') = sum_g weight_g k_g(x_g, x'_g), over groups g of coordinates (they may overlap).

    The weights are part of the model and are never rescaled behind your back: they must be
    positive and sum to at most 1, which keeps k(x, x) <= 1.

    >>> Additive.over(SquaredExponential(0.2), 2)([[0.0, 0.0]], [[0.0, 9.0]])
    array([[0.5]])
    """

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts:
            raise InvalidArgument("parts", "at least one part")
        total = math.fsum(part.weight for part in parts)
        if total > 1.0:
            raise InvalidArgument("parts", "weights that sum to at most 1", total)
        object.__setattr__(self, "parts", parts)

    @classmethod
    def over(cls, kernel: Simple, dimension: int) -> "Additive":
        """One group per coordinate, equal weights 1/d; lengthscales are dealt out in order."""
        kernel.check(checks.count("dimension", dimension))
        kernels = [_one_coordinate(kernel, column) for column in range(dimension)]
        return cls(tuple(Part(k, (j,), 1.0 / dimension) for j, k in enumerate(kernels)))

    def check(self, dimension: int) -> None:
        """Refuse a dimension that lacks a column of some part."""
        last = max(max(part.places) for part in self.parts)
        if last >= checks.count("dimension", dimension):
            raise InvalidArgument("columns", f"column numbers below {dimension}", last)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The matrix k(x_i, y_j)."""
        left, right = pair(x, y)
        self.check(left.shape[1])
        total = np.zeros((len(left), len(right)))
        for part in self.parts:
            columns = list(part.places)
            total += part.weight * part.kernel(left[:, columns], right[:, columns])
        return total


@dataclass(frozen=True)
class Learned:
    """One of several stationary kernels, whichever explains the releases best.

    The options are a public prior; choosing among them only reads what is released, so it costs
    no privacy. With `additive=True` the function is a sum over coordinates, each with an option
    of its own; under a share s > 0 the coordinates have a part in common:

        f(x) = sum_j f_j(x_j),        Cov(f_i, f_j) = s k        for i != j.

    >>> Learned.around(SquaredExponential(0.2), factor=2.0).options[0]
    SquaredExponential(lengthscale=0.1)
    >>> Learned(additive=True).shares
    (0.0, 0.9)
    """

    options: tuple[Stationary, ...] = field(
        default_factory=lambda: tuple(SquaredExponential(scale) for scale in (0.05, 0.1, 0.2))
    )
    additive: bool = False
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        options = _tuple("options", self.options)
        if not options or not all(isinstance(k, Stationary) for k in options):
            raise InvalidArgument("options", "one or more of SquaredExponential and Matern")
        if not isinstance(self.additive, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("additive", "True or False", self.additive)
        natural = (0.0, 0.9) if self.additive else (0.0,)
        given = natural if self.shares is None else _tuple("shares", self.shares)
        shares = tuple(checks.number("shares", share) for share in given)
        if not shares or shares[0] != 0.0 or not all(0.0 <= s < 1.0 for s in shares):
            raise InvalidArgument("shares", "0.0, then numbers below 1", self.shares)
        if not self.additive and shares != (0.0,):
            raise InvalidArgument("shares", "none without additive=True", self.shares)
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "shares", shares)

    @classmethod
    def around(cls, kernel: Stationary, factor: float = 4.0) -> "Learned":
        """The kernel with its lengthscales divided and multiplied by up to `factor`, by twos."""
        factor = checks.number("factor", factor, above=0.0)
        if not isinstance(kernel, Stationary):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("kernel", "a SquaredExponential or Matern kernel", kernel)
        steps = math.floor(math.log2(max(factor, 1.0)) + 1e-9)
        scales = [2.0**step for step in range(-steps, steps + 1)]
        return cls(tuple(_stretched(kernel, scale) for scale in scales))

    def check(self, dimension: int) -> None:
        """Refuse a dimension the options do not fit."""
        for option in self.options:
            option.check(1 if self.additive else dimension)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The average of the options: what their common features stand for."""
        left, right = pair(x, y)
        every = list(range(left.shape[1]))
        columns = [[j] for j in every] if self.additive else [every]
        parts = [k(left[:, c], right[:, c]) for k in self.options for c in columns]
        return np.sum(parts, axis=0) / len(parts)


Kernel = (
    SquaredExponential
    | Matern
    | Linear
    | Polynomial
    | Categories
    | Additive
    | Product
    | Learned
    | Structured
)


def on_columns(kernel: Kernel, columns_of: ColumnsOf) -> Kernel:
    """The kernel with columns in place of the names of coordinates.

    >>> named = Additive((Part(Linear(), ("arm",), 1.0),))
    >>> on_columns(named, {"dose": (0,), "arm": (1, 2)}.__getitem__).parts[0].columns
    (1, 2)
    """
    if isinstance(kernel, Additive):
        return Additive(
            tuple(replace(p, columns=_found(p.columns, columns_of)) for p in kernel.parts)
        )
    if isinstance(kernel, Product):
        found = (replace(f, columns=_found(f.columns, columns_of)) for f in kernel.factors)
        return Product(tuple(found))
    return kernel


def _found(columns: Columns, columns_of: ColumnsOf) -> tuple[int, ...]:
    each = [(c,) if isinstance(c, int) else columns_of(c) for c in columns]
    return tuple(column for some in each for column in some)


def _columns(argument: str, given: object) -> Columns:
    words = "distinct names of coordinates, or column numbers from 0"
    columns = _tuple(argument, given)
    if not columns or len(set(columns)) < len(columns):
        raise InvalidArgument(argument, words, columns)
    for each in columns:
        number = isinstance(each, int | np.integer) and not isinstance(each, bool) and each >= 0
        if not number and not isinstance(each, str):
            raise InvalidArgument(argument, words, columns)
    return tuple(each if isinstance(each, str) else int(each) for each in columns)


def _named(columns: Columns) -> bool:
    return any(isinstance(column, str) for column in columns)


def _places(columns: Columns) -> tuple[int, ...]:
    if _named(columns):
        raise InvalidArgument("columns", "column numbers: a plan puts them in place of names")
    return tuple(int(column) for column in columns)


def _stretched(kernel: Stationary, factor: float) -> Stationary:
    old = kernel.lengthscale
    new = tuple(factor * each for each in old) if isinstance(old, tuple) else factor * old
    return replace(kernel, lengthscale=new)


def _one_coordinate(kernel: Simple, column: int) -> Simple:
    if not isinstance(kernel, Stationary) or not isinstance(kernel.lengthscale, tuple):
        return kernel
    return replace(kernel, lengthscale=kernel.lengthscale[column])


def _tuple(argument: str, values: object) -> tuple[Any, ...]:
    if not isinstance(values, list | tuple):
        raise InvalidArgument(argument, "a tuple", values)
    return tuple(values)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
