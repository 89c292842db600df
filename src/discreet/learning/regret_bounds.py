"""What the paper promises of regret, as functions: bounds, and when they say anything.

A bound that exceeds what playing at random costs says nothing. `crossover` finds the number of
rounds from which a bound says something.
"""

import math
from collections.abc import Callable

from discreet import checks
from discreet.errors import InvalidArgument, OutOfReach
from discreet.learning.theory import Assumptions, Spectrum, width

#: Beyond so many rounds a bound is called hopeless.
LONGEST = 1 << 80


# -- the regret bound


def regret_bound(
    largest_width: float, assumptions: Assumptions, *, rounds: int, log_determinant: float
) -> float:
    """Theorem 3 in the form of docs/errata, with probability 1 - zeta:

        R(T) <= 2 W_T sqrt(2 T log det((S~_T + lambda I) / (lambda + lambda_min))) + 2 T B epsilon

    for lambda + lambda_min >= 1, a release every round, and `log_determinant` that of the matrix
    in the root (see `prior_bound`). The printed form has sum of sigma_t^2 <= gamma_T, which fails
    for lambda + lambda_min > 1, and a term T^3 sqrt(epsilon).

    >>> regret_bound(1.0, Assumptions(norm=1.0, noise=1.0), rounds=8, log_determinant=1.0)
    8.0
    """
    t, a = checks.count("rounds", rounds), assumptions
    volume = checks.number("log_determinant", log_determinant, at_least=0.0)
    return 2.0 * largest_width * math.sqrt(2.0 * t * volume) + 2.0 * t * a.norm * a.error


def prior_bound(
    spectrum: Spectrum,
    assumptions: Assumptions,
    *,
    rounds: int,
    dimension: int,
    volume: float = math.inf,
) -> float:
    """The regret bound before any data: both determinants at their largest.

    By arithmetic and geometric means, as trace S_T <= T: the released V has log det V <=
    m ln(lambda + lambda_max + T / m), which the width sees, and the potential of the actions,
    sum of ||phi_t||^2_(V_t^-1), is at most 2 m ln(1 + T / (m (lambda + lambda_min))). Where more is
    known of log det(I + S_T / (lambda + lambda_min)), as for every map of `information.volume` and
    every kernel with a known gain (`information.approximate_volume`), it takes the place of both.

    >>> calm = Spectrum(shift=2.0, smallest=1.0, largest=3.0, kappa=0.5)
    >>> world = Assumptions(norm=1.0, noise=0.5)
    >>> round(prior_bound(calm, world, rounds=10_000, dimension=4) / 10_000, 3)
    0.821
    """
    a, t, m = assumptions, checks.count("rounds", rounds), checks.count("dimension", dimension)
    floor = a.regularisation + spectrum.smallest
    if floor < 1.0:
        raise InvalidArgument("spectrum", "lambda + lambda_min of at least 1")
    ceiling = m * math.log(a.regularisation + spectrum.largest + t / m)
    most = min(volume, m * math.log1p(t / (m * floor)))
    widest = width(spectrum, a, rounds=t, log_determinant=ceiling, side=m, volume=volume)
    return regret_bound(widest, a, rounds=t, log_determinant=most)


def crossover(bound: Callable[[int], float], *, uniform: float) -> int:
    """From how many rounds on a regret bound beats uniform play, which costs `uniform` a round.

    The bound divided by T should fall but for small jumps (a tree's depth): what is found, by
    doubling and bisection, is a T at which it beats uniform play while T - 1 does not.

    >>> crossover(lambda rounds: 10.0 * math.sqrt(rounds), uniform=0.5)
    401
    """
    price = checks.number("uniform", uniform, above=0.0)
    high = 1
    while bound(high) >= price * high:
        high *= 2
        if high > LONGEST:
            raise OutOfReach(f"the bound does not beat {price:g} a round before 2^80", 0)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < price * middle else (middle, high)
    return high
