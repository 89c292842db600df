"""What a clipped, noisy statistic says about theta.

A round's residual h = clip(f(x) - f_0(x) + noise, +-w), f_0 the public prediction, is linear in
what is unknown only on average. With s^2 the variance of the unclipped residual, and a = w / s,

    slope = E[dh / df] = 2 Phi(a) - 1
    Var[h] = s^2 (slope - 2 a phi(a)) + 2 w^2 Phi(-a)        (Gaussian residual)

so h = slope (f - f_0) + error with Var[error] = Var[h] - slope^2 Var[f - f_0]. Summed over an
epoch, with gram noise H and cross noise n of known variance,

    cross + slope G theta_0 = slope G theta + R-noise,
    R = Var[error] G + sigma_u^2 I + slope^2 Cov(H (theta - theta_0)),

a noisy linear observation of theta. All of it is post-processing of what is public.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import ndtr

from discreet.encodings import Encoding
from discreet.features import FeatureMap
from discreet.posterior import Posterior

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Clipped:
    """A residual clipped at +-width, as a line plus error.

    >>> wide = Clipped.at(width=1e9, unknown=0.5, noise=0.25)  # no clipping: the identity
    >>> wide.slope, round(wide.variance, 12)
    (1.0, 0.25)
    """

    slope: float
    variance: float

    @classmethod
    def at(cls, width: float, unknown: float, noise: float) -> "Clipped":
        """For a residual of variance `unknown` (of f - f_0) + `noise` (of a reward around f)."""
        spread = math.sqrt(unknown + noise)
        a = width / spread
        slope = 2.0 * float(ndtr(a)) - 1.0
        density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
        inside = spread**2 * (slope - 2.0 * a * density) if a < 40 else spread**2
        second = inside + (2.0 * width**2 * float(ndtr(-a)) if a < 40 else 0.0)
        return cls(slope, max(second - slope**2 * unknown, 1e-12))


@dataclass(frozen=True, eq=False)
class Statistics:
    """What an epoch's release says of its gram matrix and cross vector, and how uncertain."""

    gram: Floats
    cross: Floats
    gram_noise: Floats


def read(
    features: FeatureMap, encoding: Encoding, integers: Integers, *, asks: int, points: Floats
) -> Statistics:
    """The statistics in a release, its noisy gram shrunk to what n rounds can add up to.

    Before looking, an integer of the gram is taken for n mu_k +- n sigma_k, with mu_k and sigma_k
    its mean and spread over the domain (`points`): as wide as if everyone did the same. With
    noise s_k the best guess moves a share K = n^2 sigma_k^2 / (n^2 sigma_k^2 + s_k^2) of the way
    to what was released, and K s_k^2 is left of the noise. Without this, pure noise in empty
    directions counts as evidence, epoch after epoch.
    """
    values, variances = integers.astype(np.float64), np.square(encoding.stds(features))
    rows = encoding.encode(features, points, np.zeros(len(points))).astype(np.float64)
    noisy = (variances > 0) & (np.arange(len(values)) < len(values) - features.dimension)
    mean, spread = asks * rows[:, noisy].mean(axis=0), asks**2 * rows[:, noisy].var(axis=0)
    share = spread / (spread + variances[noisy])
    values[noisy] = mean + share * (values[noisy] - mean)
    variances[noisy] *= share
    moments = encoding.decode(features, values, asks=asks)
    gram = np.zeros((0, 0)) if moments.gram is None else nonnegative(moments.gram)
    return Statistics(gram, moments.cross, encoding.gram_noise(features, variances))


def observe(
    posterior: Posterior, encoding: Encoding, found: Statistics, line: Clipped
) -> Posterior:
    """The posterior after the statistics of one epoch."""
    prediction = encoding.residual.prediction
    values = found.cross + line.slope * (found.gram @ prediction)
    if encoding.noise.cross == 0.0:
        return posterior.absorb(
            line.slope**2 * found.gram, line.slope * values, noise_variance=line.variance
        )
    covariance = noise_covariance(posterior, encoding, found, line)
    return posterior.observe(line.slope * found.gram, values, covariance)


def noise_covariance(
    posterior: Posterior, encoding: Encoding, found: Statistics, line: Clipped
) -> Floats:
    """R: rewards around their line, cross noise, and gram noise on what is still unknown.

    Noise on different entries of a row of H is taken as independent; its variance is exact.
    """
    remaining = np.diag(posterior.covariance)
    unknown = posterior.coefficients - encoding.residual.prediction
    gram_noise = found.gram_noise @ (remaining + unknown**2)
    diagonal = encoding.noise.cross**2 + line.slope**2 * gram_noise
    return line.variance * found.gram + np.diag(diagonal)


def expected_error(
    posterior: Posterior, encoding: Encoding, asks: int, line: Clipped, points: Floats
) -> float:
    """The mean posterior variance of f at the points after an epoch that spreads over them."""
    features = posterior.features
    rows = encoding.encode(features, points, np.zeros(len(points)))
    typical = (rows.mean(axis=0) * asks).astype(np.int64)
    found = read(features, encoding, typical, asks=asks, points=points)
    blank = Statistics(found.gram, np.zeros(features.dimension), found.gram_noise)
    return float(observe(posterior, encoding, blank, line).variance(points).mean())


def nonnegative(gram: Floats) -> Floats:
    """The nearest positive semidefinite matrix: noise may have made eigenvalues negative."""
    values, vectors = eigh(gram)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))
    return roots @ roots.T
