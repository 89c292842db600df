"""The features of a plan that names none, or a way to find them."""

from typing import Protocol

import numpy as np

from discreet.agreement import open_kernel, resolve
from discreet.arrays import Floats
from discreet.domain.box import Box
from discreet.errors import OutOfReach
from discreet.features.choose import FeatureChoice, choose
from discreet.features.leading import POINTS, Coordinate, leading_features
from discreet.features.maps import FeatureMap


class Wanting(resolve.Arguments, Protocol):
    """The arguments that features depend on."""

    @property
    def kernel_error(self) -> float: ...
    @property
    def max_features(self) -> int: ...


def chosen_features(plan: Wanting, method: FeatureChoice) -> FeatureMap:
    """By default a grid with a proven error where it is wanted or small, else the leading ones."""
    if method == "leading" or (method == "auto" and open_kernel.needs_leading(plan)):
        return _leading(plan)
    domain = plan.domain
    try:
        return choose(
            plan.kernel,
            widths=domain.widths,
            diameter=domain.diameter,
            error=plan.kernel_error,
            method="grid" if method == "auto" else method,
            limit=plan.max_features,
        )
    except OutOfReach:
        if method != "auto" or open_kernel.needs_error(plan):
            raise
        return _leading(plan)


def _leading(plan: Wanting) -> FeatureMap:
    domain = plan.domain
    coordinates = [
        Coordinate(domain.columns(name), getattr(domain.coordinate(name), "vertices", None))
        for name in domain.names
    ]
    most = min(open_kernel.most_leading(plan), plan.max_features)
    return leading_features(plan.kernel, coordinates, _even(domain), most)


def _even(domain: Box) -> Floats:
    """Public points all over the domain."""
    rng = np.random.Generator(np.random.Philox(POINTS))
    points = np.empty((0, domain.dimension))
    while len(points) < POINTS:
        more = domain.spread(rng.random((POINTS, len(domain.names))))
        points = np.concatenate([points, more])
    return points
