"""What a plan is warned of: legal, but hardly what its author wants."""

import math
from collections.abc import Iterator
from typing import Any

from discreet.errors import LargeDelta, ShortHorizon
from discreet.privacy.budget import NonPrivate

#: So many people, over mu, teach a custodian something.
ENOUGH = 100


def cautions(plan: Any) -> Iterator[tuple[str, type[UserWarning]]]:
    """Those of a resolved plan, each with its category."""
    if isinstance(plan.privacy, NonPrivate) or plan.horizon is None:
        return
    delta = plan.promised.delta
    if delta is not None and delta * plan.horizon > 1.0:
        yield (
            f"delta = {delta:g} would allow publishing some of {plan.horizon} "
            "people outright: take delta well below 1 / horizon",
            LargeDelta,
        )
    if plan.noise is None and not plan.eliminates and plan.horizon < _needed(plan):
        yield (
            f"{plan.horizon} people will hardly teach this plan anything at its epsilon: it takes "
            "more of them, or a larger epsilon (discreet.simulation.enough says how many)",
            ShortHorizon,
        )


def _needed(plan: Any) -> int:
    if plan.is_local:
        return 2 * plan.design_asks
    return math.ceil(ENOUGH / min(plan.mu or 1.0, 1.0))
