"""What an ask brings, and the action it gets: the same for everyone who chooses."""

from collections.abc import Mapping
from typing import Any, cast

from discreet.agreement.plan import Plan
from discreet.arrays import Floats
from discreet.errors import Refused
from discreet.learning.epoch import Epoch
from discreet.learning.search import check_admits
from discreet.protocol.verifier import is_inside


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


def check_ask(plan: Plan, candidates: object, context: Mapping[str, object] | None) -> None:
    """Raise what an ask with this would be refused for; it uses no round, and nobody hears of it.

    >>> from discreet import Box, NonPrivate
    >>> box = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
    >>> check_ask(Plan(domain=box, privacy=NonPrivate()), None, {"age": 610})
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: context: expected age to be a finite number within [18.0, 90.0]
    """
    options = decision_set(plan, candidates, context)
    if plan.decisions == "context" and options is not None:
        check_admits(plan.domain, options)


def decide(plan: Plan, epoch: Epoch, ask: int, options: Floats | None) -> tuple[Floats, int | None]:
    """The scaled action of an ask of this epoch, and its position among candidates, if any."""
    index, policy = ask - epoch.first, epoch.policy
    if options is None:
        return policy.from_menu(index), None
    if plan.decisions == "context":
        point = policy.search(plan.map, index, plan.domain, options)
        if not is_inside(plan, point[None, :]):  # menus are looked at when an epoch opens
            raise Refused("this epoch's policy leads out of the domain")
        return point, None
    chosen = policy.choose(plan.map, index, options)
    return options[chosen], chosen
