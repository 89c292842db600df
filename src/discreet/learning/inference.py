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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.special import ndtr

from discreet.arrays import Floats, Integers
from discreet.features.maps import FeatureMap
from discreet.learning.posterior import Posterior
from discreet.learning.window import Block, Window, gathered
from discreet.privacy.encodings import Encoding

#: Residuals of which a larger share of the width's square is seen are taken for this share.
SATURATED = 0.97
#: How far people may be from where a law puts them: 1 is as if all of them did the same.
DOUBTS = (0.03, 0.1, 0.3, 1.0)


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

    def excess(self, noise: float) -> float:
        """What clipping adds to the variance that rewards of this variance bring."""
        return max(self.variance - self.slope**2 * noise, 1e-12)


def unclipped_variance(second: float, width: float) -> float:
    """s^2 with E[clip(s z, +-width)^2] = second, z standard normal; large where all is clipped.

    >>> round(unclipped_variance(0.25, 10.0), 6)
    0.25
    >>> unclipped_variance(0.5161, 1.0).__round__(3)
    1.0
    """

    def excess(log_s: float) -> float:
        return Clipped.at(width, 0.0, math.exp(2.0 * log_s)).variance - second

    second = min(max(second, 1e-7 * width**2), SATURATED * width**2)
    return math.exp(2.0 * float(brentq(excess, math.log(1e-4 * width), math.log(1e3 * width))))


@dataclass(frozen=True, eq=False)
class Statistics:
    """What an epoch's release says, and how uncertain it is.

    `gram` is the sum of phi phi^T, `cross` that of h phi (along some directions only, where there
    are `blocks` of public asks) and `spread` that of h^2; `gram_noise` holds the variances of the
    gram's noise. `rounds` is how many there are in these sums: those of earlier blocks count less
    (see `looks`).
    """

    gram: Floats
    cross: Floats
    spread: float
    gram_noise: Floats
    rounds: float
    blocks: tuple[Any, ...] = ()

    def residual_square(self, moved: Floats) -> float:
        """The sum of squared residuals from a prediction moved by these coefficients.

        Where only some directions were released, the prediction is taken to be right on average.
        """
        if not moved.any():
            return self.spread
        square = float(moved @ self.gram @ moved)
        if self.blocks:
            return self.spread - square
        return self.spread - 2.0 * float(moved @ self.cross) + square


def read(
    features: FeatureMap,
    encoding: Encoding,
    integers: Integers,
    *,
    asks: int,
    points: Floats,
    blocks: tuple[Block, ...] = (),
    laws: Floats | None = None,
) -> Statistics:
    """The statistics in a release, its noisy gram moved to what a law of actions expects.

    `asks` is the number of rounds that are summed. `laws` are weights over the public `points`, one
    law a row (see `policy`); by default all points are as likely. Where the gram is not released,
    `blocks` hold the public asks of this epoch and of earlier ones that it looks at again.
    """
    values, variances = integers.astype(np.float64), np.square(encoding.stds(features))
    gram_size = len(values) - 1 - features.dimension
    noisy = (variances > 0) & (np.arange(len(values)) < gram_size)
    if noisy.any():
        rows = encoding.encode(features, points, np.zeros(len(points))).astype(np.float64)
        uniform = np.full((1, len(points)), 1.0 / len(points))
        expected, spread = likeliest(
            uniform if laws is None else laws, rows[:, noisy], values[noisy], variances[noisy], asks
        )
        share = spread / (spread + variances[noisy])
        values[noisy] = expected + share * (values[noisy] - expected)
        variances[noisy] *= share
    moments = encoding.decode(features, values, asks=asks)
    gram_noise = encoding.gram_noise(features, variances)
    if moments.gram is None:
        places, counts, weights = gathered(blocks)
        phi, often = features(places), weights**2 * counts
        gram, rounds = (phi * often[:, None]).T @ phi, float(often.sum())
        shown = blocks if encoding.is_noisy else ()
        return Statistics(gram, moments.cross, moments.spread, gram_noise, rounds, shown)
    gram = nonnegative(moments.gram)
    return Statistics(gram, moments.cross, moments.spread, gram_noise, float(asks))


def likeliest(
    laws: Floats, rows: Floats, values: Floats, variances: Floats, asks: int
) -> tuple[Floats, Floats]:
    """What n asks are expected to add up to, and with which variance, by the likeliest law.

    With mu_k and v_k the mean and variance of integer k under a law, and d_k its variance when
    all points are as likely, the sum of n asks is taken for

        n mu_k +- sqrt(n v_k + n^2 t d_k),    t the share of doubt in the law,

    and noise of variance s_k^2 on top. Law and doubt are those under which the noisy sums are
    likeliest. Without a law, pure noise in empty directions counts as evidence, epoch after epoch;
    without doubt, a wrong law would.
    """
    overall = rows.var(axis=0)
    best, found = -math.inf, (values, variances)
    for law in laws:
        mean = law @ rows
        own = np.maximum(law @ np.square(rows) - np.square(mean), 0.0)
        for doubt in DOUBTS:
            spread = asks * own + asks**2 * doubt * overall
            total = spread + variances
            miss = np.log(total) + np.square(values - asks * mean) / total
            if (likelihood := -0.5 * float(np.sum(miss))) > best:
                best, found = likelihood, (asks * mean, spread)
    return found


def look(
    features: FeatureMap,
    window: Window[Block],
    encoding: Encoding,
    cross: Floats,
    lines: Sequence[Clipped],
    noise: float,
) -> Window[Block]:
    """The window after a release that looks at its blocks, each along its line.

    `noise` is the variance of rewards. Of what a line leaves open, slope^2 noise is the block's
    own, the same in every look; the rest, which clipping brings, is taken as new each time.
    """
    points, counts, weights = gathered(window.blocks)
    slopes, excess = along_lines(window.blocks, lines, noise)
    phi = features(points)
    g = weights[:, None] * encoding.along(phi)
    along = slopes[:, None] * g
    theta = (along * counts[:, None]).T @ phi
    design = np.concatenate([theta, along.T], axis=1)
    covariance = (g * (excess * counts)[:, None]).T @ g + encoding.noise.cross**2 * np.eye(
        len(cross)
    )
    return window.observe(design, cross + theta @ encoding.residual.prediction, covariance)


def along_lines(
    blocks: Sequence[Block], lines: Sequence[Clipped], noise: float
) -> tuple[Floats, Floats]:
    """Slope and excess variance at each point of the blocks, whose rewards have this variance."""
    sizes = [len(block.counts) for block in blocks]
    slopes, excess = [line.slope for line in lines], [line.excess(noise) for line in lines]
    return np.repeat(slopes, sizes), np.repeat(excess, sizes)


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
    diagonal = np.full(len(found.gram), encoding.noise.cross**2)
    if encoding.noise.gram > 0.0:
        remaining = np.diag(posterior.covariance)
        unknown = posterior.coefficients - encoding.residual.prediction
        diagonal += line.slope**2 * (found.gram_noise @ (remaining + unknown**2))
    return line.variance * found.gram + np.diag(diagonal)


def expected_posterior(
    posterior: Posterior, encoding: Encoding, asks: int, line: Clipped, points: Floats
) -> Posterior:
    """The posterior, but for its mean, after an epoch that spreads over the points."""
    features, block = posterior.features, Block.even(points, asks)
    if encoding.public_gram and encoding.is_noisy:
        return _expected_look(posterior, encoding, block, line)
    rows = encoding.encode(features, points, np.zeros(len(points)))
    if (announced := encoding.announce(features, points)) is not None:
        rows = rows + announced
    typical = (rows.mean(axis=0) * asks).astype(np.int64)
    found = read(features, encoding, typical, asks=asks, points=points, blocks=(block,))
    blank = replace(found, cross=np.zeros_like(found.cross))
    return observe(posterior, encoding, blank, line)


def _expected_look(
    posterior: Posterior, encoding: Encoding, block: Block, line: Clipped
) -> Posterior:
    phi = posterior.features(block.points)
    g: Floats = encoding.along(phi)
    each = g * block.counts[:, None]
    covariance = line.variance * (each.T @ g) + encoding.noise.cross**2 * np.eye(g.shape[1])
    return posterior.observe(line.slope * (each.T @ phi), np.zeros(len(covariance)), covariance)


def nonnegative(gram: Floats) -> Floats:
    """The nearest positive semidefinite matrix: noise may have made eigenvalues negative."""
    values, vectors = eigh(gram)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))
    return roots @ roots.T
