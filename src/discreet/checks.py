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
