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


#: Arguments that a plan fills in by other arguments: their values may differ between versions.
FILLED = frozenset(
    (
        "kernel",
        "decisions",
        "features",
        "encoding",
        "schedule",
        "exploration",
        "noise",
        "confidence",
        "buffers",
        "looks",
        "elimination",
        "codewords",
        "directions",
    )
)


def differing(stored: Any, wording: Wording | None, given: Any) -> list[str]:
    """The arguments in which a plan that is given again differs from the one that is stored.

    What an author wrote has to be what is stored. Only what a plan fills in may come out otherwise
    now, where the words are the same; and a default that nobody wrote, then or now. A journal from
    before words were kept does not know whether somebody wrote what is filled in: where the given
    plan leaves it open, what is stored is right.
    """
    if given.digest == stored.digest:
        return []
    names = [each.name for each in fields(stored) if each.init]
    if given.wording is not None:
        said = given.wording.arguments
        names = [name for name in names if not _left_to(name, said, wording)]
    return sorted(name for name in names if not _same(name, stored, given))


def _left_to(name: str, said: Mapping[str, str], wording: Wording | None) -> bool:
    """Whether an argument is as it was, whatever its value: by its words."""
    if wording is None:
        return name in FILLED and name not in said
    kept = wording.arguments
    unsaid = name not in said and name not in kept
    return unsaid or (name in FILLED and said.get(name) == kept.get(name))


def _same(name: str, stored: Any, given: Any) -> bool:
    here, there = getattr(stored, name), getattr(given, name)
    if isinstance(here, Prior) and isinstance(there, Prior):
        return here.matches(there)
    return canonical.field_text(stored, name) == canonical.field_text(given, name)


def _default(field: Any) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()
