"""Where to spend noise: the few directions of an epoch whose release teaches the most.

The actions x_j of an epoch over the whole box are public, each asked n_j times, so only the
sums s_j of their residuals are private, and any unit vectors g_j may carry them: v = sum_j g_j
s_j gets noise sigma whatever the g_j are (`RewardEncoding`). With C the covariance of f at the
actions, N = diag(n) and reward variance rho^2, learning v lowers the mean variance of f over
the asks by

    tr(M^T Y M (M^T H M + sigma^2 I)^-1) / n,    H = N C N + rho^2 N,    Y = (C N)^T N (C N),

M with rows g_j. Few rows pool the rounds and many tell actions apart; a quasi-Newton search
from the principal directions finds the balance. Everything here is public.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd
from scipy.optimize import minimize

from discreet.posterior import Posterior

Floats = NDArray[np.float64]

#: At most this many directions are released: under noise, more never paid.
MOST = 32
#: Directions mix at most this many principal ones.
PRINCIPAL = 64
#: Steps of the search.
STEPS = 60


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


def best_directions(
    posterior: Posterior, menu: Floats, counts: Floats, *, variance: float, noise: float
) -> Floats:
    """B, one direction a row, for `RewardEncoding`: g(x) = B phi(x) / ||B phi(x)||."""
    phi = posterior.features(menu)
    spread = phi @ posterior.whitening.T
    left, singular, right = svd(spread, full_matrices=False)
    kept = max(1, int(np.sum(singular[:PRINCIPAL] > 1e-7 * singular[0])))
    left, singular, right = left[:, :kept], singular[:kept], right[:kept]
    covariance = spread @ spread.T
    together = counts[:, None] * covariance
    total = together * counts + variance * np.diag(counts)
    gain = _Gain(left, together @ (counts[:, None] * together.T), total, noise)
    shape = (kept, min(MOST, kept))
    begin = np.eye(*shape) * singular[:, None]
    scale = gain(begin)[0]

    def cost(flat: Floats) -> tuple[float, Floats]:
        value, slope = gain(flat.reshape(shape))
        return -value / scale, -slope.ravel() / scale

    found = minimize(cost, begin.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return (found.x.reshape(shape).T / singular) @ right @ posterior.whitening
