"""Candidates and contexts: what is accepted, and that a refusal never repeats what came."""

import sqlite3
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.domain.box import Box, Categorical, Integer
from discreet.errors import InvalidArgument

CANARY = 987654.321
TEXT_CANARY = "canary-987654"

BOX = Box(
    {"dose": (0, 10), "pills": Integer(1, 3), "arm": Categorical(("a", "b")), "age": (18, 90)},
    context=("age", "arm"),
    feasible="dose + pills <= 12",
)
NUMBERS = Box({"dose": (0, 10), "age": (18, 90)}, feasible="dose < 9")
BALL = Box({"x": (0, 1e6), "y": (0, 1e6)}, shape="ball", context=("y",))
GOOD: dict[str, object] = {"dose": 5.0, "pills": 2, "arm": "a", "age": 54}


def refusal(call: Callable[[], object]) -> str:
    """The message, after checking that no error in the chain repeats a private value."""
    with pytest.raises(InvalidArgument) as caught:
        call()
    error: BaseException | None = caught.value
    assert error is not None
    message = str(error)
    while error is not None:
        assert "987654" not in repr(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return message


@pytest.mark.parametrize(
    ("name", "bad", "expectation"),
    [
        ("dose", CANARY, "dose to be a finite number within [0.0, 10.0] (row 1)"),
        ("dose", -CANARY, "dose to be a finite number within [0.0, 10.0] (row 1)"),
        ("dose", TEXT_CANARY, "dose to be a finite number within [0.0, 10.0] (row 1)"),
        ("dose", float("nan"), "dose to be a finite number within [0.0, 10.0] (row 1)"),
        ("dose", float("inf"), "dose to be a finite number within [0.0, 10.0] (row 1)"),
        ("dose", 987654**100, "dose to be a finite number within [0.0, 10.0] (row 1)"),
        ("dose", True, "dose to be a finite number within [0.0, 10.0] (row 1)"),
        ("dose", np.bool_(True), "dose to be a finite number within [0.0, 10.0] (row 1)"),
        ("dose", None, "dose to be a finite number within [0.0, 10.0] (row 1)"),
        ("dose", [CANARY], "dose to be a finite number within [0.0, 10.0] (row 1)"),
        ("dose", Fraction(1, 987654), "dose to be a finite number within [0.0, 10.0] (row 1)"),
        ("pills", 1.987654, "pills to be a whole number within [1, 3] (row 1)"),
        ("pills", 987654, "pills to be a whole number within [1, 3] (row 1)"),
        ("arm", TEXT_CANARY, "arm to be one of 'a', 'b' (row 1)"),
        ("arm", CANARY, "arm to be one of 'a', 'b' (row 1)"),
        ("arm", [TEXT_CANARY], "arm to be one of 'a', 'b' (row 1)"),
        ("arm", 0, "arm to be one of 'a', 'b' (row 1)"),
    ],
)
def test_a_bad_value_is_refused_by_coordinate_range_and_row(
    name: str, bad: Any, expectation: str
) -> None:
    message = refusal(lambda: BOX.encode([GOOD, {**GOOD, name: bad}]))
    assert message == f"candidates: expected {expectation}"
    as_rows = [list(GOOD.values()), list({**GOOD, name: bad}.values())]
    assert refusal(lambda: BOX.encode(as_rows)) == message


@pytest.mark.parametrize(
    ("points", "expectation"),
    [
        ([], "a non-empty sequence of points"),
        (None, "a non-empty sequence of points"),
        (GOOD, "a non-empty sequence of points"),
        (TEXT_CANARY, "a non-empty sequence of points"),
        (CANARY, "a non-empty sequence of points"),
        (np.array(CANARY), "a non-empty sequence of points"),
        (np.empty((0, 4)), "a non-empty sequence of points"),
        ([CANARY], "values for 'dose', 'pills', 'arm', 'age' (row 0)"),
        (np.array([CANARY] * 4), "values for 'dose', 'pills', 'arm', 'age' (row 0)"),
        ([TEXT_CANARY], "values for 'dose', 'pills', 'arm', 'age' (row 0)"),
        ([GOOD, [CANARY] * 3], "values for 'dose', 'pills', 'arm', 'age' (row 1)"),
        ([[CANARY] * 5], "values for 'dose', 'pills', 'arm', 'age' (row 0)"),
        ([GOOD, {"dose": CANARY, "pills": 1}], "a value for 'arm', 'age' (row 1)"),
        ([{**GOOD, TEXT_CANARY: 1}], "no names but 'dose', 'pills', 'arm', 'age' (row 0)"),
        ([{**GOOD, "dose": 10, "pills": 3}], "points that satisfy 'dose + pills <= 12' (row 0)"),
    ],
)
def test_points_of_the_wrong_form_are_refused(points: Any, expectation: str) -> None:
    message = refusal(lambda: BOX.encode(points))
    assert message.startswith(f"candidates: expected {expectation}")


@pytest.mark.parametrize(
    ("array", "expectation"),
    [
        (np.array([[1.0, 20.0], [1.0, CANARY]]), "age to be a finite number within"),
        (np.array([[1, 20], [1, 987654]]), "age to be a finite number within"),
        (np.array([[1.0, 20.0], [1.0, np.nan]]), "age to be a finite number within"),
        (np.array([[1.0, 20.0], [1.0, np.inf]]), "age to be a finite number within"),
        (np.array([[1.0, 20.0], [9.5, 20.0]]), "points that satisfy 'dose < 9' (row 1)"),
        (np.array([[CANARY], [CANARY]]), "values for 'dose', 'age' (row 0)"),
        (np.full((1, 2, 2), CANARY), "dose to be a finite number"),
        (np.array([[True, True]]), "dose to be a finite number"),
        (np.array([["1", TEXT_CANARY]]), "dose to be a finite number"),
        (np.array([[1j, CANARY]]), "dose to be a finite number"),
        (np.array([[1.0, CANARY]], dtype=object), "age to be a finite number"),
        (np.array([["2020-01-01", "2020-01-01"]], dtype="datetime64[D]"), "dose to be a finite"),
    ],
)
def test_bad_arrays_are_refused(array: Any, expectation: str) -> None:
    message = refusal(lambda: NUMBERS.encode(array, argument="explore"))
    assert message.startswith(f"explore: expected {expectation}")


@pytest.mark.parametrize(
    "points",
    [
        [{"dose": 5, "age": 36}],
        [{"age": np.float32(36), "dose": np.int8(5)}],
        ({"dose": 5.0, "age": 36},),
        [[5, 36]],
        [(5.0, np.float64(36.0))],
        [np.array([5, 36])],
        np.array([[5, 36]]),
        np.array([[5, 36]], dtype=np.uint8),
        np.array([[5, 36]], dtype=np.float16),
        np.array([[5, 36]], dtype=np.longdouble),
        np.array([[5, 36]], dtype=object),
    ],
)
def test_mappings_rows_and_arrays_of_any_number_type_mean_the_same(points: Any) -> None:
    encoded = NUMBERS.encode(points)
    np.testing.assert_array_equal(encoded, [[0.5, 0.25]])
    assert encoded.dtype == np.float64


def test_the_border_is_inside_and_the_next_float_is_not() -> None:
    box = Box({"x": (0.1, 0.7)})
    np.testing.assert_array_equal(box.encode([[0.1], [0.7]]), [[0.0], [1.0]])
    for outside in (np.nextafter(0.1, -1), np.nextafter(0.7, 1)):
        with pytest.raises(InvalidArgument, match=r"x to be a finite number within \[0.1, 0.7\]"):
            box.encode(np.array([[outside]]))


def test_negative_zero_has_the_bytes_of_zero() -> None:
    box = Box({"x": (0, 1), "n": Integer(0, 1)})
    assert box.encode([[-0.0, -0.0]]).tobytes() == box.encode([[0.0, 0]]).tobytes()


def test_encoding_does_not_touch_or_keep_the_given_array() -> None:
    given = np.array([[0.0, 18.0]])
    NUMBERS.encode(given)[:] = 7.0
    np.testing.assert_array_equal(given, [[0.0, 18.0]])


def test_a_point_outside_the_ball_is_refused_by_row() -> None:
    message = refusal(lambda: BALL.encode([[5e5, 5e5], [CANARY, CANARY]]))
    assert message == "candidates: expected points inside the ball (row 1)"


@pytest.mark.parametrize(
    ("context", "expectation"),
    [
        ({"age": CANARY, "arm": "a"}, "age to be a finite number within [18.0, 90.0]"),
        ({"age": TEXT_CANARY, "arm": "a"}, "age to be a finite number within [18.0, 90.0]"),
        ({"age": 20, "arm": TEXT_CANARY}, "arm to be one of 'a', 'b'"),
        ({"age": CANARY}, "a value for 'arm'"),
        ({}, "a value for 'arm', 'age'"),
        ({"age": 20, "arm": "a", TEXT_CANARY: CANARY}, "no names but 'arm', 'age'"),
        ({"age": 20, "arm": "a", "dose": CANARY}, "no names but 'arm', 'age'"),
        (None, "a mapping with the names 'arm', 'age'"),
        ([CANARY], "a mapping with the names 'arm', 'age'"),
        (CANARY, "a mapping with the names 'arm', 'age'"),
    ],
)
def test_a_bad_context_is_refused_without_repeating_it(context: Any, expectation: str) -> None:
    message = refusal(lambda: BOX.encode_context(context))
    assert message == f"context: expected {expectation}"


def test_a_box_without_context_takes_none() -> None:
    assert NUMBERS.encode_context({}).shape == (0,)
    message = refusal(lambda: NUMBERS.encode_context({TEXT_CANARY: 1}))
    assert message == "context: expected no names but (none)"


@pytest.mark.parametrize("method", [BOX.decode, BOX.snap, BOX.admits, BOX.spread])
@pytest.mark.parametrize(
    "bad", [[[CANARY]], [TEXT_CANARY], CANARY, [[CANARY, np.nan, 0, 0]], [[1], [CANARY, 2]]]
)
def test_bad_scaled_points_are_refused_without_repeating_them(
    method: Callable[[Any], object], bad: Any
) -> None:
    assert "of 4 finite numbers" in refusal(lambda: method(bad))


def test_uniform_numbers_are_within_the_unit_interval() -> None:
    message = refusal(lambda: BOX.spread([[0.5, 0.5, 0.5, CANARY]]))
    assert message == "uniforms: expected numbers within [0, 1]"


# -- values as other libraries write them


SEEN = Box(
    {"dose": (0, 10), "share": (0, 1), "smokes": Integer(0, 1), "arm": Categorical(("1", "True"))}
)


@pytest.mark.parametrize(
    "row",
    [
        {"dose": np.float32(5), "share": np.True_, "smokes": np.bool_(False), "arm": np.int64(1)},
        {"dose": np.array(5.0), "share": True, "smokes": False, "arm": 1},
        {"dose": np.int8(5), "share": 1, "smokes": np.uint8(0), "arm": np.str_("1")},
    ],
)
def test_scalars_of_numpy_and_truth_values_are_taken_where_they_mean_one_thing(row: Any) -> None:
    expected = SEEN.encode([{"dose": 5.0, "share": 1.0, "smokes": 0, "arm": "1"}])
    assert SEEN.encode([row]).tolist() == expected.tolist()
    assert SEEN.encode([{**row, "arm": True}]).tolist() == [[0.5, 1.0, 0.0, 1.0]]


def test_a_category_is_not_named_by_a_float() -> None:
    good = {"dose": 5, "share": 1, "smokes": 0}
    for bad in (1.0, np.float64(1)):
        message = refusal(lambda bad=bad: SEEN.encode([{**good, "arm": bad}]))
        assert message == "candidates: expected arm to be one of '1', 'True' (row 0)"


def test_a_row_of_a_table_is_a_context_and_a_candidate() -> None:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    row = connection.execute("select 5 as dose, 36 as age").fetchone()
    box = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
    assert box.encode([row]).tolist() == [[0.5, 0.25]]
    assert box.encode_context(connection.execute("select 36 as age").fetchone()).tolist() == [0.25]
    connection.close()
