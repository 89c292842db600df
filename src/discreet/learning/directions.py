"""Where to spend noise: the few directions of an epoch whose release teaches the most.

The actions x_j that a release over the whole box looks at are public, so only the sums s_j of
their residuals are private, and any unit vectors g_j may carry them: v = sum_j g_j s_j gets noise
sigma whatever the g_j are (`RewardEncoding`). With H the covariance of the s_j, as often as they
count, and K theirs with f at the asks of the epoch, learning v lowers the summed variance of f
over these asks by

    tr(M^T Y M (M^T H M + sigma^2 I)^-1),    Y = K K^T,

M with rows g_j. Few rows pool the rounds and many tell actions apart; a quasi-Newton search
from the principal directions finds the balance. Everything here is public.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from discreet.arrays import Floats
from discreet.learning.inference import Clipped, along_lines
from discreet.learning.posterior import Posterior
from discreet.learning.singular import thin_svd
from discreet.learning.window import Block, Window, gathered

#: Directions mix at most this many principal ones.
PRINCIPAL = 64
#: Steps of the search.
STEPS = 60


@dataclass(frozen=True, eq=False)
class Prospect:
    """What a release will look at: the features of its points, Y (`useful`) and H (`total`)."""

    phi: Floats
    useful: Floats
    total: Floats

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        window: Window[Block],
        prior: Floats,
        lines: Sequence[Clipped],
        noise: float,
    ) -> "Prospect":
        """For a window whose newest block is the coming epoch's; `noise` is that of rewards.

        s = c (slope (N phi theta + E) + error), theta and E as uncertain as the window says.
        """
        slopes, excess = along_lines(window.blocks, lines, noise)
        points, counts, weights = gathered(window.blocks)
        phi, m = posterior.features(points), len(prior)
        precision = window.precision.copy()
        precision[:m, :m] += prior
        factor = cholesky(precision, lower=True)
        sums = np.concatenate([counts[:, None] * phi, np.eye(len(points))], axis=1)
        asked = np.zeros((len(window.blocks[0].counts), len(precision)))
        asked[:, :m] = phi[: len(asked)]
        whitened = solve_triangular(factor, (slopes[:, None] * sums).T, lower=True)
        total = whitened.T @ whitened + np.diag(excess * counts)
        told = whitened.T @ solve_triangular(factor, asked.T, lower=True)
        told *= weights[:, None] * np.sqrt(counts[: len(asked)])
        return cls(phi, told @ told.T, total * np.outer(weights, weights))


@dataclass(frozen=True, eq=False)
class _Gain:
    """The lowered variance as a function of how unnormalised rows mix a basis of actions."""

    basis: Floats
    useful: Floats
    total: Floats
    noise: float

    def __call__(self, mixing: Floats) -> tuple[float, Floats]:
        """The gain and its gradient."""
        rows = self.basis @ mixing
        lengths = np.linalg.norm(rows, axis=1, keepdims=True) + 1e-150
        unit: Floats = rows / lengths
        seen = self.total @ unit
        inverse = np.linalg.inv(unit.T @ seen + self.noise**2 * np.eye(mixing.shape[1]))
        told = self.useful @ unit
        gain = unit.T @ told
        slope = 2.0 * (told - seen @ inverse @ gain) @ inverse
        slope -= unit * np.sum(slope * unit, axis=1, keepdims=True)
        return float(np.sum(gain * inverse)), self.basis.T @ (slope / lengths)


def best_directions(posterior: Posterior, prospect: Prospect, noise: float, most: int) -> Floats:
    """B, one of at most so many directions a row: g(x) = B phi(x) / ||B phi(x)||."""
    spread = prospect.phi @ posterior.whitening.T
    left, singular, right = thin_svd(spread)
    kept = max(1, int(np.sum(singular[:PRINCIPAL] > 1e-7 * singular[0])))
    left, singular, right = left[:, :kept], singular[:kept], right[:kept]
    gain = _Gain(left, prospect.useful, prospect.total, noise)
    shape = (kept, min(most, kept))
    begin = np.eye(*shape) * singular[:, None]
    scale = gain(begin)[0]

    def cost(flat: Floats) -> tuple[float, Floats]:
        value, slope = gain(flat.reshape(shape))
        return -value / scale, -slope.ravel() / scale

    found = minimize(cost, begin.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return (found.x.reshape(shape).T / singular) @ right @ posterior.whitening
