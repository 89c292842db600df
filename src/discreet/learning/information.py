"""How much any actions can tell about f: log det(I + S_T / c), and the kernel's gain gamma_T.

Regret bounds hold for the worst actions, so they need the largest *volume* log det(I + S_T / c) of
T actions. For approximate features it is known at once (`volume`); for a kernel it is 2 gamma_T(c),
and what the approximation adds follows from concavity (`approximate_volume`).
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet import checks
from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.features.kernels import Kernel, Linear, Matern, Polynomial, SquaredExponential
from discreet.features.maps import AdditiveFeatures, FeatureMap, FourierFeatures


def volume(features: FeatureMap, rounds: int, floor: float) -> float:
    """What log det(I + S_T / c) of any T actions is at most, c the `floor`.

    A determinant is at most the product of its diagonal (Hadamard). For Fourier features a cosine
    and its sine have diagonals that add up to 2 + T w / c, a product of at most (1 + T w / 2c)^2.

        sum over frequencies of 2 ln(1 + T w / (2 c))        and ln(1 + T w / c) for frequency 0.

    The weights of smooth kernels fall fast: at large T this is far below m ln(1 + T / (m c)), the
    bound for any map with ||phi|| <= 1.

    >>> from discreet.features.choose import choose
    >>> line = choose(SquaredExponential(0.3), widths=(1.0,), diameter=1.0, error=1e-6)
    >>> m = line.dimension
    >>> round(volume(line, 10**6, 10.0)), round(m * math.log1p(1e5 / m))
    (88, 132)
    """
    t = checks.whole("rounds", rounds) / checks.number("floor", floor, above=0.0)
    plain = features.dimension * math.log1p(t / features.dimension)
    if isinstance(features, AdditiveFeatures):
        parts = [(part.weight, part.features) for part in features.parts]
    else:
        parts = [(1.0, features)]
    return min(plain, math.fsum(_volume(each, weight * t) for weight, each in parts))


def _volume(features: FeatureMap, t: float) -> float:
    if not isinstance(features, FourierFeatures):
        return features.dimension * math.log1p(t / features.dimension)
    pairs = np.log1p(t * features.weights / 2.0) * 2.0
    if not features.frequencies[0].any():
        pairs[0] = math.log1p(t * float(features.weights[0]))
    return math.fsum(pairs)


def approximate_volume(gain: float, *, rounds: int, error: float, floor: float) -> float:
    """log det(I + K~ / c) <= 2 gamma_T(c) + T^1.5 epsilon / c: the gain form of Theorem 3.

    log det is concave, so with A = I + K / c it is at most log det A + tr(A^-1 (K~ - K)) / c. The
    trace is at most ||A^-1||_F ||K~ - K||_F <= sqrt(T) T epsilon. `gain` is gamma_T(c), the largest
    1/2 log det A of the exact kernel (`information_gain` bounds it).

    >>> approximate_volume(5.0, rounds=100, error=1e-3, floor=10.0)
    10.1
    """
    t = checks.count("rounds", rounds)
    return 2.0 * gain + t**1.5 * error / checks.number("floor", floor, above=0.0)


@dataclass(frozen=True)
class GainRate:
    """gamma_T = O(T^power (ln T)^logs)."""

    power: float
    logs: float


def gain_rate(kernel: Kernel, dimension: int) -> GainRate:
    """How the information gain grows, by the best rates that are known.

    Squared exponential: (ln T)^(d + 1); Matern: T^(d / (2 nu + d)) (ln T)^(2 nu / (2 nu + d))
    (Vakili, Khezeli and Picheny 2021; the paper has T^(d (d + 1) / (2 nu + d (d + 1)))).
    Polynomials have a finite dimension: ln T.

    >>> gain_rate(Matern(2.5), 2)
    GainRate(power=0.2857142857142857, logs=0.7142857142857143)
    """
    d = checks.count("dimension", dimension)
    if isinstance(kernel, SquaredExponential):
        return GainRate(0.0, d + 1.0)
    if isinstance(kernel, Matern):
        nu = kernel.smoothness
        return GainRate(d / (2.0 * nu + d), 2.0 * nu / (2.0 * nu + d))
    if isinstance(kernel, Linear | Polynomial):
        return GainRate(0.0, 1.0)
    raise InvalidArgument("kernel", "one kernel: a sum has the largest rate of its parts")


@dataclass(frozen=True)
class InformationGain:
    """A greedy choice of actions: what it tells about f, and what no choice can exceed.

    `at_most` is gain / (1 - 1/e): the gain is monotone and submodular in the actions, so greedy
    selection reaches at least 1 - 1/e of the largest (Nemhauser, Wolsey and Fisher).
    """

    gain: float
    at_most: float
    chosen: tuple[int, ...]


def information_gain(phi: Floats, *, rounds: int, noise_variance: float) -> InformationGain:
    """gamma_T = max over T rows, repeats allowed, of 1/2 log det(I + Phi^T Phi / rho^2).

    Definition 1, for signal variance 1, over the rows of `phi` (the features of a set of
    candidates; for an exact kernel, a factor of its matrix). Each step takes the row with the
    largest variance, and the variances follow by a rank-one update.

    >>> information_gain(np.eye(2), rounds=2, noise_variance=1.0).chosen
    (0, 1)
    """
    if phi.ndim != 2 or not phi.size or not np.isfinite(phi).all():
        raise InvalidArgument("phi", "a matrix of finite numbers with at least one row")
    noise = checks.number("noise_variance", noise_variance, above=0.0)
    covariance = np.eye(phi.shape[1])
    variances = np.square(phi).sum(axis=1)
    gain, chosen = 0.0, list[int]()
    for _ in range(checks.count("rounds", rounds)):
        best = int(np.argmax(variances))
        total = float(variances[best]) + noise
        direction = covariance @ phi[best]
        covariance -= np.outer(direction, direction) / total
        variances = np.maximum(variances - np.square(phi @ direction) / total, 0.0)
        gain += 0.5 * math.log(total / noise)
        chosen.append(best)
    return InformationGain(gain, gain / (1.0 - math.exp(-1.0)), tuple(chosen))
