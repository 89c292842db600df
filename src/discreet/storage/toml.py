"""Frozen dataclasses from tables that people write: TOML as a dict, checked key by key.

`canonical` is what machines write, and strict about every byte; here defaults may be left out, a
whole number does for a float, and a table says which class it is by `type`, where there is a
choice. Names come from the classes themselves, so that they cannot drift. Errors name the place
(`kernel.parts[0].weight`) and what is expected there.

| annotation                   | TOML                                                    |
|------------------------------|---------------------------------------------------------|
| a frozen dataclass           | a table of its fields, and `type = "ClassName"`         |
| `bool`, `int`, `float`, `str`| `true`, `12`, `1.5` or `1`, `"text"`                    |
| `Literal`                    | one of its values                                       |
| `tuple[X, ...]`, `tuple[X, Y]`| `[x, y]`                                               |
| `Mapping[str, X]`            | a table                                                 |
| `X \\| None`                  | `x`, or nothing: the key is left out                    |
"""

import dataclasses
from collections.abc import Collection, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from discreet.errors import InvalidArgument

Table = dict[str, Any]
_WORDS: dict[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}


def read(hint: Any, token: object, place: str) -> Any:
    """The value of this type that a token stands for.

    >>> read(tuple[float, float], [0, 1], "rewards")
    (0.0, 1.0)
    >>> read(int | None, 2.5, "horizon")
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: horizon: expected a whole number, got 2.5
    """
    members = _members(hint)
    kinds = [member for member in members if dataclasses.is_dataclass(member)]
    if kinds and (table := _table(token)) is not None:
        return _record(cast(list[type], kinds), table, place)
    fitting = [member for member in members if member not in kinds and _fits(member, token)]
    if not fitting:
        raise InvalidArgument(place, words(hint), _shown(token))
    return _plain(fitting[0], token, place)


def arguments(
    hints: Mapping[str, Any], required: Collection[str], table: object, place: str = ""
) -> Table:
    """The values of a table's keys; unknown keys and missing ones are refused.

    >>> arguments({"first": int, "growth": float}, ["first"], {"frist": 5}, "schedule")
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: schedule.frist: expected a key out of first, growth
    """
    if (found := _table(table)) is None:
        raise InvalidArgument(place, "a table", _shown(table))
    for key in found:
        if key not in hints:
            raise InvalidArgument(step(place, key), f"a key out of {', '.join(hints)}")
    for key in required:
        if key not in found:
            raise InvalidArgument(step(place, key), f"{words(hints[key])}, and it is missing")
    return {key: read(hints[key], token, step(place, key)) for key, token in found.items()}


def build(kind: type, values: Table, place: str) -> Any:
    """An object of these values; what its class says about one of them gets a place.

    >>> from discreet.privacy.budget import JointDP
    >>> build(JointDP, {"epsilon": 0.0, "delta": 0.1}, "privacy")
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: privacy.epsilon: expected a finite number above 0, got 0.0
    """
    try:
        return kind(**values)
    except InvalidArgument as error:
        head, _, name = error.argument.rpartition(".")
        inner = name if head and place.endswith(head) else error.argument
        raise InvalidArgument(step(place, inner), error.expectation) from error
    except (TypeError, ArithmeticError) as error:
        raise InvalidArgument(place, f"a valid {kind.__name__} ({error})") from error


def words(hint: Any) -> str:
    """What a type looks like in TOML.

    >>> words(Literal["box", "ball"]), words(tuple[float, ...] | None)
    ("'box' or 'ball'", 'an array (each: a number)')
    """
    return " or ".join(dict.fromkeys(_word(member) for member in _members(hint)))


def step(place: str, key: str) -> str:
    """The place one level down.

    >>> step("", "privacy"), step("privacy", "epsilon")
    ('privacy', 'privacy.epsilon')
    """
    return f"{place}.{key}" if place else key


def _table(token: object) -> Table | None:
    return cast(Table, token) if isinstance(token, dict) else None


def _members(hint: Any) -> list[Any]:
    """The types that a union allows; None is a key that is left out."""
    union = get_origin(hint) in (Union, UnionType)
    nested = [_members(member) for member in get_args(hint)] if union else [[hint]]
    return [member for members in nested for member in members if member is not NoneType]


def _record(kinds: list[type], table: Table, place: str) -> Any:
    """An object of the class that the table's `type` names; of one class, it need not."""
    names = {kind.__name__: kind for kind in kinds}
    tag: object = table.get("type", kinds[0].__name__ if len(kinds) == 1 else None)
    if not isinstance(tag, str) or tag not in names:
        listed = " or ".join(repr(name) for name in names)
        missing = "" if "type" in table else ", and it is missing"
        came = _shown(tag) if "type" in table else None
        raise InvalidArgument(step(place, "type"), f"{listed}{missing}", came)
    kind = names[tag]
    fields: list[dataclasses.Field[Any]] = [f for f in _fields(kind) if f.init]
    hints = get_type_hints(kind)
    given = {key: token for key, token in table.items() if key != "type"}
    wanted = {field.name: hints[field.name] for field in fields}
    required = [f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING]
    return build(kind, arguments(wanted, required, given, place), place)


def _fields(kind: Any) -> tuple["dataclasses.Field[Any]", ...]:
    return dataclasses.fields(kind)


def _plain(hint: Any, token: Any, place: str) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple:
        return tuple(_items(args, token, place))
    if origin is Mapping:
        return {key: read(args[1], item, step(place, key)) for key, item in token.items()}
    return float(token) if hint is float and abs(token) < 2**1023 else token


def _items(args: tuple[Any, ...], token: list[Any], place: str) -> list[Any]:
    repeated = args[1:] == (...,)
    if not repeated and len(token) != len(args):
        raise InvalidArgument(place, f"an array of {len(args)}", _shown(token))
    hints = args[:1] * len(token) if repeated else args
    return [
        read(hint, item, f"{place}[{at}]")
        for at, (hint, item) in enumerate(zip(hints, token, strict=True))
    ]


def _fits(hint: Any, token: object) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return any(type(token) is type(value) and token == value for value in get_args(hint))
    if origin is tuple:
        return isinstance(token, list)
    if origin is Mapping:
        return isinstance(token, dict)
    if hint is float:
        return isinstance(token, int | float) and not isinstance(token, bool)
    return type(token) is hint


def _word(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if hint in _WORDS:
        return _WORDS[hint]
    if origin is Literal:
        return " or ".join(repr(value) for value in args)
    if origin is tuple and args[1:] == (...,):
        return f"an array (each: {words(args[0])})"
    if origin is tuple:
        return f"an array of {len(args)} ({', '.join(words(arg) for arg in args)})"
    return "a table"


def _shown(token: object) -> object:
    """A token as an error repeats it: long ones only by what they are."""
    if isinstance(token, dict):
        return _Word("a table")
    text = repr(token)
    return token if len(text) <= 40 else _Word("an array" if isinstance(token, list) else "text")


class _Word(str):
    """Text that is not quoted."""

    def __repr__(self) -> str:
        return str(self)
