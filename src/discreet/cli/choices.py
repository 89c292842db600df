"""What options may say, by name.

The library's own words again, so that a shell can complete them without loading it; a test keeps
the two equal.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from discreet.errors import InvalidArgument

Model = Literal["none", "joint", "shuffled", "local", "random"]
Protect = Literal["decisions", "rewards"]
EncodingChoice = Literal[
    "auto", "gram", "fourier", "reward", "announced", "directed", "codebook", "interval"
]
Features = Literal["auto", "grid", "hermite", "random", "leading"]
NoiseChoice = Literal["independent", "tree", "square root", "blt"]
PROBLEMS = (
    "synthetic",
    "camelback",
    "styblinski-tang",
    "michalewicz",
    "ridges",
    "hartmann6",
    "dosing-1",
    "dosing-3",
    "dosing-6",
    "dosing-1-skewed",
    "dosing-3-skewed",
    "dosing-6-skewed",
    "dosing-3-correlated",
    "dosing-6-correlated",
    "arms",
    "pricing",
)


def complete_problem(incomplete: str) -> list[str]:
    """The problems whose names begin like this.

    >>> complete_problem("s")
    ['synthetic', 'styblinski-tang']
    """
    return [name for name in PROBLEMS if name.startswith(incomplete)]


#: Options that several commands share.
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change the plan: any key of the file, such as kernel.lengthscale=0.2; repeat it.",
    ),
]
PlanFile = Annotated[
    Path | None,
    typer.Option("--plan", metavar="FILE", help="A plan in TOML, by the names of Plan."),
]

Resume = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Keep finished runs in this file, a line each, and go on from it: stop when you like, "
        "and the same command plays what is missing.",
    ),
]


def read_changes(changes: list[str] | None) -> dict[str, object]:
    """KEY=VALUE as places and values: of TOML, or text where that is none.

    >>> read_changes(["privacy.epsilon=2", "rewards=[0, 1]", "features=hermite"])
    {'privacy.epsilon': 2, 'rewards': [0, 1], 'features': 'hermite'}
    """
    found: dict[str, object] = {}
    for change in changes or ():
        key, equals, text = change.partition("=")
        if not key.strip() or not equals:
            raise InvalidArgument("--set", "KEY=VALUE", change)
        found[key.strip()] = _value(text.strip())
    return found


def _value(text: str) -> object:
    import tomllib

    try:
        found = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return found["value"] if found.keys() == {"value"} else text
