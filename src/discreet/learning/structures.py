"""Structures of a function, as different priors over one feature map, weighed by the releases.

With product features phi_t = prod_f u_f,t(f) a structure's covariance of coefficients is a product,

    K[s, t] = prod_f C_f[s(f), t(f)],        C_f = U^+ (a + (1 - a) k_f) U^+T,

U the functions of coordinate f at points that fill it. Each structure comes in several amplitudes.
With P and b what the releases say (see `belief`), and K = L L^T, its log evidence is

    1/2 |F^-1 L^T b|^2 - log det F,        F F^T = I + L^T P L,

up to what all share. What is believed is the mixture, taken for the Gaussian of its mean and
covariance: where structures disagree, it is unsure. That is post-processing of releases.

Under contexts two mixtures serve. What is believed of f weighs all structures: with few people,
mostly the one by which contexts do not matter. What a release carries, and how it is read, goes by
the widest structures alone: a release that was made for people who are all alike could never tell
that they differ.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import cho_solve, cholesky, pinv, solve_triangular

from discreet.agreement.plan import Plan
from discreet.arrays import Floats, frozen
from discreet.features.products import Factor, NumberFactor, ProductFeatures
from discreet.features.simple_kernels import Simple
from discreet.features.structured import Structure, Structured
from discreet.learning.posterior import Posterior
from discreet.learning.search import public_points

#: How much more or less than half of the variance of first answers f may have.
AMPLITUDES = (0.25, 1.0, 4.0)
#: The prior variance of the level of f, in half-widths of the reward range squared.
LEVEL = 2.5
#: What keeps a covariance of full rank, as a share of the function's variance, and of its level's.
LEAST, LEAST_OF_LEVEL = 1e-7, 1e-13
#: Where one coordinate's functions are compared with kernels.
MIDPOINTS = 256
#: A structure of less weight does not count.
NEGLIGIBLE = 1e-5
#: Directions of features in which people differ less than this, against the largest, are not seen.
SEEN = 1e-3


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights of the structures (in each amplitude), and the Gaussian that stands for them all."""

    weights: Floats
    mean: Floats
    covariance: Floats


@dataclass(frozen=True, eq=False)
class Parts:
    """Each structure's log evidence and posterior mean; L and F, which give its covariance."""

    evidence: Floats
    means: Floats
    roots: tuple[Floats, ...]
    factors: tuple[Floats, ...]

    def covariance(self, number: int) -> Floats:
        """L (F F^T)^-1 L^T of one of them."""
        half = solve_triangular(self.factors[number], self.roots[number].T, lower=True)
        return half.T @ half


@dataclass(frozen=True, eq=False)
class Asked:
    """Where people were asked, which share of them at each point, and which share of theta is told.

    The last is a matrix: the posterior mean is `told` times theta, but for noise and prior.
    """

    points: Floats
    shares: Floats
    told: Floats


@dataclass(frozen=True, eq=False)
class Structures:
    """The structures that a plan weighs: what each says of the coefficients, before any release."""

    plan: Plan
    kernel: Structured
    covariances: tuple[Floats, ...]
    sizes: tuple[float, ...]
    level: Floats

    @classmethod
    def of(cls, plan: Plan, kernel: Structured, features: ProductFeatures) -> "Structures":
        """Those of a kernel, over product features; each f varies by 1 around its mean."""
        phi = features(public_points(plan.domain))
        shape = np.cov(phi.T, bias=True).reshape(features.dimension, features.dimension)
        tables = [_Functions.of(factor, features.inputs) for factor in features.factors]
        constant = _product([table.constant for table in tables], features)
        found: list[Floats] = []
        sizes: list[float] = []
        for structure in kernel.structures:
            parts = [table.covariance(*kernel.part(structure, table.columns)) for table in tables]
            whole = _product(parts, features)
            sizes.append(max(float(np.sum(whole * shape)), 1e-9))
            found.append(whole / sizes[-1])
        return cls(plan, kernel, tuple(found), tuple(sizes), constant)

    @property
    def structures(self) -> tuple[Structure, ...]:
        """The kernel's."""
        return self.kernel.structures

    @property
    def amplitudes(self) -> tuple[float, ...]:
        """How much f varies, relative to its first guess; known where the plan says it.

        Under contexts other amplitudes were never worth their doubt (decision 27).
        """
        learnt = self.plan.signal_std is None and self.plan.decisions != "context"
        return AMPLITUDES if learnt else (1.0,)

    @property
    def some_are_narrow(self) -> bool:
        """Whether some structures leave out what others have."""
        return not all(structure.is_wide for structure in self.structures)

    @lru_cache(maxsize=4)  # noqa: B019 - beliefs of one study share the bank and few shapes
    def _roots(self, shape: float) -> tuple[Floats, ...]:
        least = max(LEAST * shape, LEAST_OF_LEVEL * LEVEL * float(np.trace(self.level)))
        rest = LEVEL * self.level + least * np.eye(len(self.level))
        return tuple(
            cholesky(amplitude * shape * each + rest, lower=True)
            for each in self.covariances
            for amplitude in self.amplitudes
        )

    def parts(self, shape: float | None, precision: Floats, information: Floats) -> Parts:
        """What each structure makes of releases that say this; `shape` is the variance of f."""
        m, roots = len(information), self._roots(self.shape(shape))
        evidence, means, factors = list[float](), list[Floats](), list[Floats]()
        for root in roots:
            factor = cholesky(np.eye(m) + root.T @ precision @ root, lower=True)
            told = solve_triangular(factor, root.T @ information, lower=True)
            evidence.append(0.5 * float(told @ told) - float(np.sum(np.log(np.diag(factor)))))
            means.append(root @ solve_triangular(factor, told, lower=True, trans="T"))
            factors.append(factor)
        return Parts(np.array(evidence), np.array(means), roots, tuple(factors))

    def weights(self, parts: Parts, *, wide: bool = False) -> Floats:
        """How likely each structure is in each amplitude: of all of them, or of the widest."""
        counts = [each.is_wide or not wide for each in self.structures]
        likely = np.where(counts, np.log(self.kernel.weights), -np.inf)
        evidence = parts.evidence + np.repeat(likely, len(self.amplitudes))
        weights: Floats = np.exp(evidence - evidence.max())
        return weights / weights.sum()

    def mixture(self, parts: Parts, *, wide: bool = False) -> Mixture:
        """All structures weighed, or the widest alone."""
        weights = self.weights(parts, wide=wide)
        mean = weights @ parts.means
        covariance = np.zeros((len(mean), len(mean)))
        for number in np.flatnonzero(weights > NEGLIGIBLE).tolist():
            off = parts.means[number] - mean
            covariance += weights[number] * (parts.covariance(number) + np.outer(off, off))
        return Mixture(weights, mean, covariance)

    def posterior(self, parts: Parts, *, wide: bool) -> Posterior:
        """The Gaussian of the mixture."""
        found = self.mixture(parts, wide=wide)
        m = len(found.mean)
        whole = cho_solve((cholesky(found.covariance, lower=True), True), np.eye(m))
        whole = (whole + whole.T) / 2
        return Posterior(self.plan.map, whole, whole @ found.mean)

    def left_out(
        self, shape: float | None, weights: Floats, points: Floats, asked: Asked
    ) -> Floats:
        """What features leave out of f at each point x, but for what was answered with the rest.

            f = phi theta + e,        Cov[e(x), e(x')] = k(x, x') - phi(x) K phi(x')

        What e has in common with features where people were asked is taken for a part of theta,

            c_i(x) = p_i phi(x)^T S M^+ phi(x_i),      M = sum_i p_i phi(x_i) phi(x_i)^T,

        p_i the share of them at x_i and S the share of theta that is told, so that the variance is
        that of e(x) - sum_i c_i(x) e(x_i).
        """
        phi, features = self.plan.map(points), self.plan.map(asked.points)
        answered = phi @ asked.told @ _inverse(asked.shares, features)
        answered = answered @ (features * asked.shares[:, None]).T
        total = np.zeros(len(points))
        each = weights.reshape(-1, len(self.amplitudes)) @ np.array(self.amplitudes)
        parts = zip(self.structures, self.covariances, self.sizes, each, strict=True)
        for structure, covariance, size, weight in parts:
            if weight <= NEGLIGIBLE:
                continue
            own = 1.0 / size - np.sum((phi @ covariance) * phi, axis=1)  # k(x, x) = 1
            to = self.kernel.under(structure, points, asked.points) / size
            to -= phi @ covariance @ features.T
            among = self.kernel.under(structure, asked.points, asked.points) / size
            among -= features @ covariance @ features.T
            rest = own + np.sum((answered @ among - 2.0 * to) * answered, axis=1)
            total += weight * np.maximum(rest, 0.0)
        return self.shape(shape) * total

    def believed(self, parts: Parts) -> dict[str, float]:
        """How likely each kind of structure is, in words, the likeliest first."""
        return _shares((structure.words, weight) for structure, weight in self._likely(parts))

    def needed(self, parts: Parts) -> dict[str, float]:
        """How likely it is that each context matters, the likeliest first.

        Nothing where all of several contexts matter or none.
        """
        domain = self.plan.domain
        if len(domain.context) > 1 and not self.kernel.selects:
            return {}
        return _shares(
            (name, weight * structure.needs(domain.columns(name)))
            for structure, weight in self._likely(parts)
            for name in domain.context
        )

    def _likely(self, parts: Parts) -> list[tuple[Structure, float]]:
        weights = self.weights(parts).reshape(-1, len(self.amplitudes)).sum(axis=1)
        return list(zip(self.structures, weights.tolist(), strict=True))

    def draw(self, signal: float, rng: np.random.Generator) -> Floats:
        """Coefficients of one f around the middle of the range: any structure."""
        chosen = int(rng.choice(len(self.structures), p=self.kernel.weights))
        values, vectors = np.linalg.eigh(self.covariances[chosen])
        roots = vectors * np.sqrt(signal * np.maximum(values, 0.0))
        return roots @ rng.standard_normal(len(values))

    def shape(self, shape: float | None) -> float:
        """The variance of f: as the releases say, or before any, as the plan does."""
        return self.plan.signal_variance if shape is None else shape


@dataclass(frozen=True, eq=False)
class _Functions:
    """The functions of one coordinate at points that fill it, and how to get back from values."""

    columns: tuple[int, ...]
    points: Floats
    inverse: Floats

    @classmethod
    def of(cls, factor: Factor, inputs: int) -> "_Functions":
        if isinstance(factor, NumberFactor):
            points = ((np.arange(MIDPOINTS) + 0.5) / MIDPOINTS)[:, None]
        else:
            points = factor.vertices
        rows = np.zeros((len(points), inputs))
        rows[:, list(factor.columns)] = points
        inverse: Floats = np.asarray(pinv(factor(rows), rtol=1e-6), np.float64)
        return cls(factor.columns, points, inverse)

    @property
    def constant(self) -> Floats:
        """What a constant's coefficients vary by."""
        ones: Floats = self.inverse.sum(axis=1)
        return np.outer(ones, ones)

    @lru_cache(maxsize=16)  # noqa: B019 - many structures share what they say of a coordinate
    def covariance(self, own: Simple, share: float) -> Floats:
        """C_f under a structure with this kernel and share."""
        varies = self.inverse @ own(self.points, self.points) @ self.inverse.T
        return frozen(share * self.constant + (1.0 - share) * varies)


def _shares(each: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The sum of what each name has, the largest first."""
    shares: dict[str, float] = {}
    for name, share in each:
        shares[name] = shares.get(name, 0.0) + share
    return dict(sorted(shares.items(), key=lambda one: -one[1]))


def _inverse(shares: Floats, features: Floats) -> Floats:
    """M^+, where M is not all but 0."""
    values, vectors = np.linalg.eigh((features * shares[:, None]).T @ features)
    kept = values > SEEN * values[-1]
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T


def _product(parts: Sequence[Floats], features: ProductFeatures) -> Floats:
    whole = np.ones((features.dimension, features.dimension))
    for part, chosen in zip(parts, features.terms.T, strict=True):
        whole *= part[np.ix_(chosen, chosen)]
    return whole


@lru_cache(maxsize=8)
def structures_of(plan: Plan) -> Structures | None:
    """The structures of a plan whose kernel leaves them open; None of any other."""
    kernel, features = plan.kernel, plan.map
    if not isinstance(kernel, Structured) or not isinstance(features, ProductFeatures):
        return None
    return None if plan.prior is not None else Structures.of(plan, kernel, features)
