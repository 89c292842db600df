"""How much rewards vary around f, and f around its level, by the evidence of what is released.

Reports of an index carry little of either, and no exact spread. So each is believed on a grid, at
first around what is usual, and moved by the likelihood of releases. All of it is post-processing.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from discreet.arrays import Floats
from discreet.learning.kernel_bank import Bank, Choice

#: Standard deviations of rewards around f that are tried, in half-widths of the reward range.
NOISES = np.geomspace(1 / 48, 1.0, 12)
#: Of f around its level.
SHAPES = np.geomspace(1 / 24, 1.0, 10)
#: Before anything is released: the usual ones, and how wide the belief is in their logarithm.
USUAL_NOISE, USUAL_SHAPE, DOUBT = 0.25, 0.35, 0.4


@dataclass(frozen=True, eq=False)
class Volatility:
    """How likely each of `NOISES` is, as logarithms: what releases add up to.

    >>> round(Volatility.before().variance ** 0.5, 2)
    0.23
    """

    evidence: Floats

    @classmethod
    def before(cls) -> "Volatility":
        """Around the usual one."""
        return cls(_usual(NOISES, USUAL_NOISE))

    @property
    def variance(self) -> float:
        """Of a reward around f: what is likely, by the mean of its logarithm."""
        return _typical(NOISES, self.evidence)

    def plus(self, evidence: Floats) -> "Volatility":
        """With what one more release says of each."""
        return Volatility(self.evidence + evidence)


def likely_shape(bank: Bank, choice: Choice, precision: Floats, information: Floats) -> float:
    """The variance of f around its level that what was released makes likely, under a kernel."""
    found = [_evidence(bank, choice, shape**2, precision, information) for shape in SHAPES]
    return _typical(SHAPES, np.array(found) + _usual(SHAPES, USUAL_SHAPE))


def _evidence(
    bank: Bank, choice: Choice, shape: float, precision: Floats, information: Floats
) -> float:
    prior = bank.precision(choice, bank.signal(choice, shape))
    factor = cholesky(prior + precision, lower=True)
    fitted = solve_triangular(factor, information, lower=True)
    sizes = np.log(np.diag(cholesky(prior, lower=True))) - np.log(np.diag(factor))
    return float(sizes.sum() + 0.5 * fitted @ fitted)


def _usual(grid: Floats, usual: float) -> Floats:
    return -0.5 * np.square(np.log(grid / usual) / DOUBT)


def _typical(grid: Floats, evidence: Floats) -> float:
    weights = np.exp(evidence - evidence.max())
    return float(np.exp(2.0 * (weights @ np.log(grid)) / weights.sum()))
