"""The priors a plan allows, and which of them explains the releases best.

All of them are Gaussians over the coefficients of one feature map: with grid features the
statistics do not depend on the kernel, so it can be chosen after they are released. A coefficient
of frequency omega has prior variance signal^2 p(omega) / w(omega), p the normalised spectral
density of an option and w the weights of the map. The constant has room of its own, because
rewards rarely lie around the middle of their range.

With P = K^-1 + precision, precision and information what the releases say (see `belief`), the log
evidence of a prior K is, up to what all priors share,

    -1/2 log det K - 1/2 log det P + 1/2 information P^-1 information.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky

from discreet.agreement.plan import Plan
from discreet.arrays import Floats
from discreet.features.fourier import FourierFeatures
from discreet.features.kernels import Learned, Stationary
from discreet.features.maps import AdditiveFeatures, FeatureMap
from discreet.features.nystrom import NystromFeatures
from discreet.features.products import ProductFeatures
from discreet.learning.search import public_points, spread

#: The prior variance of the level of f, relative to that of its shape.
LEVEL = 10.0
#: Public points at which kernels are compared with features that are no lattice.
MANY_POINTS = 1024
#: A coordinate changes its option for at least this much evidence.
MARGIN = 1.0
#: How much more than its first answers f may vary: peaks that a design misses are found later.
AMPLITUDES = (1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Choice:
    """An option for each group of features, the share that groups have in common, and how much
    more f varies than its first answers did.
    """

    options: tuple[int, ...]
    share: float = 0.0
    amplitude: float = 1.0


@dataclass(frozen=True, eq=False)
class Bank:
    """The priors of a plan: variances[g][i] of group g's coefficients under option i, and level."""

    plan: Plan
    variances: tuple[tuple[Floats, ...], ...]
    level: Floats
    shares: tuple[float, ...]
    amplitudes: tuple[float, ...]
    #: For features that are no lattice: the covariance of all coefficients under each option.
    dense: tuple[Floats, ...] = ()

    @property
    def first(self) -> Choice:
        """The middle option everywhere."""
        return Choice(tuple((len(group) - 1) // 2 for group in self.variances))

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Where each group's coefficients are."""
        return tuple(group.features for group in self.plan.map.groups)

    @cached_property
    def _shapes(self) -> Floats:
        phi = self.plan.map(public_points(self.plan.domain))
        return phi - phi.mean(axis=0)

    def _variance(self, choice: Choice) -> Floats:
        own = [group[i] for group, i in zip(self.variances, choice.options, strict=True)]
        return np.concatenate(own) + self.level

    def covariance(self, choice: Choice) -> Floats:
        """K for a signal of 1."""
        if self.dense:
            return self.dense[choice.options[0]]
        whole = np.diag(self._variance(choice))
        if choice.share > 0.0:
            common = choice.share * np.diag(self.variances[0][choice.options[0]])
            for left, right in itertools.permutations(self.blocks, 2):
                whole[left, right] = common
        return whole

    def precision(self, choice: Choice, signal: float) -> Floats:
        """K^-1; an earlier study's own where the plan has one."""
        if self.plan.prior is not None:
            return self.plan.prior.precision
        if choice.share == 0.0 and not self.dense:
            return np.diag(1.0 / (signal * self._variance(choice)))
        covariance = signal * self.covariance(choice)
        return cho_solve(cho_factor(covariance), np.eye(len(covariance)))

    def shape_variance(self, choice: Choice) -> float:
        """The prior variance of f around its own mean, over the pool, for a signal of 1."""
        spread_out = self._shapes @ self.covariance(choice)
        variance = float(np.sum(spread_out * self._shapes)) / len(self._shapes)
        return max(variance, 1e-9)  # features of a long lengthscale may be a constant

    def signal(self, choice: Choice, shape: float | None) -> float:
        """What the kernel is multiplied by, for f to vary by `shape` around its own mean.

        Where nothing has told the shape yet, what the plan begins with.
        """
        if shape is None:
            return choice.amplitude * self.plan.signal_variance
        return choice.amplitude * shape / self.shape_variance(choice)

    def best(
        self, choice: Choice, shape: float | None, precision: Floats, information: Floats
    ) -> Choice:
        """The choice of most evidence, searched from this one; `shape` is the variance of f.

        The kernel first, then the amplitude under it.
        """
        if self.plan.prior is not None or self._is_single:
            return choice
        judge = _Judge(self, shape, precision, information)
        common = [
            replace(choice, options=(option,) * len(self.variances), share=share)
            for share in self.shares
            for option in range(len(self.variances[0]))
        ]
        found = max([choice, *common], key=judge.evidence)
        found = judge.each_group(found) if found.share == 0.0 and not self.dense else found
        return max((replace(found, amplitude=a) for a in self.amplitudes), key=judge.evidence)

    @property
    def _is_single(self) -> bool:
        return len(self.variances[0]) == len(self.shares) == len(self.amplitudes) == 1


@dataclass(frozen=True, eq=False)
class _Judge:
    """Compares choices by what the releases say."""

    bank: Bank
    shape: float | None
    precision: Floats
    information: Floats

    def evidence(self, choice: Choice) -> float:
        """The log evidence of a choice."""
        prior = self.bank.precision(choice, self._signal(choice))
        factor = cholesky(prior + self.precision, lower=True)
        fitted = cho_solve((factor, True), self.information)
        diagonal = choice.share == 0.0 and not self.bank.dense
        own = prior if diagonal else cholesky(prior, lower=True) ** 2
        sizes = 0.5 * np.log(np.diag(own)) - np.log(np.diag(factor))
        return float(np.sum(sizes) + 0.5 * self.information @ fitted)

    def each_group(self, choice: Choice) -> Choice:
        """Every group's own best option given the others', where that is better together."""
        signal = self._signal(choice)
        prior = self.bank.precision(choice, signal)
        covariance = cho_solve(cho_factor(prior + self.precision), np.eye(len(prior)))
        mean = covariance @ self.information
        options = list(choice.options)
        for g, block in enumerate(self.bank.blocks):
            tried = [signal * (each + self.bank.level[block]) for each in self.bank.variances[g]]
            now = tried[choice.options[g]]
            gains = [_gain(covariance[block, block], mean[block], now, each) for each in tried]
            if max(gains) > MARGIN:
                options[g] = int(np.argmax(gains))
        found = replace(choice, options=tuple(options))
        return max([choice, found], key=self.evidence)

    def _signal(self, choice: Choice) -> float:
        return self.bank.signal(choice, self.shape)


def _gain(covariance: Floats, mean: Floats, old: Floats, new: Floats) -> float:
    """How much evidence one block gains by other prior variances, from its posterior alone."""
    more = 1.0 / new - 1.0 / old
    mixed = np.eye(len(mean)) + covariance * more
    _, size = np.linalg.slogdet(mixed)
    lost = mean * more @ np.linalg.solve(mixed, mean)
    return 0.5 * float(np.sum(np.log(old / new)) - size - lost)


@lru_cache(maxsize=8)
def bank_of(plan: Plan) -> Bank:
    """The priors of a plan: one, unless its kernel is to be learnt."""
    kernel = plan.kernel
    if isinstance(plan.map, ProductFeatures | NystromFeatures):
        return _dense_bank(plan)
    options = kernel.options if isinstance(kernel, Learned) else (None,)
    shares = (kernel.shares or (0.0,)) if isinstance(kernel, Learned) else (0.0,)
    maps = (
        [part.features for part in plan.map.parts]
        if isinstance(plan.map, AdditiveFeatures)
        else [plan.map]
    )
    variances = tuple(tuple(_variances(each, option) for option in options) for each in maps)
    level = np.concatenate([_level(each) for each in maps])
    learnt = isinstance(kernel, Learned) and plan.signal_std is None
    return Bank(
        plan,
        variances,
        level,
        shares=shares if _alike(maps) else (0.0,),
        amplitudes=AMPLITUDES if learnt else (1.0,),
    )


def _dense_bank(plan: Plan) -> Bank:
    """Options by their covariance in features that none of them is diagonal in.

    With Phi the features at public points and K an option there, that is Phi^+ K Phi^+T; the
    features' own kernel has the identity. The level is a constant's coefficients, Phi^+ 1.
    """
    kernel, m = plan.kernel, plan.map.dimension
    points = spread(plan.domain, MANY_POINTS, np.random.Generator(np.random.Philox(m)))
    onto = np.linalg.pinv(plan.map(points))
    constant = onto @ np.ones(len(points))
    level = LEVEL * np.outer(constant, constant)
    options = kernel.options if isinstance(kernel, Learned) else ()
    grams = [onto @ option(points, points) @ onto.T for option in options] or [np.eye(m)]
    dense = tuple((g + g.T) / 2 + level + 1e-9 * np.eye(m) for g in grams)
    learnt = bool(options) and plan.signal_std is None
    one = tuple(np.ones(m) for _ in dense)
    return Bank(plan, (one,), np.zeros(m), (0.0,), AMPLITUDES if learnt else (1.0,), dense)


def _alike(maps: Sequence[FeatureMap]) -> bool:
    """Whether groups can have a part in common: coordinates of other widths have other features."""
    tables = [each.frequencies for each in maps if isinstance(each, FourierFeatures)]
    return len(tables) == len(maps) and all(np.array_equal(each, tables[0]) for each in tables)


def _variances(features: FeatureMap, option: Stationary | None) -> Floats:
    """The prior variance of each coefficient of a simple map."""
    if option is None or not isinstance(features, FourierFeatures):
        return np.ones(features.dimension)
    halves = np.where(features.frequencies.any(axis=1), 2.0, 1.0)
    density = halves * option.spectral_density(features.frequencies)
    ratio = np.maximum(density / math.fsum(density) / features.weights, 1e-7)
    return np.concatenate([ratio, ratio[_zeros(features) :]])


def _level(features: FeatureMap) -> Floats:
    """What the constant may vary by beyond the kernel, where the map has one."""
    level = np.zeros(features.dimension)
    if isinstance(features, FourierFeatures) and _zeros(features):
        level[0] = LEVEL / features.weights[0]
    return level


def _zeros(features: FourierFeatures) -> int:
    return int(not features.frequencies[0].any())
