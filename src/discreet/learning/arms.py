"""The arms of an elimination plan, and its premises in the units of the model.

Rewards y are centred and divided by half of their range: y' = (y - c) / w. On the arms f' =
(f - c) / w is then theta phi up to `misfit`: the constant c is fitted by the features as well as
they can, and what is left of it counts as misfit.

**A net** with the spacing h_i along coordinate i, ends included, misses at most

    B sqrt(3) a / 2        (squared exponential)        a = sum of h_i^2 / (4 l_i^2)
    B 5 a / 2              (Matern, nu = 5/2)
    B sqrt(2 - 2 k(h / 2)) (any other stationary kernel)

of the best action's mean. Proof: at a maximum the derivative along every coordinate in which it is
not at an end is 0, and the nearest arm differs in no other: the step d to it has |d_i| <= h_i / 2.
Along it f falls by at most half of its largest second derivative, which is at most B times the
square root of the fourth derivative of k(t d) at t = 0: 3 a^2, or 25 a^2. In general |f(x) - f(x')|
<= B ||k_x - k_x'||. B bounds the norm of f in the kernel's space.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.agreement.plan import Plan
from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.features.kernels import Additive, Kernel, Matern, SquaredExponential

#: The fourth derivative of k(t d) at t = 0, for a = 1, by smoothness; others have none.
FOURTH = {math.inf: 3.0, 2.5: 25.0}


@dataclass(frozen=True, eq=False)
class Arms:
    """Scaled arms with their features, and what is assumed of f there, in half-widths of rewards.

    `spread` bounds max f - min f and `level` |f - c|; `norm` bounds the length of theta.
    """

    points: Floats
    phi: Floats
    spread: float
    level: float
    noise: float
    norm: float
    misfit: float
    net_error: float
    failure: float
    silence: float


@lru_cache(maxsize=8)
def arms_of(plan: Plan) -> Arms:
    """The arms and premises of a plan."""
    premises, unit, centre = plan.premises, plan.half_width, plan.centre
    points = premises.points(plan.domain)
    phi = plan.map(points)
    low, high = premises.means or plan.rewards
    one = np.linalg.lstsq(phi, np.ones(len(phi)), rcond=1e-10)[0]
    unfit = float(np.max(np.abs(phi @ one - 1.0)))
    norm = plan.norm or 0.0
    misfit = norm * plan.map.error_bound if premises.misfit is None else premises.misfit
    return Arms(
        points=points,
        phi=phi,
        spread=(high - low) / unit,
        level=max(high - centre, centre - low) / unit,
        noise=1.0 if plan.noise_std is None else min(plan.noise_std / unit, 1.0),
        norm=(norm + abs(centre) * float(np.linalg.norm(one))) / unit,
        misfit=(misfit + abs(centre) * unfit) / unit,
        net_error=_missed(plan, norm) / unit,
        failure=premises.failure,
        silence=premises.silence,
    )


def _missed(plan: Plan, norm: float) -> float:
    """How much better than the best arm an action may be, in units of rewards."""
    premises = plan.premises
    if premises.net_error is not None:
        return premises.net_error
    if premises.arms is not None or premises.net is None:
        return 0.0
    steps = np.where(plan.domain.continuous, 0.5 / (premises.net - 1), 0.0)
    return norm * net_error(plan.kernel, steps)


def net_error(kernel: Kernel, steps: Floats) -> float:
    """What a net whose arms are at most `steps` away in each column misses, for a norm of 1.

    A sum of kernels has the weighted sum of their fourth derivatives, and of 2 - 2 k.

    >>> round(net_error(SquaredExponential(0.25), np.array([0.01, 0.01])), 6)
    0.002771
    """
    parts = [(1.0, kernel, steps)]
    if isinstance(kernel, Additive):
        parts = [(part.weight, part.kernel, steps[list(part.places)]) for part in kernel.parts]
    curved, apart = 0.0, 0.0
    for weight, own, on in parts:
        if not isinstance(own, SquaredExponential | Matern):
            raise InvalidArgument("elimination", "arms, or a net_error: none is known here")
        a = float(np.sum(np.square(on / own.lengthscales(len(on)))))
        curved += weight * FOURTH.get(_smoothness(own), math.inf) * a**2
        apart += weight * (2.0 - 2.0 * float(own.correlation(on[None, :])[0]))
    return min(math.sqrt(curved) / 2.0, math.sqrt(max(apart, 0.0)))


def _smoothness(kernel: SquaredExponential | Matern) -> float:
    return math.inf if isinstance(kernel, SquaredExponential) else kernel.smoothness
