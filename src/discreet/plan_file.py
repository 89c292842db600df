"""Plans as people write them: a TOML file with the names of `Plan`.

    name = "dosing"
    horizon = 600
    rewards = [0.0, 1.0]

    [domain]
    context = ["age"]
    [domain.coordinates]
    dose = [0, 10]                                   # short for Continuous
    age = { type = "Integer", low = 18, high = 90 }

    [kernel]
    type = "SquaredExponential"
    lengthscale = 0.3

    [privacy]
    type = "JointDP"
    epsilon = 8.0
    delta = 1e-6

Every key is an argument of `Plan`, every table one of our classes, named by `type` where there is a
choice (see `toml`). Two keys differ, because a file holds no arrays of numbers: `prior` is the
path of an earlier study's export, beside this file, or `{ study = "earlier.json", public_data =
true }`; it brings that study's features and, if the file names none, its kernel. `features` is
otherwise the name of a method.
"""

import os
import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from discreet.agreement.plan import Plan
from discreet.errors import DiscreetError, InvalidArgument, Refused
from discreet.features.choose import FeatureChoice
from discreet.learning.study import Study
from discreet.storage import toml


@dataclass(frozen=True)
class Earlier:
    """An earlier study: its export, and that the people behind it need no privacy."""

    study: str
    public_data: bool = False


#: What each key holds: the arguments of a plan.
ARGUMENTS = [field for field in fields(Plan) if field.init]
HINTS: dict[str, Any] = {field.name: get_type_hints(Plan)[field.name] for field in ARGUMENTS} | {
    "features": FeatureChoice,
    "prior": str | Earlier,
}
REQUIRED = [f.name for f in ARGUMENTS if f.default is f.default_factory is MISSING]


def read_plan(path: str | os.PathLike[str], changes: Mapping[str, object] | None = None) -> Plan:
    """The plan that a TOML file describes; `changes` go before what it says.

    A change is named by its place: `{"privacy.epsilon": 2.0, "horizon": 500}`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "study.toml")
    ...     _ = file.write_text('''
    ...     domain.coordinates.dose = [0, 10]
    ...     privacy = { type = "JointDP", epsilon = 1.0, delta = 1e-6 }
    ...     ''')
    ...     read_plan(file, {"privacy.epsilon": 2.0}).privacy
    JointDP(epsilon=2.0, delta=1e-06, protect='decisions', rounds_per_user=1)
    """
    with _named(path):
        return toml.build(Plan, _arguments(path, changes, REQUIRED), "")


def read_settings(
    path: str | os.PathLike[str] | None, changes: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """The arguments of a plan that a file gives, or changes alone: they need not be all of them.

    >>> read_settings("no-such.toml")
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: no-such.toml: expected a readable TOML file (No such file or directory)
    """  # noqa: E501
    with _named(path):
        return _arguments(path, changes, ())


def _arguments(
    path: str | os.PathLike[str] | None,
    changes: Mapping[str, object] | None,
    required: Sequence[str],
) -> dict[str, Any]:
    table = {} if path is None else _load(path)
    for place, value in (changes or {}).items():
        _change(table, place, value)
    values = toml.arguments(HINTS, required, table)
    if (prior := values.pop("prior", None)) is None:
        return values
    if "features" in values:
        raise InvalidArgument("features", "nothing beside prior, which brings its own")
    earlier = Earlier(prior) if isinstance(prior, str) else prior
    try:
        study = Study.load(Path(path or ".").parent / earlier.study)
    except DiscreetError as error:
        raise InvalidArgument("prior", f"the export of an earlier study ({error})") from None
    learnt = study.prior(public_data=earlier.public_data)
    return {"kernel": study.plan.kernel} | values | {"prior": learnt, "features": study.plan.map}


def _load(path: str | os.PathLike[str]) -> dict[str, Any]:
    if not isinstance(path, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("path", "the path of a TOML file")
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument("", f"a readable TOML file ({error.strerror})") from None
    except (ValueError, RecursionError) as error:  # also of text that is no UTF-8
        raise InvalidArgument("", f"TOML ({' '.join(str(error).split())})") from None


def _change(table: dict[str, Any], place: str, value: object) -> None:
    *steps, last = place.split(".")
    for step in steps:
        table = table.setdefault(step, {})
        if not isinstance(table, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(place, f"a table {step!r} to change something in")
    table[last] = value


@contextmanager
def _named(path: str | os.PathLike[str] | None) -> Generator[None]:
    """Errors about what is in the file name the file."""
    try:
        yield
    except InvalidArgument as error:
        places = [str(place) for place in (path, error.argument) if place]
        raise InvalidArgument(": ".join(places), error.expectation) from error
    except DiscreetError as error:
        raise Refused(f"{path}: {error}") from error
