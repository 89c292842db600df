"""A public predicate over coordinates, read from text and never handed to Python's `eval`.

The text is parsed once with `ast` and turned into functions over arrays. Truth is three-valued
(Kleene): a comparison with an undefined number (division by zero, the logarithm of -1, an
overflow) neither holds nor fails, so that its negation does not hold either, while
`dose == 0 or 10 / dose > 3` still holds at dose 0.
"""

import ast
import functools
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, cast

import numpy as np

from discreet.arrays import Floats, Mask
from discreet.errors import InvalidArgument

Numbers = Floats
Values = Mapping[str, Numbers]
NumberOf = Callable[[Values], Numbers]
# Where it holds, and where it fails; in neither it is undefined.
Verdict = tuple[Mask, Mask]
VerdictOf = Callable[[Values], Verdict]

LONGEST_TEXT = 2000
DEEPEST_NESTING = 50
LONGEST_FRAGMENT = 60

ALLOWED = (
    "a predicate of numbers, coordinate names, + - * / **, comparisons, and, or, not, "
    "abs, min, max, sqrt, exp, log, and a categorical coordinate == or != one of its values"
)

_ARITHMETIC: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.float_power,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_OF_ONE: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
}
_OF_MANY: dict[str, Callable[..., Any]] = {"min": np.minimum, "max": np.maximum}


class Predicate:
    """Where a public condition holds, over arrays of values in natural units.

    `categories` gives, for each coordinate name, its values if it is categorical and None if
    it is a number. A categorical array holds the positions of its values, not the strings.

    >>> safe = Predicate("dose <= 5 or arm == 'b'", {"dose": None, "arm": ("a", "b")})
    >>> safe({"dose": np.array([4.0, 6.0, 6.0]), "arm": np.array([0.0, 0.0, 1.0])}, count=3)
    array([ True, False,  True])
    """

    def __init__(self, text: object, categories: Mapping[str, Sequence[str] | None]) -> None:
        tree = _parsed(text)
        self._verdict = _Reader(cast(str, text).strip(), categories).verdict(tree, 0)

    def __call__(self, values: Values, *, count: int) -> Mask:
        """The rows, out of `count`, in which the predicate is defined and holds."""
        with np.errstate(all="ignore"):
            holds, _ = self._verdict(values)
        return np.array(np.broadcast_to(holds, (count,)))


def _parsed(text: object) -> ast.expr:
    if not isinstance(text, str) or not text.strip():
        raise InvalidArgument("feasible", "a non-empty text, or None", text)
    if len(text) > LONGEST_TEXT:
        raise InvalidArgument("feasible", f"a text of at most {LONGEST_TEXT} characters")
    try:
        with warnings.catch_warnings():
            # What one Python version only warns of, the next one refuses.
            warnings.simplefilter("error")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError, Warning):
        raise InvalidArgument("feasible", ALLOWED, text[:LONGEST_FRAGMENT]) from None


class _Reader:
    """Turns a syntax tree into functions, refusing whatever is not on the list."""

    def __init__(self, text: str, categories: Mapping[str, Sequence[str] | None]) -> None:
        self.text = text
        self.categories = categories

    def refuse(self, node: ast.AST, expectation: str = ALLOWED) -> NoReturn:
        fragment = ast.get_source_segment(self.text, cast(ast.expr, node)) or self.text
        raise InvalidArgument("feasible", expectation, fragment[:LONGEST_FRAGMENT])

    def check_depth(self, node: ast.expr, depth: int) -> None:
        if depth > DEEPEST_NESTING:
            self.refuse(node, f"at most {DEEPEST_NESTING} nested operations")

    def verdict(self, node: ast.expr, depth: int) -> VerdictOf:
        self.check_depth(node, depth)
        match node:
            case ast.BoolOp(op=op, values=parts):
                verdicts = [self.verdict(part, depth + 1) for part in parts]
                join = _every if isinstance(op, ast.And) else _some
                return lambda values: join([verdict(values) for verdict in verdicts])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.verdict(operand, depth + 1)
                return lambda values: _opposite(inner(values))
            case ast.Compare():
                return self.comparison(node, depth)
            case _:
                self.refuse(node)

    def comparison(self, node: ast.Compare, depth: int) -> VerdictOf:
        sides = [node.left, *node.comparators]
        if any(self.is_text(side) for side in sides):
            return self.category(node, sides)
        numbers = [self.number(side, depth + 1) for side in sides]
        tests: list[Callable[..., Any]] = []
        for op in node.ops:
            if type(op) not in _COMPARISONS:
                self.refuse(node)
            tests.append(_COMPARISONS[type(op)])

        def chain(values: Values) -> Verdict:
            found = [number(values) for number in numbers]
            pairs = zip(tests, found[:-1], found[1:], strict=True)
            return _every([_compared(test, left, right) for test, left, right in pairs])

        return chain

    def is_text(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return self.categories.get(node.id) is not None
        return isinstance(node, ast.Constant) and isinstance(node.value, str)

    def category(self, node: ast.Compare, sides: list[ast.expr]) -> VerdictOf:
        """`arm == 'b'`, `'b' == arm`, and the same with `!=`."""
        names = [side.id for side in sides if isinstance(side, ast.Name)]
        texts = [side.value for side in sides if isinstance(side, ast.Constant)]
        if len(sides) != 2 or len(names) != 1 or len(texts) != 1:
            self.refuse(node)
        name, op = names[0], node.ops[0]
        known = self.categories.get(name)
        if known is None or not isinstance(op, ast.Eq | ast.NotEq):
            self.refuse(node)
        if texts[0] not in known:
            self.refuse(node, f"{name} compared with one of {', '.join(map(repr, known))}")
        position, test = float(known.index(cast(str, texts[0]))), _COMPARISONS[type(op)]
        return lambda values: _compared(test, values[name], np.array(position))

    def number(self, node: ast.expr, depth: int) -> NumberOf:
        self.check_depth(node, depth)
        match node:
            case ast.Constant(value=value):
                return self.constant(node, value)
            case ast.Name(id=name) if name in self.categories and not self.is_text(node):
                return lambda values: values[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.applied(np.negative, [operand], depth)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return self.applied(_ARITHMETIC[type(op)], [left, right], depth)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                if name in _OF_ONE and len(arguments) == 1:
                    return self.applied(_OF_ONE[name], arguments, depth)
                if name in _OF_MANY and len(arguments) > 1:
                    fold = functools.partial(_folded, _OF_MANY[name])
                    return self.applied(fold, arguments, depth)
                self.refuse(node)
            case _:
                self.refuse(node)

    def constant(self, node: ast.expr, value: object) -> NumberOf:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(node)
        # Floats only: an integer power could fill the memory.
        number = np.array(_float(value))
        if not np.isfinite(number):
            self.refuse(node, "finite numbers")
        return lambda values: number

    def applied(
        self, function: Callable[..., Any], nodes: Iterable[ast.expr], depth: int
    ) -> NumberOf:
        arguments = [self.number(node, depth + 1) for node in nodes]
        return lambda values: _applied(function, [argument(values) for argument in arguments])


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _folded(function: Callable[..., Any], *arguments: Numbers) -> Numbers:
    return functools.reduce(function, arguments)


def _applied(function: Callable[..., Any], arguments: list[Numbers]) -> Numbers:
    """Undefined wherever an argument or the result is: also in nan ** 0 and 1 / (1 / 0)."""
    result: Numbers = np.asarray(function(*arguments), dtype=np.float64)
    defined = np.isfinite(result)
    for argument in arguments:
        defined = defined & np.isfinite(argument)
    return np.where(defined, result, np.nan)


def _compared(test: Callable[..., Any], left: Numbers, right: Numbers) -> Verdict:
    defined = np.isfinite(left) & np.isfinite(right)
    holds: Mask = np.asarray(test(left, right), dtype=np.bool_)
    return defined & holds, defined & ~holds


def _every(verdicts: list[Verdict]) -> Verdict:
    holds, fails = zip(*verdicts, strict=True)
    return functools.reduce(np.logical_and, holds), functools.reduce(np.logical_or, fails)


def _some(verdicts: list[Verdict]) -> Verdict:
    return _opposite(_every([_opposite(verdict) for verdict in verdicts]))


def _opposite(verdict: Verdict) -> Verdict:
    holds, fails = verdict
    return fails, holds
