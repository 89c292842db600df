"""The paper's estimator and its confidence, as proven: noisy prefix sums, a shift, a width.

After t rounds the server has S~ = S + H + c I and u~ = u + h: exact sums, Gaussian noise, and a
public shift c that makes the perturbation of S positive. With V = S~ + lambda I it estimates

    theta = V^-1 u~        |f(x) - theta phi(x)| <= W_t ||phi(x)||_(V^-1) + B epsilon

for all x and all t at once, with probability 1 - zeta (Theorem 1; docs/errata for its form).

**How large the noise is.** H is symmetric with off-diagonal std sigma and diagonal std sqrt(2)
sigma (GOE), h is N(0, sigma_u^2 I), in m dimensions. Nothing is simulated; the bounds are

    P(||H|| >= sigma (2 E||g|| + sqrt(2) s)) <= 2 (1 - Phi(s)),        g ~ N(0, I_m)
    P(||h|| >= sigma_u r) = P(chi^2_m >= r^2), exactly.

The first in three steps. (1) Mean: x H x over unit vectors x moves, from x to y, by the variance
4 sigma^2 (1 - (xy)^2) <= 8 sigma^2 (1 - xy), that of 2 sigma g x; so E of the largest eigenvalue
is at most 2 sigma E||g|| (Sudakov and Fernique). (2) Tail: an eigenvalue is sqrt(2) sigma
Lipschitz in the normals, because ||H||_F is; so beyond its *median* it has a Gaussian tail
(Borell; Sudakov and Tsirelson). (3) The largest eigenvalue is convex, so its median is at most
its mean (Kwapien). The smallest is the largest of -H. Noise that becomes a GOE when independent
noise is added, such as with a smaller diagonal or projected on Toeplitz matrices, has no
larger mean (Jensen) and no larger Lipschitz constant: the bound holds for it too.

**For all rounds.** Over releases of different stds a union bound adds up the tails, each at its
own std. For a sum of independent reports, P(max over t of ||H_t|| >= r) <= 2 P(||H_T|| >= r)
(Levy): two releases at the last std, whatever T.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaincc, gammaln, ndtr

from discreet import checks
from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.features.maps import FeatureMap
from discreet.learning.posterior import Posterior
from discreet.privacy.clipping import Noise
from discreet.privacy.correlation import BLT, Independent, SquareRoot, Strategy, Tree

#: Up to so many releases each is counted at its own std; beyond, all at the largest.
COUNTED = 1 << 16


# -- the estimator


def estimate(
    features: FeatureMap,
    gram: Floats,
    cross: Floats,
    *,
    regularisation: float,
    shift: float = 0.0,
    noise_variance: float = 1.0,
) -> Posterior:
    """theta = V^-1 u~ with V = S~ + (lambda + shift) I, and variance rho_noise^2 ||phi||^2_(V^-1).

    Eqs. 4 and 5 and Algorithm 1 (the printed mean lacks phi, the variance lambda: docs/errata).
    `gram` and `cross` are what was released, before the shift. With `noise_variance` 1 the
    standard deviation is ||phi||_(V^-1), which `width` multiplies.

    >>> from discreet.features.maps import PolynomialFeatures
    >>> line = PolynomialFeatures(1, 1.0, 1)
    >>> found = estimate(line, np.eye(2), np.array([1.0, 0.0]), regularisation=1.0, shift=2.0)
    >>> found.coefficients.tolist()
    [0.25, 0.0]
    """
    m = features.dimension
    if gram.shape != (m, m) or cross.shape != (m,):
        raise InvalidArgument("gram, cross", f"a square matrix and a vector of side {m}")
    lift = checks.number("regularisation", regularisation, above=0.0)
    lift += checks.number("shift", shift, at_least=0.0)
    variance = checks.number("noise_variance", noise_variance, above=0.0)
    positive = (gram + gram.T) / 2 + lift * np.eye(m)
    return Posterior(features, positive / variance, cross / variance)


def log_determinant(estimated: Posterior) -> float:
    """log det V, of a posterior with noise variance 1.

    >>> from discreet.features.maps import PolynomialFeatures
    >>> line = PolynomialFeatures(1, 1.0, 1)
    >>> found = estimate(line, np.eye(2), np.zeros(2), regularisation=1.0)
    >>> round(log_determinant(found) / math.log(2.0), 9)
    2.0
    """
    return 2.0 * float(np.sum(np.log(np.diag(estimated.factor))))


# -- how large the noise of all releases is


@dataclass(frozen=True, eq=False)
class Levels:
    """The stds of a stream's releases, and how many releases have each.

    >>> levels = Levels.of(Tree(), 4)
    >>> levels.stds.round(3).tolist(), levels.counts.tolist()
    ([1.0, 1.414], [3.0, 1.0])
    """

    stds: Floats
    counts: Floats

    @classmethod
    def of(cls, strategy: Strategy, releases: int) -> "Levels":
        """Of every prefix, in stds of one normal."""
        if isinstance(strategy, Independent):
            last = math.sqrt(checks.count("releases", releases))
            return cls(np.array([last]), np.array([min(releases, 2.0)]))  # Levy's inequality
        if releases <= COUNTED:
            stds, counts = np.unique(strategy.stds(releases), return_counts=True)
            return cls(stds, counts.astype(np.float64))
        return cls(np.array([largest_std(strategy, releases)]), np.array([float(releases)]))

    def norm(self, dimension: int, *, failure: float) -> float:
        """No ||H_t|| exceeds this times the std of a normal, but with probability `failure`.

        Solves sum over t of 2 (1 - Phi((x / std_t - 2 E||g||) / sqrt(2))) = failure for x.

        >>> one = Levels.of(Independent(), 1)
        >>> round(one.norm(69, failure=0.1), 2)
        18.88
        """
        mean = 2.0 * mean_length(dimension)
        return self._solve(failure, lambda x: 2.0 * ndtr((mean - x) / math.sqrt(2.0)))

    def length(self, dimension: int, *, failure: float) -> float:
        """No ||h_t|| exceeds this times the std of a normal, but with probability `failure`.

        >>> round(Levels.of(Independent(), 1).length(69, failure=0.05) ** 2, 1)  # chi^2, 69
        89.4
        """
        return self._solve(failure, lambda x: gammaincc(dimension / 2.0, np.square(x) / 2.0))

    def _solve(self, failure: float, tail: Callable[[Floats], NDArray[np.floating]]) -> float:
        wanted = _probability("failure", failure)

        def excess(x: float) -> float:
            return float(self.counts @ tail(x / self.stds)) - wanted

        high = float(self.stds.max())
        while excess(high) > 0.0:
            high *= 2.0
        return float(brentq(excess, 0.0, high, rtol=1e-12))


@dataclass(frozen=True)
class Spectrum:
    """With a shift, lambda_min <= H_t <= lambda_max and ||h_t||_(H_t^-1) <= kappa (Definition 3).

    For all releases at once, with probability 1 - failure: half of it for H, half for h. The
    shift is 2 Lambda and the same in every round, as the martingale of Theorem 1 needs:

        ||H|| <= Lambda        lambda_min = Lambda        lambda_max = 3 Lambda
        kappa = sigma_u r / sqrt(lambda_min)               (Lemmas 3 and 6, corrected)

    >>> each = Noise.split(1.0, 1.0, 1.0)
    >>> found = Spectrum.joint(Tree(), each, dimension=69, releases=1024, failure=0.1)
    >>> found.largest / found.smallest
    3.0
    """

    shift: float
    smallest: float
    largest: float
    kappa: float

    @classmethod
    def joint(
        cls, strategy: Strategy, each: Noise, *, dimension: int, releases: int, failure: float
    ) -> "Spectrum":
        """For prefixes of noise that a strategy correlates; `each` is the std of one normal."""
        m = checks.count("dimension", dimension)
        levels = Levels.of(strategy, releases)
        bound = each.gram * levels.norm(m, failure=failure / 2.0)
        length = each.cross * levels.length(m, failure=failure / 2.0)
        return cls(2.0 * bound, bound, 3.0 * bound, length / math.sqrt(bound))

    @classmethod
    def local(cls, each: Noise, *, dimension: int, rounds: int, failure: float) -> "Spectrum":
        """For the sum of one report a round; `each` is the noise of one report."""
        return cls.joint(Independent(), each, dimension=dimension, releases=rounds, failure=failure)


def calibrated(strategy: Strategy, *, releases: int, mu: float, share: float = 1.0) -> Noise:
    """The noise of one normal for rewards within [-1, 1], so that all releases cost mu.

        sigma_X = sensitivity (1 + q) / mu        sigma_u = sigma_X / sqrt(q)

    >>> calibrated(Independent(), releases=10, mu=2.0)
    Noise(gram=1.0, cross=1.0)
    """
    spread = checks.number("mu", mu, above=0.0) / _sensitivity(strategy, releases)
    return Noise.split(spread, 1.0, share)


def largest_std(strategy: Strategy, releases: int) -> float:
    """The largest std of a prefix, in stds of one normal; for any number of releases.

    >>> round(largest_std(Tree(), 1023) ** 2, 9), round(largest_std(SquareRoot(), 1024), 4)
    (10.0, 1.809)
    """
    if isinstance(strategy, Independent):
        return math.sqrt(checks.count("releases", releases))
    if isinstance(strategy, Tree):  # the most ones a number up to `releases` has
        return math.sqrt((checks.count("releases", releases) + 1).bit_length() - 1)
    if isinstance(strategy, BLT):
        return float(strategy.stds(releases)[-1])
    return _sensitivity(strategy, releases)  # both factors are the same


def mean_length(dimension: int) -> float:
    """E||g|| of a standard normal vector: sqrt(2) Gamma((m + 1) / 2) / Gamma(m / 2) < sqrt(m).

    >>> round(mean_length(1), 4), round(mean_length(69), 4)
    (0.7979, 8.2766)
    """
    m = checks.count("dimension", dimension)
    return math.sqrt(2.0) * math.exp(float(gammaln((m + 1) / 2.0) - gammaln(m / 2.0)))


# -- the width


@dataclass(frozen=True)
class Assumptions:
    """What Theorem 1 takes for granted of the world.

    `norm` B bounds the sum of |alpha_i| of f = sum_i alpha_i k(x_i, .); rewards are f plus
    `noise`-sub-Gaussian noise; `error` bounds the kernel error; `regularisation` is lambda and
    `failure` the probability zeta that the theorem leaves out.

    >>> Assumptions(norm=1.0, noise=0.5).failure
    0.1
    """

    norm: float
    noise: float
    error: float = 0.0
    regularisation: float = 1.0
    failure: float = 0.1

    def __post_init__(self) -> None:
        checks.number("norm", self.norm, above=0.0)
        checks.number("noise", self.noise, at_least=0.0)
        checks.number("error", self.error, at_least=0.0)
        checks.number("regularisation", self.regularisation, above=0.0)
        _probability("failure", self.failure)


def reward_range(
    means: tuple[float, float], noise: float, *, rounds: int, failure: float
) -> tuple[float, float]:
    """A range for `Plan.rewards` that none of so many rewards leaves, but with this probability.

    For f within `means` and noise that is `noise`-sub-Gaussian, each of T rewards is further than
    r from f with probability at most 2 exp(-r^2 / (2 rho^2)). So (the errata's clipping rule)

        r = rho sqrt(2 ln(2 T / zeta))

    >>> low, high = reward_range((-1.0, 1.0), 0.1, rounds=10_000, failure=0.05)
    >>> round(low, 3), round(high, 3)
    (-1.508, 1.508)
    """
    low, high = (checks.number("means", end) for end in means)
    spread = checks.number("noise", noise, at_least=0.0)
    tails = 2.0 * checks.count("rounds", rounds) / _probability("failure", failure)
    margin = spread * math.sqrt(2.0 * math.log(tails))
    return low - margin, high + margin


def width(
    spectrum: Spectrum,
    assumptions: Assumptions,
    *,
    rounds: int,
    log_determinant: float,
    side: int,
    volume: float = math.inf,
) -> float:
    """W_t, the multiplier of ||phi||_(V^-1): Theorem 1 in its implementable form (docs/errata).

        B sqrt(lambda + lambda_max) + R sqrt(2 ln(2 / zeta) + log det(V / (lambda + lambda_min)))
        + min(t B epsilon / sqrt(lambda + lambda_min), sqrt(t) B epsilon) + kappa

    `log_determinant` is that of the *released* V, which is shifted and lies above S + (lambda +
    lambda_min) I; that of the raw sums would leak. What is known of log det(I + S / (lambda +
    lambda_min)) before any data, a `volume`, may be less (`information.volume`). The kernel's error
    e, |e_s| <= B epsilon, enters as ||sum of phi_s e_s||_(V^-1): at most t B epsilon over the root
    of the least eigenvalue, and at most ||e||, because Phi V^-1 Phi^T <= I for V >= Phi^T Phi. The
    spectrum must fail with probability at most zeta / 2; the martingale takes the other half.

    >>> calm = Spectrum(shift=2.0, smallest=1.0, largest=3.0, kappa=0.5)
    >>> world = Assumptions(norm=1.0, noise=0.0)
    >>> width(calm, world, rounds=10, log_determinant=0.0, side=2)
    2.5
    """
    a, t = assumptions, checks.whole("rounds", rounds)
    floor = a.regularisation + spectrum.smallest
    released = log_determinant - checks.count("side", side) * math.log(floor)
    least = max(min(released, volume), 0.0)
    martingale = math.sqrt(2.0 * math.log(2.0 / a.failure) + least)
    return (
        a.norm * math.sqrt(a.regularisation + spectrum.largest)
        + a.noise * martingale
        + a.norm * a.error * min(t / math.sqrt(floor), math.sqrt(t))
        + spectrum.kappa
    )


def _sensitivity(strategy: Strategy, releases: int) -> float:
    """The strategy's; for a square root too long to write down, at most 1e-5 more.

    Sum over K <= k < T of r_k^2 <= ln((T - 3/4) / (K - 3/4)) / pi, by r_k^2 <= 1 / (pi (k + 1/4)).
    """
    if not isinstance(strategy, SquareRoot) or releases <= COUNTED:
        return strategy.sensitivity(releases)
    rest = math.log((releases - 0.75) / (COUNTED - 0.75)) / math.pi
    return math.sqrt(strategy.sensitivity(COUNTED) ** 2 + rest)


def _probability(name: str, value: float) -> float:
    if not 0.0 < checks.number(name, value) < 1.0:
        raise InvalidArgument(name, "a number between 0 and 1", value)
    return value
