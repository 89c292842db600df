"""Codecs: how a value of one annotation becomes canonical JSON text, and how it is read back.

A codec writes text and reads *tokens*: what `parse` makes of text, that is None, bool, int,
float, str, list and dict. Those of scalars are constants, those of containers are built from
those of their items; `canonical` says which annotation has which. A value or token that does
not fit is a `Misfit`, which knows the place and not the value.
"""

import base64
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count, cycle
from types import MappingProxyType, NoneType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument

T = TypeVar("T")


class Codec(NamedTuple):
    """How one annotation is written and read; `shapes` tell it apart in a union."""

    shapes: tuple[str, ...]
    write: Callable[[Any], str]
    read: Callable[[Any], Any]


class Misfit(Exception):
    """A value or token that does not fit; containers add their step on the way out.

    >>> tuple_of(SCALARS[float], SCALARS[str]).read([1.0, 2])
    Traceback (most recent call last):
    discreet.storage.codecs.Misfit: $[1]: expected a str without lone surrogates, got int
    """

    def __init__(self, expectation: str, came: object = ...) -> None:
        super().__init__()
        name = came.what if isinstance(came, _Unreadable) else type(came).__name__
        self.expectation = expectation if came is ... else f"{expectation}, got {name}"
        self.steps: list[str | int] = []

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expectation}"

    @property
    def where(self) -> str:
        """The path from the root, `$`."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps[::-1])
        return "$" + "".join(steps)


def _at(step: str | int, function: Callable[[Any], T], item: object) -> T:
    try:
        return function(item)
    except Misfit as misfit:
        misfit.steps.append(step)
        raise


# -- text to tokens


class _Unreadable(NamedTuple):
    """Stands for a token no codec accepts, so that the codec can say where it is."""

    what: str


def parse(data: bytes) -> object:
    """The token of JSON bytes.

    >>> parse(b'{"amount":[2.5,null]}')
    {'amount': [2.5, None]}
    """
    try:
        return _DECODER.decode(data.decode())
    except UnicodeDecodeError as error:
        raise Misfit(f"UTF-8, fails at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise Misfit(f"JSON, fails at character {error.pos}: {error.msg}") from None


def _whole_number(digits: str) -> object:
    try:
        return int(digits)
    except ValueError:  # sys.set_int_max_str_digits: reading takes quadratic time
        return _Unreadable("an int of too many digits")


def _entries(pairs: list[tuple[str, object]]) -> object:
    entries = dict(pairs)
    return entries if len(entries) == len(pairs) else _Unreadable("an object with a repeated key")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_entries, parse_int=_whole_number, parse_constant=_Unreadable
)
_json = json.JSONEncoder(ensure_ascii=False).encode


# -- scalars: the token is the value


def _plain(shapes: Iterable[str], write: Callable[[Any], str]) -> Codec:
    def read(token: object) -> object:
        write(token)
        return token

    return Codec(tuple(shapes), write, read)


def literal(*values: object) -> Codec:
    """One of these values.

    >>> literal("box", None).write(None)
    'null'
    """
    kinds = dict.fromkeys(type(value) for value in values)
    if not kinds.keys() <= {NoneType, bool, int, str}:
        raise InvalidArgument("annotation", "a Literal of None, bool, int or str")
    texts = {(type(value), value): _json(value) for value in values}
    expectation = "one of " + ", ".join(texts.values())

    def write(value: object) -> str:
        if type(value) not in kinds or (type(value), value) not in texts:
            raise Misfit(expectation)
        return texts[type(value), value]

    return _plain((_SHAPES[kind] for kind in kinds), write)


def _scalar(kind: type, expectation: str, text: Callable[[Any], str]) -> Codec:
    def write(value: object) -> str:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise Misfit(expectation, value)
        try:
            return text(value)
        except ValueError:
            raise Misfit(expectation) from None

    return _plain((_SHAPES[kind],), write)


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError
    return float.__repr__(value)


def _str_text(value: str) -> str:
    value.encode()
    return _json(value)


def _float() -> Codec:
    strict = _scalar(float, "a finite float", _float_text)

    def write(value: object) -> str:
        # Type checkers let an int pass for a float; it is written as the float it equals.
        return strict.write(float(value) if type(value) is int and abs(value) <= 2**53 else value)

    return strict._replace(write=write)


_SHAPES: dict[type, str] = {
    NoneType: "null", bool: "bool", int: "int", float: "float", str: "str",
    list: "list", tuple: "list",
}  # fmt: skip
SCALARS: dict[object, Codec] = {
    NoneType: literal(None),
    bool: literal(True, False),
    int: _scalar(int, "an int of not too many digits", int.__repr__),
    float: _float(),
    str: _scalar(str, "a str without lone surrogates", _str_text),
}


# -- containers


def tuple_of(*items: Codec, repeat: bool = False) -> Codec:
    """A tuple of these items, or with `repeat` of any number of the one.

    >>> tuple_of(SCALARS[int], repeat=True).write((2, 3, 5))
    '[2,3,5]'
    """

    def checked(kind: type, value: Any) -> Iterable[tuple[int, Codec, object]]:
        if not isinstance(value, kind):
            raise Misfit(f"a {kind.__name__}", value)
        if not repeat and len(value) != len(items):
            raise Misfit(f"{len(items)} items")
        return zip(count(), cycle(items), value, strict=False)

    def write(value: object) -> str:
        texts = [_at(at, item.write, part) for at, item, part in checked(tuple, value)]
        return f"[{','.join(texts)}]"

    def read(token: object) -> object:
        return tuple([_at(at, item.read, part) for at, item, part in checked(list, token)])

    return Codec(("list",), write, read)


def mapping(item: Codec) -> Codec:
    """A mapping from str, as a list of pairs in its order; read-only when read.

    >>> mapping(SCALARS[int]).write({"b": 1, "a": 2})
    '[["b",1],["a",2]]'
    """
    pairs = tuple_of(tuple_of(SCALARS[str], item), repeat=True)

    def write(value: object) -> str:
        if not isinstance(value, Mapping):
            raise Misfit("a mapping", value)
        return pairs.write(tuple(cast(Mapping[object, object], value).items()))

    def read(token: object) -> object:
        found = pairs.read(token)
        entries = dict(found)
        if len(entries) != len(found):
            raise Misfit("each key once")
        return MappingProxyType(entries)

    return Codec(("list",), write, read)


def record(fields: Mapping[str, Codec], optional: Collection[str] = ()) -> Codec:
    """A dict of exactly these keys, sorted; what it stands for has a shape of its own.

    An `optional` key is left out when its value is None, and never null.

    >>> dose = record({"unit": SCALARS[str], "amount": SCALARS[float]})
    >>> dose.write({"unit": "mg", "amount": 2.5})
    '{"amount":2.5,"unit":"mg"}'
    >>> record({"unit": literal("mg", None)}, optional={"unit"}).write({"unit": None})
    '{}'
    """
    entries = [(name, _json(name), codec) for name, codec in sorted(fields.items())]
    expectation = f"exactly the keys {', '.join(sorted(fields))}"

    def write(value: Mapping[str, object]) -> str:
        texts = [
            f"{key}:{_at(name, codec.write, value[name])}"
            for name, key, codec in entries
            if value[name] is not None or name not in optional
        ]
        return f"{{{','.join(texts)}}}"

    def read(token: object) -> dict[str, Any]:
        if not isinstance(token, dict):
            raise Misfit("an object", token)
        found = cast(dict[str, object], token)
        if {*found, *optional} != {*fields}:
            raise Misfit(expectation)
        found = dict.fromkeys(optional) | found
        return {name: _at(name, codec.read, found[name]) for name, _, codec in entries}

    return Codec(("object",), write, read)


def array(dtype: str) -> Codec:
    """A finite array, its bytes little-endian in C order; read-only when read.

    >>> array("int64").write(np.array([1, 2]))
    '{"data":"AQAAAAAAAAACAAAAAAAAAA==","dtype":"int64","shape":[2]}'
    """
    wire = np.dtype(dtype).newbyteorder("<")
    sides = tuple_of(SCALARS[int], repeat=True)
    parts = record({"data": _BASE64, "dtype": literal(dtype), "shape": sides})

    def write(value: object) -> str:
        given = _finite(value, dtype)
        data = _write_base64(given.astype(wire, copy=False).tobytes())
        return f'{{"data":{data},"dtype":"{dtype}","shape":{sides.write(given.shape)}}}'

    def read(token: object) -> object:
        found = parts.read(token)
        try:
            given = np.frombuffer(found["data"], wire).reshape(found["shape"])
        except (ValueError, OverflowError):
            raise Misfit("an array of as many numbers as its shape says") from None
        given = _finite(given.astype(dtype, copy=False), dtype)
        given.flags.writeable = False
        return given

    return Codec(("array",), write, read)


def _write_base64(data: bytes) -> str:
    return f'"{base64.b64encode(data).decode()}"'


def _read_base64(token: object) -> bytes:
    try:
        return base64.b64decode(SCALARS[str].read(token), validate=True)
    except ValueError:
        raise Misfit("base64") from None


_BASE64 = Codec(("str",), _write_base64, _read_base64)


def _finite(value: Any, dtype: str) -> NDArray[Any]:
    if type(value) is not np.ndarray or value.dtype != dtype:
        raise Misfit(f"an array of {dtype}")
    if not np.isfinite(value).all():
        raise Misfit("an array of finite numbers")
    return value


# -- unions: the shape of a value, or of a token, says which member it is


def union(*members: Codec) -> Codec:
    """Whichever member it is; refuses members that could be taken for each other.

    >>> union(SCALARS[float], literal("auto")).read("auto")
    'auto'
    """
    table = {shape: member for member in members for shape in member.shapes}
    if len(table) != sum(len(member.shapes) for member in members):
        raise InvalidArgument("annotation", "union members that look different in JSON")
    expectation = " or ".join(table)

    def member(shape: str, came: object) -> Codec:
        if shape not in table:
            raise Misfit(expectation, came)
        return table[shape]

    def write(value: object) -> str:
        shape = _value_shape(value)
        as_float = shape == "int" and "int" not in table
        return member("float" if as_float else shape, value).write(value)

    def read(token: object) -> object:
        return member(_token_shape(token), token).read(token)

    return Codec(tuple(table), write, read)


def _value_shape(value: object) -> str:
    if type(value) in _SHAPES:
        return _SHAPES[type(value)]
    if isinstance(value, Mapping):
        return "list"
    if isinstance(value, np.ndarray):
        return "array"
    shapes = (shape for kind, shape in _SHAPES.items() if isinstance(value, kind))
    return next(shapes, f"type {type(value).__name__}")


def _token_shape(token: object) -> str:
    if not isinstance(token, dict):
        return _SHAPES.get(type(token), "unreadable")
    found = cast(dict[str, object], token)
    return f"type {found['type']}" if "type" in found else "array"
