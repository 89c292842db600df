"""What sums of codewords say of people whose actions nobody knows: by the law of who comes.

A report is a codeword u near v, which says a direction g and a residual h (`CodebookEncoding`). For
a book that fills the sphere of D dimensions evenly, with t = <u, v>,

    E[u | v] = c v,    E[u u^T | v] = k_2 I + (k_1 - k_2) v v^T,
    c = E[t],  k_1 = E[t^2],  k_2 = (1 - k_1) / (D - 1).

A fixed book differs by a few percent of v, another way for every v and every epoch. It is
antipodal, so what it gets wrong is a multiple of h: residuals that are right on average stay so.

Where n people went is known in law alone (`crowds`), omega_p the weights of made-up people:

    sum of u = n (c / w) sum_p omega_p slope_p g_p phi_p (theta - theta_0) + error,
    Cov[error] = n (E[u u^T] - E[u] E[u]^T).

People are drawn independently, so this covariance has all of it: who came, rewards, and the index.
It is not isotropic, and reading it as if it were makes runs sure of what they do not know.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import betaincinv

from discreet.arrays import Floats
from discreet.learning.clipped_lines import Lines
from discreet.learning.posterior import Posterior
from discreet.privacy.cap import Cap
from discreet.privacy.codebook import BookSums, CodebookEncoding


@dataclass(frozen=True)
class Geometry:
    """c, k_1 and k_2 of a cap in so many dimensions."""

    contraction: float
    along: float
    across: float

    @classmethod
    def of(cls, cap: Cap, dimension: int) -> "Geometry":
        """For codewords that fill the sphere evenly.

        >>> from fractions import Fraction
        >>> found = Geometry.of(Cap.of(Fraction(4), 1 << 14, 1269), 9)
        >>> round(found.contraction, 3), round(found.along, 3), round(found.across, 3)
        (0.485, 0.321, 0.085)
        """
        heights = _heights(cap.size, dimension)
        near = heights[: cap.nearest]
        first = cap.excess * float(near.sum())
        second = cap.excess * float(np.sum(near**2)) + float(cap.outside) * float(
            np.sum(heights**2)
        )
        return cls(first, second, (1.0 - second) / max(dimension - 1, 1))

    @property
    def excess(self) -> float:
        """k_1 - k_2."""
        return self.along - self.across


@lru_cache(maxsize=64)
def _heights(size: int, dimension: int) -> Floats:
    """<u, v> of evenly spread codewords u, largest first."""
    shares = (np.arange(size) + 0.5) / size
    if dimension == 1:
        return np.where(shares < 0.5, 1.0, -1.0)
    half = (dimension - 1) / 2.0
    return 1.0 - 2.0 * np.asarray(betaincinv(half, half, shares))


@dataclass(frozen=True, eq=False)
class Heard:
    """Sums of n reports of a crowd: phi of its people, their weights, and the sums."""

    encoding: CodebookEncoding
    phi: Floats
    weights: Floats
    reports: float
    sums: BookSums | None
    at_ends: bool

    @cached_property
    def g(self) -> Floats:
        """The directions of the crowd's people."""
        return self.encoding.along(self.phi)

    @cached_property
    def geometry(self) -> Geometry:
        """Of the epoch's book."""
        return Geometry.of(self.encoding.cap, self.encoding.dimension)

    @property
    def size_of_residuals(self) -> tuple[float, float]:
        """E[h^2 / w^2] by the lift's entry of E[u u^T], and the variance of this estimate.

        That entry is k_2 + (k_1 - k_2) (1 - E[h^2 / w^2]); the square of a coordinate of a sphere
        varies by 2 (D - 1) / (D + 2) times the square of its mean.
        """
        if self.sums is None or not self.encoding.lift:
            return 0.0, math.inf
        shape, d = self.geometry, self.encoding.dimension
        last = float(self.sums.second[-1, -1]) / self.reports
        middle = shape.across + shape.excess / 2.0
        variance = 2.0 * (d - 1.0) / (d + 2.0) * middle**2 / self.reports
        return 1.0 - (last - shape.across) / shape.excess, variance / shape.excess**2

    def lines(self, before: Posterior, noise: float) -> Lines:
        """How each person's residual depends on f."""
        clips = self.encoding.residual.clips and not self.at_ends
        unknown = before.variance_of(self.phi)
        return Lines.at(self.encoding.residual.width, unknown, noise, clips=clips)

    def squares(self, before: Posterior, noise: float) -> Floats:
        """E[h^2 / w^2] of each person; 1 where only the sign is told."""
        if not self.encoding.lift:
            return np.ones(len(self.phi))
        line = self.lines(before, noise)
        unknown = before.variance_of(self.phi)
        moved = self.phi @ (before.coefficients - self.encoding.residual.prediction)
        square = line.variance + np.square(line.slope) * (unknown + np.square(moved))
        return np.minimum(square / self.encoding.residual.width**2, 1.0)

    def observed(self, before: Posterior, noise: float) -> tuple[Floats, Floats]:
        """A and Cov[error], along the directions."""
        n, r, shape = self.reports, self.g.shape[1], self.geometry
        line, width = self.lines(before, noise), self.encoding.residual.width
        weighed = self.g * (self.weights * line.slope)[:, None]
        design = n * shape.contraction / width * (weighed.T @ self.phi)
        spread = self.g * (self.weights * self.squares(before, noise))[:, None]
        second = shape.across * np.eye(r) + shape.excess * (spread.T @ self.g)
        mean = design @ (before.coefficients - self.encoding.residual.prediction) / n
        return design, n * (second - _shortened(mean, second))

    def told(self, before: Posterior, noise: float) -> tuple[Floats, Floats]:
        """What they add to precision and information."""
        design, covariance = self.observed(before, noise)
        weighted = cho_solve(cho_factor(covariance, lower=True), design)
        values = self._first + design @ self.encoding.residual.prediction
        return design.T @ weighted, weighted.T @ values

    def evidence(self, before: Posterior, noise: float) -> float:
        """log p(sum of u), and of what the lift tells of h^2, with rewards of this variance."""
        design, covariance = self.observed(before, noise)
        half = design @ before.whitening.T
        moved = before.coefficients - self.encoding.residual.prediction
        miss = self._first - design @ moved
        factor = cho_factor(covariance + half @ half.T, lower=True)
        likely = -float(np.log(np.diag(factor[0])).sum()) - 0.5 * float(
            miss @ cho_solve(factor, miss)
        )
        if not self.encoding.lift or self.sums is None:
            return likely
        size, variance = self.size_of_residuals
        expected = float(self.weights @ self.squares(before, noise))
        return likely - 0.5 * (size - expected) ** 2 / variance

    @property
    def _first(self) -> Floats:
        directions = len(self.encoding.directions)
        return np.zeros(directions) if self.sums is None else self.sums.first[:directions]


def _shortened(mean: Floats, second: Floats) -> Floats:
    """mean mean^T, never so large that nothing is left of the covariance."""
    share = float(mean @ cho_solve(cho_factor(second, lower=True), mean))
    return mean[:, None] * mean * min(1.0, 0.5 / max(share, 1e-12))
