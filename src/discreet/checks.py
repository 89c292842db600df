"""Plain arguments: numbers within bounds, and digits; or an error that says which and why."""

import math
import numbers
from re import fullmatch

from discreet.errors import InvalidArgument


def number(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    echo: bool = True,
) -> float:
    """A finite number above (or at least) a bound; `echo=False` keeps a private one out of errors.

    >>> number("lengthscale", 1, above=0.0)
    1.0
    >>> number("lengthscale", -1.0, above=0.0)
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: lengthscale: expected a finite number above 0, got -1.0
    """
    words = "a finite number"
    if above > -math.inf:
        words += f" above {above:g}"
    if at_least > -math.inf:
        words += f" of at least {at_least:g}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidArgument(name, words)
    try:
        plain = float(value)
    except OverflowError:  # a whole number or fraction beyond every float
        plain = math.inf
    if not math.isfinite(plain) or plain <= above or plain < at_least:
        raise InvalidArgument(name, words, plain if echo else None)
    return plain


def plain(value: object) -> object:
    """A scalar of numpy, or an array of no dimensions, as Python's own; all else as it is.

    >>> import numpy as np
    >>> plain(np.int64(17)), plain(np.bool_(True)), plain("b")
    (17, True, 'b')
    """
    item: object = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "shape", None) == () else value


def reward(value: object) -> float:
    """A finite number, and True and False for 1 and 0; what came is in no error.

    >>> reward(True), reward(0.7)
    (1.0, 0.7)
    """
    given = plain(value)
    given = int(given) if isinstance(given, bool) else given
    try:
        return number("reward", given, echo=False)
    except InvalidArgument:
        words = "a finite number, True or False; abandon what has no reward"
        raise InvalidArgument("reward", words) from None


def user_id(value: object) -> str:
    """The text of a person's id: text as it is, and a whole number by its digits.

    >>> user_id(17) == user_id("17")
    True
    >>> user_id(17.0)
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: user: expected an id for each person, text or a whole number \
(of a float, int(id)): it enforces rounds_per_user
    """
    if isinstance(value, str) and value:
        return str.__str__(value)
    if not isinstance(value, bool) and isinstance(value, numbers.Integral):
        return str(int(value))
    words = "an id for each person, text or a whole number (of a float, int(id))"
    raise InvalidArgument("user", words + ": it enforces rounds_per_user")


def count(name: str, value: object) -> int:
    """A whole number of at least 1.

    >>> count("horizon", 0)
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: horizon: expected a whole number of at least 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise InvalidArgument(name, "a whole number of at least 1", value)
    return int(value)


def whole(name: str, value: object) -> int:
    """A whole number of at least 0.

    >>> whole("seed", 0)
    0
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
        raise InvalidArgument(name, "a whole number of at least 0", value)
    return int(value)


def hexadecimal(name: str, value: object, digits: int) -> None:
    """Refuse what is not so many hexadecimal digits; what came is in no error.

    >>> hexadecimal("id", "someone", 32)
    Traceback (most recent call last):
    discreet.errors.InvalidArgument: id: expected 32 hexadecimal digits
    """
    if not isinstance(value, str) or not fullmatch(f"[0-9a-f]{{{digits}}}", value):
        raise InvalidArgument(name, f"{digits} hexadecimal digits")
