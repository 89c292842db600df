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
#: Mean squares of rewards that do not lie at the ends of their range.
INSIDE = np.linspace(0.0, 0.65, 14)
#: How much likelier one of both has to be.
ODDS = 7.0


@dataclass(frozen=True, eq=False)
class Volatility:
    """How likely each of `NOISES` is, as logarithms: what releases add up to.

    >>> round(Volatility.before().variance ** 0.5, 2)
    0.25
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


@dataclass(frozen=True)
class Extent:
    """How large rewards are: E[h^2] in half-widths squared, as a Gaussian.

    Rewards at the ends of their range, like those of coin flips, have 1; others usually have much
    less. Narrow residuals of the former tell the commonest reward and not the mean, so these must
    not be taken for the latter; what early reports say of it is vague, and more of them are heard
    before it is settled.

    >>> Extent().told(0.9, 0.01).at_ends, Extent().told(0.9, 0.25).at_ends
    (True, None)
    """

    mean: float = 0.0
    precision: float = 0.0

    def told(self, size: float, variance: float) -> "Extent":
        """After an estimate of it, of this variance."""
        precision = self.precision + 1.0 / variance
        return Extent(self.mean + (size - self.mean) / variance / precision, precision)

    @property
    def at_ends(self) -> bool | None:
        """Whether rewards lie at the ends; None while neither is ODDS times likelier."""
        miss = np.square(self.mean - np.append(INSIDE, 1.0)) * self.precision / 2.0
        likely = np.exp(miss.min() - miss)
        odds = float(likely[-1]), float(likely[:-1].mean())
        if max(odds) < ODDS * min(odds):
            return None
        return odds[0] > odds[1]


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
