"""What the author of a plan wrote, beside what became of it.

A journal keeps both. A script that is run again says the same words, though a later version may
fill in other defaults, or compute the same features to other last bits. So a plan that is given
again is compared by its words, and the study goes on under the plan that is stored.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from discreet.agreement.prior import Prior
from discreet.storage import canonical


@dataclass(frozen=True, eq=False)
class Wording:
    """The arguments that are not defaults, as canonical text, or by its digest where that is long.

    >>> from discreet import Box, NonPrivate, Plan
    >>> plan = Plan(domain=Box({"dose": (0, 10)}), privacy=NonPrivate(), horizon=600)
    >>> plan.wording.arguments["horizon"], "schedule" in plan.wording.arguments
    ('600', False)
    """

    arguments: Mapping[str, str]

    @classmethod
    def of(cls, plan: Any) -> "Wording":
        """What a plan says before anything is filled in."""
        written = {
            each.name: canonical.field_text(plan, each.name)
            for each in fields(plan)
            if each.init and getattr(plan, each.name) != _default(each)
        }
        return cls(written)


def differing(stored: Any, wording: Wording | None, given: Any) -> list[str]:
    """The arguments in which a plan that is given again differs from the one that is stored.

    A journal from before words were kept is compared by what the given plan's author wrote.
    """
    if given.digest == stored.digest:
        return []
    said = None if given.wording is None else given.wording.arguments
    kept: Mapping[str, str] = {} if wording is None else wording.arguments
    names = [each.name for each in fields(stored) if each.init]
    if said is not None:
        names = [name for name in names if name in said or name in kept]
        names = [name for name in names if name not in kept or said.get(name) != kept[name]]
    return sorted(name for name in names if not _same(name, stored, given))


def _same(name: str, stored: Any, given: Any) -> bool:
    here, there = getattr(stored, name), getattr(given, name)
    if isinstance(here, Prior) and isinstance(there, Prior):
        return here.matches(there)
    return canonical.field_text(stored, name) == canonical.field_text(given, name)


def _default(field: Any) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()
