"""The predicate parser: what it accepts, what it refuses, and what undefined means."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from discreet.domain.feasibility import DEEPEST_NESTING, LONGEST_TEXT, Predicate
from discreet.errors import InvalidArgument

KINDS = {"x": None, "y": None, "arm": ("a", "b", "c")}


def holds(text: str, x: float = 0.0, y: float = 0.0, arm: str = "a") -> bool:
    values = {"x": np.array([x]), "y": np.array([y]), "arm": np.array([float("abc".index(arm))])}
    return bool(Predicate(text, KINDS)(values, count=1)[0])


@pytest.mark.parametrize(
    "text",
    [
        "x * y <= 6 and not (arm == 'b' and x > 5)",
        "0 < x < y < 4",
        "-x ** 2 == -4",
        "abs(-x) + sqrt(x + 2) == max(1, x, 4) and min(x, y) == x",
        "exp(log(y)) > 2.9 or x != 2",
        "arm != 'b'",
        "'a' == arm",
        "x / 2 - 1 >= 0",
        "  1 < 2  ",
    ],
)
def test_what_python_calls_true_holds(text: str) -> None:
    assert holds(text, x=2.0, y=3.0, arm="a")


@given(
    x=st.floats(-50, 50),
    y=st.floats(-50, 50),
    text=st.sampled_from(
        [
            "x < y",
            "x + y * 2 - 3 <= x / 4",
            "x ** 2 + y ** 2 < 900",
            "x < y or not x > -20 and y != 0",
            "max(x, y) >= abs(min(x, y, 7))",
            "-10 <= x < y <= 10",
        ]
    ),
)
def test_it_agrees_with_python_where_both_are_defined(x: float, y: float, text: str) -> None:
    assert holds(text, x=x, y=y) == eval(text, {"x": x, "y": y})


@pytest.mark.parametrize(
    "undefined",
    [
        "1 / x > 0",
        "1 / (1 / x) > -1",
        "log(x) < 1",
        "log(-1) ** 0 == 1",
        "sqrt(x - 1) > 0",
        "exp(1000) > 0",
        "10 ** 400 > 0",
        "(-8) ** (1 / 3) < 0",
        "max(1, log(x)) > 0",
        "1 ** (1 / x) == 1",
        "0 * (1 / x) == 0",
        "0 / x == 0",
    ],
)
def test_an_undefined_comparison_holds_neither_straight_nor_negated(undefined: str) -> None:
    assert not holds(undefined)
    assert not holds(f"not ({undefined})")
    assert not holds(f"not not ({undefined})")
    assert not holds(f"{undefined} and x == 0")
    assert not holds(f"not ({undefined} or x == 1)")


def test_an_undefined_part_does_not_spoil_what_is_decided_without_it() -> None:
    assert holds("x == 0 or 10 / x > 3")
    assert holds("10 / x > 3 or x == 0")
    assert holds("not (x != 0 and 10 / x > 3)")


def test_a_predicate_without_names_still_answers_for_every_row() -> None:
    assert Predicate("1 < 2", KINDS)({}, count=3).tolist() == [True, True, True]


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("z < 1", "'z'"),
        ("x < 1 and __import__('os').system('true')", "__import__('os')"),
        ("x.real < 1", "'x.real'"),
        ("x[0] < 1", "'x[0]'"),
        ("(lambda: 1)() < x", "lambda"),
        ("[x for x in (1, 2)] == 1", "[x for x in (1, 2)]"),
        ("x if y else x", "x if y else x"),
        ("(x := 1) < 2", "x := 1"),
        ("x", "'x'"),
        ("x + 1", "'x + 1'"),
        ("1", "'1'"),
        ("True", "'True'"),
        ("x < True", "'True'"),
        ("x < 2j", "'2j'"),
        ("x < None", "'None'"),
        ("x in (1, 2)", "(1, 2)"),
        ("x is 1", "'x is 1'"),
        ("x // 2 < 1", "'x // 2'"),
        ("x % 2 < 1", "'x % 2'"),
        ("x @ y < 1", "'x @ y'"),
        ("x << 2 < 1", "'x << 2'"),
        ("~x < 1", "'~x'"),
        ("+x < 1", "'+x'"),
        ("(x < 1) < 2", "x < 1"),
        ("(x < 1) + 1 < 2", "x < 1"),
        ("abs(x, y) < 1", "abs(x, y)"),
        ("abs() < 1", "abs()"),
        ("min(x) < 1", "min(x)"),
        ("min(*x) < 1", "min(*x)"),
        ("min(x, *x) < 1", "*x"),
        ("max(x, y, key=x) < 1", "key=x"),
        ("sin(x) < 1", "sin(x)"),
        ("x(1) < 1", "x(1)"),
        ("f'{x}' == arm", "{x}"),
        ("arm < 'b'", "arm < "),
        ("arm == arm", "arm == arm"),
        ("arm == 1", "arm == 1"),
        ("arm + 'b' == 'ab'", "arm + "),
        ("x == 'a'", "x == "),
        ("'a' == 'a'", "'a' == 'a'"),
        ("'a' == arm == 'a'", "arm"),
        ("arm == 'b' < 1", "arm"),
        ("arm", "arm"),
        ("max(arm, 'b') == 'b'", "max(arm"),
        ("abs(arm) < 1", "arm"),
        ("not x", "'x'"),
        ("x and y", "'x'"),
        ("1or x < 2", "1or x < 2"),
        ("x <", "x <"),
        ("x < 1; y < 2", "x < 1; y < 2"),
        ("x = 1", "x = 1"),
        ("x < 1\ny < 2", "x < 1"),
        ("\0", "x00"),
        ("x < '\ud800'", "x < "),
        ("x < '\\d'", "x < "),
    ],
)
def test_anything_else_is_refused_with_the_fragment(text: str, fragment: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Predicate(text, KINDS)
    assert str(caught.value).startswith("feasible: expected ")
    assert fragment in str(caught.value)
    assert caught.value.argument == "feasible"


def test_an_unknown_category_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidArgument, match="arm compared with one of 'a', 'b', 'c'"):
        Predicate("arm == 'd'", KINDS)


@pytest.mark.parametrize("text", ["", "   ", 3, b"x < 1", None, ["x < 1"]])
def test_only_a_text_is_read(text: Any) -> None:
    with pytest.raises(InvalidArgument, match="feasible: expected a non-empty text"):
        Predicate(text, KINDS)


@pytest.mark.parametrize("number", ["1e999", "9" * 400])
def test_numbers_beyond_floats_are_refused(number: str) -> None:
    with pytest.raises(InvalidArgument, match="finite numbers"):
        Predicate(f"x < {number}", KINDS)


@pytest.mark.parametrize(
    "text",
    [
        "not " * (DEEPEST_NESTING + 1) + "x < 1",
        "-" * (DEEPEST_NESTING + 1) + "x < 1",
        "+".join(["x"] * (DEEPEST_NESTING + 3)) + "< 1",
        "2" + "**2" * (DEEPEST_NESTING + 1) + "< x",
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match=f"at most {DEEPEST_NESTING} nested"):
        Predicate(text, KINDS)


@pytest.mark.parametrize("open_", ["(", "-", "not ", "abs(", "[", "x if x else "])
def test_text_that_exhausts_the_parser_is_refused(open_: str) -> None:
    with pytest.raises(InvalidArgument):
        Predicate(open_ * (LONGEST_TEXT // len(open_) - 3) + "x", KINDS)


def test_long_text_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=f"at most {LONGEST_TEXT} characters"):
        Predicate("x < 1" + " " * LONGEST_TEXT, KINDS)


def test_towers_of_powers_stay_floats() -> None:
    assert not holds("9 ** 9 ** 9 ** 9 ** 9 > 0")


PIECES = (
    "x y arm 'a' 'z' 1 0 2.5 1e308 ( ) + - * / ** < <= == != and or not abs( max( log( , in is "
    "lambda : := [ ] { } if else . f' ' #"
)
TOKENS = PIECES.split()


@given(st.text() | st.lists(st.sampled_from(TOKENS), max_size=25).map(" ".join))
@example("x < 1 # \f\r")
@example("\x0cx < z")
@example("x < z\r\n")
@example("'é' == z")
@example("\ufeffx < 1")
def test_arbitrary_text_is_a_predicate_or_refused(text: str) -> None:
    try:
        predicate = Predicate(text, KINDS)
    except InvalidArgument:
        return
    numbers = np.array([-1.0, 0.0, 2.0])
    found = predicate({"x": numbers, "y": numbers[::-1], "arm": np.arange(3.0)}, count=3)
    assert found.shape == (3,)
    assert found.dtype == np.bool_
