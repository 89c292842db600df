"""One coordinate: its bounds, its columns, and the way there and back."""

import enum
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.domain.coordinates import (
    FEWEST_STEPS,
    LARGEST_INTEGER,
    Categorical,
    Continuous,
    Integer,
    read_coordinates,
)
from discreet.errors import InvalidArgument

# Its digits are more than Python is willing to print.
HUGE = pytest.param(10**5000, id="huge")
finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "1", None, True, 1j, [1], HUGE])
@pytest.mark.parametrize("end", ["low", "high"])
def test_a_continuous_range_has_finite_ends(end: str, bad: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"^{end}: expected a finite number"):
        Continuous(**{"low": 0.0, "high": 1.0, end: bad})


@pytest.mark.parametrize("bad", [1.0, 0.5, "1", None, True, LARGEST_INTEGER + 1, HUGE])
@pytest.mark.parametrize("end", ["low", "high"])
def test_an_integer_range_has_whole_ends_that_floats_can_hold(end: str, bad: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"^{end}: expected a whole number between"):
        Integer(**{"low": 0, "high": 1, end: bad})


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (0.0, -0.0)])
def test_a_continuous_range_is_not_empty(low: float, high: float) -> None:
    with pytest.raises(InvalidArgument, match="high: expected a number above low = "):
        Continuous(low, high)


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1)])
def test_an_integer_range_has_two_values(low: int, high: int) -> None:
    with pytest.raises(InvalidArgument, match=f"high: expected a whole number above low = {low}"):
        Integer(low, high)


@pytest.mark.parametrize(("low", "high"), [(1e16, 1e16 + 4), (-1e308, 1e308), (0.0, 5e-324)])
def test_a_range_that_floats_cannot_resolve_is_refused(low: float, high: float) -> None:
    with pytest.raises(InvalidArgument, match="high - low finite and at least"):
        Continuous(low, high)


@pytest.mark.parametrize(
    "bad", [(), ("a",), ("a", "a"), ("a", ""), ("a", 1), "ab", 3, ("a", "\ud800")]
)
def test_categories_are_two_or_more_distinct_printable_strings(bad: Any) -> None:
    with pytest.raises(InvalidArgument, match="values: expected at least 2 distinct, non-empty"):
        Categorical(bad)


def test_numpy_scalars_and_lists_become_plain_python_values() -> None:
    given_end: Any = np.int32(4)
    for end in (Continuous(0, given_end).high, Continuous(0, np.float64(4)).high):
        assert type(end) is float
    assert type(Integer(0, given_end).high) is int
    given_values: Any = [np.str_("a"), "b"]
    assert Categorical(given_values).values == ("a", "b")
    assert type(Categorical(given_values).values[0]) is str
    assert repr(Continuous(-0.0, 1).low) == "0.0"


def test_constructing_again_from_the_fields_changes_nothing() -> None:
    for coordinate in (Continuous(0, 3), Integer(0, 3), Categorical(("a", "b"))):
        assert type(coordinate)(**vars(coordinate)) == coordinate


def test_an_enumeration_of_strings_names_a_category() -> None:
    class Arm(str, enum.Enum):  # noqa: UP042 - the older kind is the one that hashes by name
        A = "a"

    assert Categorical(("b", "a")).number(Arm.A) == 1.0


@pytest.mark.parametrize("k", range(2, 9))
def test_any_two_categories_are_at_distance_one_inside_the_cube(k: int) -> None:
    category = Categorical(tuple(f"v{i}" for i in range(k)))
    vertices = category.vertices
    assert vertices.shape == (k, k - 1)
    assert vertices.min() >= 0.0
    assert vertices.max() <= 1.0
    distances = np.linalg.norm(vertices[:, None] - vertices[None], axis=-1)
    np.testing.assert_allclose(distances, 1.0 - np.eye(k), rtol=0, atol=1e-14)
    np.testing.assert_allclose(category.extents, vertices.max(axis=0) - vertices.min(axis=0))


@given(finite, finite, st.floats(0, 1))
def test_a_continuous_value_comes_back_and_never_leaves_the_range(
    low: float, high: float, scaled: float
) -> None:
    try:
        coordinate = Continuous(low, high)
    except InvalidArgument:
        return
    number = coordinate.unscale(np.array([[scaled]]))
    assert coordinate.holds(number).all()
    columns = coordinate.scale(number)
    assert 0.0 <= columns[0, 0] <= 1.0
    assert abs(columns[0, 0] - scaled) <= 2 / FEWEST_STEPS
    back = coordinate.unscale(columns)
    assert abs(back[0] - number[0]) <= 4 * math.ulp(max(abs(low), abs(high)))
    np.testing.assert_array_equal(coordinate.unscale(np.array([[0.0], [1.0]])), [low, high])
    np.testing.assert_array_equal(coordinate.scale(np.array([low, high])), [[0.0], [1.0]])


whole = st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)


@given(st.tuples(whole, whole, whole).map(sorted))
def test_a_whole_number_comes_back_exactly(numbers: list[int]) -> None:
    low, value, high = numbers
    if low == high:
        return
    coordinate = Integer(low, high)
    columns = coordinate.scale(np.array([coordinate.number(value)]))
    assert coordinate.value(coordinate.unscale(columns)[0]) == value


@pytest.mark.parametrize("coordinate", [Integer(-1, 2), Categorical(("a", "b", "c", "d"))])
def test_equal_parts_of_the_unit_interval_become_equally_many_values(
    coordinate: Integer | Categorical,
) -> None:
    numbers = coordinate.unscale(coordinate.place(np.linspace(0, 1, 401)[:-1]))
    assert np.unique(numbers, return_counts=True)[1].tolist() == [100] * 4
    assert coordinate.holds(coordinate.unscale(coordinate.place(np.array([1.0])))).all()


@pytest.mark.parametrize("bad", [{}, [], None, "dose", [("dose", (0, 1))]])
def test_coordinates_come_in_a_non_empty_mapping(bad: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^coordinates: expected a non-empty mapping"):
        read_coordinates(bad)


@pytest.mark.parametrize("name", ["my dose", "", "1st", "a-b", 3, None, "ﬁ", "dose\n"])
def test_names_are_identifiers(name: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^coordinates: expected names that are identifiers"):
        read_coordinates({name: (0, 1)})


@pytest.mark.parametrize("name", ["lambda", "None", "and"])
def test_names_are_not_keywords(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"not Python keywords, got '{name}'"):
        read_coordinates({name: (0, 1)})


@pytest.mark.parametrize("bad", [(0,), (0, 1, 2), 3, "ab", None, {"low": 0, "high": 1}])
def test_a_coordinate_is_one_of_the_kinds_or_a_pair(bad: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^coordinates\['x'\]: expected Continuous, Integer"):
        read_coordinates({"x": bad})


@pytest.mark.parametrize("bad", [(1, 0), (0, float("inf")), ("a", "b"), (True, 2)])
def test_a_bad_pair_is_refused_under_the_name_of_its_coordinate(bad: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^coordinates\['x'\]: expected a pair low < high"):
        read_coordinates({"x": bad})
