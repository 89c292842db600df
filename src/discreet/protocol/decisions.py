"""What an ask brings, and the action it gets: the same for everyone who chooses."""

from collections.abc import Mapping
from typing import Any, cast

from discreet.agreement.plan import Plan
from discreet.arrays import Floats
from discreet.errors import Refused
from discreet.learning.epoch import Epoch


def decision_set(
    plan: Plan, candidates: object, context: Mapping[str, object] | None
) -> Floats | None:
    """Scaled candidates or context of one ask, None for the whole box, as the plan declares."""
    domain, kind = plan.domain, plan.decisions
    given = {"candidates": candidates is not None, "context": context is not None}
    if given != {"candidates": kind == "candidates", "context": kind == "context"}:
        wanted = {
            "box": "ask() over the whole box",
            "context": "ask(context={...}) with the context coordinates",
            "candidates": "ask(candidates)",
        }
        raise Refused(
            f"this plan declares decisions={kind!r}: call {wanted[kind or 'box']}, "
            "or declare another kind in the plan"
        )
    if kind == "candidates":
        return domain.encode(cast(Any, candidates))
    return None if context is None else domain.encode_context(context)


def decide(plan: Plan, epoch: Epoch, ask: int, options: Floats | None) -> tuple[Floats, int | None]:
    """The scaled action of an ask of this epoch, and its position among candidates, if any."""
    index, policy = ask - epoch.first, epoch.policy
    if options is None:
        return policy.from_menu(index), None
    if plan.decisions == "context":
        return policy.search(plan.map, index, plan.domain, options), None
    chosen = policy.choose(plan.map, index, options)
    return options[chosen], chosen
