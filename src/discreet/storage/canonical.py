"""Strict canonical JSON and digests for frozen dataclasses: the one codec.

Digests, files and messages all use it, so a value has one form and a form has one value:
`encode(decode(kind, data)) == data`, byte for byte, or `decode` raises `Malformed`.

| annotation                              | JSON                                              |
|-----------------------------------------|---------------------------------------------------|
| a frozen dataclass                      | `{"field":…,"type":"ClassName"}`                  |
| `None`, `bool`, `int`, `str`, `Literal` | `null`, `true`, `12`, `"text"`                    |
| `float`, finite                         | shortest form with a `.` or an `e`: `1.0`, `1e-05`|
| `tuple[X, ...]`, `tuple[X, Y]`          | `[x,y]`                                           |
| `Mapping[str, X]`, in its order         | `[["key",x],…]`                                   |
| `Floats` or `Integers`                  | `{"data":base64,"dtype":"float64","shape":[2,3]}` |
| `X \\| Y`                                | whichever it is: every member looks different     |

Keys are sorted, there is no white space, text is UTF-8, array bytes are little-endian in C
order. Fields that `__init__` does not take or `==` does not look at are left out: equal values
have equal digests. A field marked `OPTIONAL` is left out when it is None: a record that has no use
for it reads as it did before there was one. A class whose constructor fills in defaults has a
`restored` beside it: what was written has nothing left to fill in. Messages name the place
(`$.plan.kernel`), never a value: it may be private.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, overload

import numpy as np

from discreet.errors import InvalidArgument, Malformed
from discreet.storage import codecs
from discreet.storage.codecs import Codec, Misfit

__all__ = ["OPTIONAL", "decode", "digest", "encode", "field_text"]

T = TypeVar("T")

#: The metadata of a field that is left out when it is None.
OPTIONAL: Mapping[str, bool] = MappingProxyType({"optional": True})
#: Texts of fields that are longer are told apart by their digests.
LONGEST_TEXT = 1000


def encode(value: object) -> bytes:
    """The canonical bytes of a frozen dataclass.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Dose:
    ...     amount: float
    ...     unit: str = "mg"
    >>> encode(Dose(2.5))
    b'{"amount":2.5,"type":"Dose","unit":"mg"}'
    """
    try:
        return _object(type(value)).write(value).encode()
    except Misfit as misfit:
        raise InvalidArgument(misfit.where, misfit.expectation) from None
    except RecursionError:
        raise InvalidArgument("$", "fewer levels of nesting") from None


@overload
def decode(kind: type[T], data: bytes) -> T: ...
@overload
def decode(kind: UnionType, data: bytes) -> Any: ...
def decode(kind: type[T] | UnionType, data: bytes) -> T:
    """The value of a frozen dataclass (or of a union of them) from its canonical bytes.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Dose:
    ...     amount: float
    >>> decode(Dose, b'{"amount":2.5,"type":"Dose"}')
    Dose(amount=2.5)
    >>> decode(Dose, b'{"amount":2,"type":"Dose"}')
    Traceback (most recent call last):
    discreet.errors.Malformed: $.amount: expected a finite float, got int
    """
    codec = _root(kind)
    try:
        value = codec.read(codecs.parse(data))
        canonical = codec.write(value).encode()
    except Misfit as misfit:
        raise Malformed(str(misfit)) from misfit.__cause__
    except RecursionError:
        raise Malformed("$: expected fewer levels of nesting") from None
    if canonical != data:
        raise Malformed("$: expected the canonical form: sorted, unspaced, shortest")
    return value


def digest(value: object) -> str:
    """SHA-256 of the canonical bytes, in hexadecimal.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Dose:
    ...     amount: float
    >>> digest(Dose(2.5))[:16]
    '0c819f6723fa5f66'
    """
    return hashlib.sha256(encode(value)).hexdigest()


def field_text(value: object, name: str) -> str:
    """One field of a frozen dataclass, as canonical text; long ones by their digest.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Dose:
    ...     amount: float
    >>> field_text(Dose(2.5), "amount")
    '2.5'
    """
    try:
        text = _fields(type(value))[name].write(getattr(value, name))
    except Misfit as misfit:
        raise InvalidArgument(name, misfit.expectation) from None
    return text if len(text) <= LONGEST_TEXT else hashlib.sha256(text.encode()).hexdigest()


# -- annotation to codec


@cache
def _root(kind: object) -> Codec:
    codec = _codec(kind)
    if not all(shape.startswith("type ") for shape in codec.shapes):
        raise InvalidArgument("kind", "a frozen dataclass or a union of them", kind)
    return codec


def _codec(hint: Any) -> Codec:
    origin, args = get_origin(hint), get_args(hint)
    if hint in codecs.SCALARS:
        return codecs.SCALARS[hint]
    if origin in (Union, UnionType):
        return codecs.union(*map(_codec, args))
    if origin is Literal:
        return codecs.literal(*args)
    if origin is tuple:
        items = [_codec(item) for item in args if item is not ...]
        return codecs.tuple_of(*items, repeat=args[1:] == (...,))
    if origin is Mapping and args[0] is str:
        return codecs.mapping(_codec(args[1]))
    if origin is np.ndarray and get_args(args[1]) in ((np.float64,), (np.int64,)):
        return codecs.array(get_args(args[1])[0].__name__)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _object(hint)
    raise InvalidArgument("annotation", "a type listed in discreet.storage.canonical", hint)


# -- frozen dataclasses


@cache
def _object(kind: type) -> Codec:
    params = vars(kind).get("__dataclass_params__")
    if params is None or not params.frozen:
        raise InvalidArgument(kind.__name__, "a frozen dataclass")

    def write(value: object) -> str:
        if type(value) is not kind:
            raise Misfit(kind.__name__, value)
        stored = {name: getattr(value, name) for name in _fields(kind)}
        return _record(kind).write({"type": kind.__name__, **stored})

    def read(token: object) -> object:
        values = _record(kind).read(token)
        del values["type"]
        try:
            restores = isinstance(vars(kind).get("restored"), classmethod)
            return getattr(kind, "restored")(**values) if restores else kind(**values)  # noqa: B009
        except Exception as error:  # whatever a constructor says of these bytes, they are at fault
            raise Misfit(f"a valid {kind.__name__} ({error})") from error

    return Codec((f"type {kind.__name__}",), write, read)


# Apart from `_object`, and later: a field may be of the class that is being read.
@cache
def _record(kind: type) -> Codec:
    optional = {f.name for f in dataclasses.fields(kind) if f.metadata.get("optional")}
    return codecs.record({"type": codecs.literal(kind.__name__), **_fields(kind)}, optional)


@cache
def _fields(kind: type) -> dict[str, Codec]:
    fields: dict[str, Codec] = {}
    hints = _hints(kind)
    for field in dataclasses.fields(kind):
        try:
            if _is_stored(field):
                fields[field.name] = _codec(hints[field.name])
        except InvalidArgument as error:
            raise InvalidArgument(f"{kind.__name__}.{field.name}", f"otherwise: {error}") from None
    return fields


def _hints(kind: type) -> dict[str, Any]:
    try:
        hints = get_type_hints(kind)
    except Exception as error:  # an annotation may be any expression
        raise InvalidArgument(kind.__name__, f"annotations that resolve ({error})") from error
    if any(isinstance(hint, dataclasses.InitVar) for hint in hints.values()):
        raise InvalidArgument(kind.__name__, "no InitVar: it could not be written back")
    return hints


def _is_stored(field: "dataclasses.Field[Any]") -> bool:
    if field.name == "type":
        raise InvalidArgument("name", "another word: `type` tags the class")
    stored = field.init and field.compare
    if field.init and not stored and field.default is field.default_factory is dataclasses.MISSING:
        raise InvalidArgument("default", "one, for what is not compared is not written")
    return stored
