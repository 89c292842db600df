"""What an ask brings, and the action it gets: the same for everyone who chooses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from discreet.agreement.plan import Plan
from discreet.arrays import Floats, Indices
from discreet.errors import Refused
from discreet.learning.epoch import Epoch
from discreet.learning.personal import NOTHING, check_admits, first_admitted
from discreet.learning.policy import Policy
from discreet.protocol.verifier import are_inside


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


def brought(
    plan: Plan, candidates: object, context: Mapping[str, object] | None
) -> Floats | Exception | None:
    """The scaled decision set; or what is wrong with it, to be said once the ask has its index."""
    try:
        return decision_set(plan, candidates, context)
    except Exception as error:  # noqa: BLE001
        return error


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


@dataclass(frozen=True, eq=False)
class Decisions:
    """What asks in a row get: scaled actions, positions among candidates, and who gets none.

    `refusals` says why, by place in the row; the action there is no number.
    """

    points: Floats = field(repr=False)
    positions: Indices | None = field(default=None, repr=False)
    refusals: Mapping[int, Exception] = field(default_factory=dict[int, Exception], repr=False)


def decide(
    plan: Plan, epoch: Epoch, first: int, brought: Sequence[Floats | Exception | None]
) -> Decisions:
    """The scaled actions of the asks from `first` on, all of this epoch.

    Each depends on its own index and options alone, bit for bit, whoever else is in the row. An
    error that one's options lead to is theirs alone, too. Who is refused depends on the plan and on
    what they bring, never on the epoch: whoever chose it would learn of a private context by it.
    """
    try:
        # An overflow is no error, whatever the process makes of warnings: the scores are not ours.
        with np.errstate(all="ignore"):
            return _decided(plan, epoch, first, brought)
    except Exception as error:  # noqa: BLE001
        if len(brought) == 1:
            return Decisions(np.full((1, plan.domain.dimension), np.nan), refusals={0: error})
    each = [decide(plan, epoch, first + i, [own]) for i, own in enumerate(brought)]
    positions = None
    if plan.decisions == "candidates":
        nowhere = np.array([-1])
        positions = np.concatenate([nowhere if x.positions is None else x.positions for x in each])
    return Decisions(
        np.concatenate([x.points for x in each]),
        positions,
        {i: x.refusals[0] for i, x in enumerate(each) if x.refusals},
    )


def _decided(
    plan: Plan, epoch: Epoch, first: int, brought: Sequence[Floats | Exception | None]
) -> Decisions:
    indices, policy = np.arange(first, first + len(brought)) - epoch.first, epoch.policy
    if plan.decisions == "box" and not any(isinstance(each, Exception) for each in brought):
        return Decisions(policy.from_menu(indices))
    refusals = {i: each for i, each in enumerate(brought) if isinstance(each, Exception)}
    rows = np.array([i for i in range(len(brought)) if i not in refusals], dtype=np.intp)
    options = [each for each in brought if isinstance(each, np.ndarray)]
    points = np.full((len(brought), plan.domain.dimension), np.nan)
    positions = None
    if not len(rows):
        return Decisions(points, positions, refusals)
    if plan.decisions == "box":
        points[rows] = policy.from_menu(indices[rows])
    elif plan.decisions == "candidates":
        positions = np.full(len(brought), -1, dtype=np.intp)
        positions[rows] = policy.choose(plan.map, indices[rows], options)
        for i, own in zip(rows.tolist(), options, strict=True):
            points[i] = own[positions[i]]
    else:
        contexts = np.array(options)
        fallback, admitted = first_admitted(plan.domain, contexts)
        refusals |= {i: Refused(NOTHING) for i in rows[~admitted].tolist()}
        if admitted.any():
            rows, parts = rows[admitted], (contexts[admitted], fallback[admitted])
            points[rows] = _under(plan, policy, indices[rows], *parts)
    return Decisions(points, positions, refusals)


def _under(
    plan: Plan, policy: Policy, indices: Indices, contexts: Floats, fallback: Floats
) -> Floats:
    """The policy's actions under contexts that admit some; the fallback where it leads outside."""
    found, _ = policy.search(plan.map, indices, plan.domain, contexts)
    return np.where(are_inside(plan, found)[:, None], found, fallback)
