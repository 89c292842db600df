"""The box: the way to the unit cube and back, snapping, spreading, and what it refuses."""

import copy
import dataclasses
import pickle
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.domain.box import LARGEST_SWEEP, Box, Categorical, Continuous, Coordinate, Integer
from discreet.errors import InvalidArgument
from discreet.storage import canonical

Floats = NDArray[np.float64]

MIXED = Box(
    {
        "dose": (0, 10),
        "pills": Integer(-2, 5),
        "arm": Categorical(("a", "b", "c", "d")),
        "age": (18, 90),
    },
    context=("age",),
    feasible="dose * pills <= 30 and not (arm == 'b' and dose > 5)",
)
BALL = Box({"x": (-3, 5), "y": (0, 1), "z": (10, 11)}, shape="ball", context=("z",))

XY: dict[str, Any] = {"x": (0, 1), "y": (0, 1)}


def continuous(low: float, width: float) -> Continuous:
    return Continuous(low, low + width)


def integer(low: int, width: int) -> Integer:
    return Integer(low, low + width)


def categorical(k: int) -> Categorical:
    return Categorical(tuple("abcdef"[:k]))


coordinates = st.one_of(
    st.builds(continuous, st.floats(-1e5, 1e5), st.floats(1, 1e6)),
    st.builds(integer, st.integers(-99, 99), st.integers(1, 99)),
    st.builds(categorical, st.integers(2, 6)),
)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    table: dict[str, Coordinate] = {
        f"x{i}": c for i, c in enumerate(draw(st.lists(coordinates, min_size=1, max_size=4)))
    }
    numeric = [name for name, c in table.items() if not isinstance(c, Categorical)]
    context = draw(st.lists(st.sampled_from(sorted(table)), unique=True, max_size=len(table) - 1))
    shape: Any = "box"
    if all(isinstance(c, Continuous) for c in table.values()):
        shape = draw(st.sampled_from(["box", "ball"]))
    feasible = None
    if numeric and draw(st.booleans()):
        first = table[numeric[0]]
        middle = 0.0 if isinstance(first, Categorical) else (first.low + first.high) / 2
        feasible = f"{numeric[0]} <= {middle!r}"
    given_context: Any = context
    return Box(table, context=given_context, feasible=feasible, shape=shape)


@st.composite
def boxes_and_rows(draw: st.DrawFn, low: float, high: float, per: str) -> tuple[Box, Floats]:
    box = draw(boxes())
    width = box.dimension if per == "column" else len(box.names)
    rows = draw(
        st.lists(st.lists(st.floats(low, high), min_size=width, max_size=width), min_size=1)
    )
    return box, np.array(rows, dtype=np.float64)


def is_discrete(box: Box) -> NDArray[np.bool_]:
    return ~box.continuous


@given(boxes_and_rows(0, 1, "coordinate"))
def test_spread_points_are_valid_and_survive_decoding_and_encoding(
    case: tuple[Box, Floats],
) -> None:
    box, uniforms = case
    points = box.spread(uniforms)
    assert points.shape[1] == box.dimension
    assert len(points) <= len(uniforms)
    assert box.admits(points).all()
    assert (points >= 0.0).all()
    assert (points <= 1.0).all()
    if len(points):
        natural = [box.decode(point) for point in points]
        again = box.encode(natural)
        np.testing.assert_allclose(again, points, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(again[:, is_discrete(box)], points[:, is_discrete(box)])


@given(boxes_and_rows(-1, 2, "column"))
def test_snapping_is_idempotent_and_gives_encodings(case: tuple[Box, Floats]) -> None:
    box, points = case
    snapped = box.snap(points)
    np.testing.assert_array_equal(box.snap(snapped), snapped)
    assert (snapped >= 0.0).all()
    assert (snapped <= 1.0).all()
    everywhere = dataclasses.replace(box, feasible=None)
    assert everywhere.admits(snapped).all()
    again = everywhere.encode([everywhere.decode(point) for point in snapped])
    np.testing.assert_allclose(again, snapped, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(again[:, is_discrete(box)], snapped[:, is_discrete(box)])


@given(boxes_and_rows(-1, 2, "column"))
def test_a_snapped_point_is_admitted_exactly_if_its_decoding_is_accepted(
    case: tuple[Box, Floats],
) -> None:
    box, points = case
    for point in box.snap(points):
        try:
            box.encode([box.decode(point)])
        except InvalidArgument:
            accepted = False
        else:
            accepted = True
        assert box.admits(point[None])[0] == accepted


@given(boxes_and_rows(0, 1, "coordinate"))
def test_no_encoding_is_nearer_than_the_snapped_one(case: tuple[Box, Floats]) -> None:
    box, uniforms = case
    encodings = dataclasses.replace(box, feasible=None).spread(uniforms)
    raw = np.roll(encodings, 1, axis=0) * 0.7 + 0.2
    snapped = box.snap(raw)
    to_snapped = np.linalg.norm(raw - snapped, axis=1)
    to_others = np.linalg.norm(raw[:, None] - encodings[None], axis=-1)
    if box.shape == "box":
        assert (to_snapped[:, None] <= to_others + 1e-9).all()


@given(boxes())
def test_a_box_survives_the_codec_pickling_and_copying(box: Box) -> None:
    again = canonical.decode(Box, canonical.encode(box))
    for other in (again, pickle.loads(pickle.dumps(box)), copy.deepcopy(box), copy.copy(box)):
        assert other == box
        assert hash(other) == hash(box)
        assert canonical.digest(other) == canonical.digest(box)


@given(boxes_and_rows(0, 1, "coordinate"))
def test_the_diameter_and_the_widths_cover_every_pair_of_points(case: tuple[Box, Floats]) -> None:
    box, uniforms = case
    points = box.spread(uniforms)
    gaps = np.abs(points[:, None] - points[None])
    assert (np.linalg.norm(gaps, axis=-1) <= box.diameter + 1e-9).all()
    assert (gaps <= box.widths + 1e-12).all()


@given(boxes_and_rows(0, 1, "coordinate"))
def test_a_fixed_context_stays_and_the_rest_is_valid(case: tuple[Box, Floats]) -> None:
    box, uniforms = case
    people = dataclasses.replace(box, feasible=None).spread(uniforms)
    columns = list(box.context_columns)
    for person in people[:3]:
        natural = box.decode(person)
        context = box.encode_context({name: natural[name] for name in box.context})
        np.testing.assert_allclose(context, person[columns], rtol=0, atol=1e-9)
        points = box.spread(uniforms, context=context)
        assert box.admits(points).all()
        np.testing.assert_array_equal(points[:, columns], np.tile(context, (len(points), 1)))
        raw = np.full((2, box.dimension), 1.5)
        raw[:, columns] = context
        np.testing.assert_array_equal(box.snap(raw)[:, columns], raw[:, columns])


def test_columns_follow_the_order_of_the_coordinates() -> None:
    assert MIXED.names == ("dose", "pills", "arm", "age")
    assert MIXED.dimension == 6
    assert [MIXED.columns(name) for name in MIXED.names] == [(0,), (1,), (2, 3, 4), (5,)]
    assert MIXED.continuous.tolist() == [True, False, False, False, False, True]
    assert MIXED.movable.tolist() == [True, True, False, False, False, True]
    assert MIXED.discrete == ("pills", "arm")
    assert MIXED.context_columns == (5,)
    assert MIXED.free_columns == (0, 1, 2, 3, 4)
    assert MIXED.has_context
    assert MIXED.diameter == 2.0


def test_shared_arrays_cannot_be_written_to() -> None:
    for array in (MIXED.continuous, MIXED.movable, MIXED.widths):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_decoded_values_are_plain_python_values() -> None:
    decoded = MIXED.decode(np.full(6, 0.4))
    assert [type(value) for value in decoded.values()] == [float, int, str, float]


def test_the_ends_decode_exactly_and_anything_beyond_is_clipped() -> None:
    box = Box({"x": (0.1, 0.7), "n": Integer(-7, 3)})
    assert box.decode([0.0, 0.0]) == box.decode([-0.2, -3.0]) == {"x": 0.1, "n": -7}
    assert box.decode([1.0, 1.0]) == box.decode([1.0 + 1e-9, 9.0]) == {"x": 0.7, "n": 3}


def test_settings_are_all_the_encodings_of_a_discrete_coordinate() -> None:
    np.testing.assert_array_equal(MIXED.settings("pills")[:, 0], np.arange(8) / 7)
    points = np.zeros((4, 6))
    points[:, list(MIXED.columns("arm"))] = MIXED.settings("arm")
    assert [MIXED.decode(point)["arm"] for point in points] == list("abcd")


def test_what_cannot_be_listed_has_no_settings() -> None:
    box = Box({"x": (0, 1), "n": Integer(0, LARGEST_SWEEP)})
    assert box.discrete == ()
    for name in ("x", "n"):
        with pytest.raises(InvalidArgument, match=f"at most {LARGEST_SWEEP} values, got '{name}'"):
            box.settings(name)
    with pytest.raises(InvalidArgument, match="name: expected one of 'x', 'n', got 'y'"):
        box.columns("y")


def test_no_predicate_loses_no_point_also_in_a_ball_of_many_dimensions() -> None:
    box = Box({f"x{i}": (0, 1) for i in range(30)}, shape="ball")
    uniforms = np.random.Generator(np.random.Philox(1)).random((64, 30))
    assert box.spread(uniforms).shape == (64, 30)
    assert box.diameter == 1.0


def test_a_ball_snaps_radially_and_leaves_the_context_where_it_is() -> None:
    snapped = BALL.snap([[1.5, 0.5, 0.8], [0.5, 0.5, 0.2], [0.5, 1.5, 1.0]])
    np.testing.assert_allclose(snapped, [[0.9, 0.5, 0.8], [0.5, 0.5, 0.2], [0.5, 0.5, 1.0]])


def test_feasibility_is_judged_in_natural_units() -> None:
    points = MIXED.encode(
        [
            {"dose": 6, "pills": 5, "arm": "a", "age": 20},
            {"dose": 5, "pills": -2, "arm": "b", "age": 20},
        ]
    )
    assert MIXED.admits(points).tolist() == [True, True]
    moved = points.copy()
    moved[:, 0] = 0.61
    assert MIXED.admits(moved).tolist() == [False, False]


def test_equality_respects_the_order_of_coordinates_but_not_of_context_names() -> None:
    one = Box({"x": (0, 1), "y": (0, 1), "z": (0, 1)}, context=("x", "y"))
    assert one == Box({"x": (0, 1), "y": (0, 1), "z": (0, 1)}, context=("y", "x"))
    assert one != Box({"y": (0, 1), "x": (0, 1), "z": (0, 1)}, context=("x", "y"))
    assert one != "box"


def test_context_names_may_come_in_a_list() -> None:
    names: Any = ["y"]
    assert Box(XY, context=names) == Box(XY, context=("y",))


def test_a_box_does_not_change_with_the_mapping_it_was_made_from() -> None:
    table: dict[str, Any] = {"x": (0, 1)}
    box = Box(table)
    table["y"] = (0, 1)
    assert box.names == ("x",)
    mutable: Any = box.coordinates
    with pytest.raises(TypeError):
        mutable["y"] = (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coordinates": {}}, "coordinates: expected a non-empty mapping"),
        ({"coordinates": {"my dose": (0, 1)}}, "identifiers, got 'my dose'"),
        ({"coordinates": {"x": (1, 0)}}, "coordinates['x']: expected a pair low < high"),
        ({"coordinates": {"x": (0, float("nan"))}}, "coordinates['x']: expected a pair low < high"),
        ({"context": ["z"]}, "context: expected different names out of 'x', 'y', got ['z']"),
        ({"context": ["x", "x"]}, "context: expected different names out of 'x', 'y'"),
        ({"context": "x"}, "context: expected different names out of 'x', 'y', got 'x'"),
        ({"context": None}, "context: expected different names out of 'x', 'y'"),
        ({"context": [3]}, "context: expected different names out of 'x', 'y', got [3]"),
        ({"context": ["x", "y"]}, "context: expected at least one coordinate left to choose"),
        ({"shape": "cube"}, "shape: expected 'box' or 'ball', got 'cube'"),
        ({"shape": None}, "shape: expected 'box' or 'ball'"),
        ({"feasible": 3}, "feasible: expected a non-empty text, or None, got 3"),
        ({"feasible": ""}, "feasible: expected a non-empty text, or None, got ''"),
        ({"feasible": "z < 1"}, "got 'z'"),
        ({"feasible": "x > 1"}, "a predicate that some points of the box satisfy, got 'x > 1'"),
        ({"feasible": "1 / 0 > x"}, "a predicate that some points of the box satisfy"),
        (
            {"feasible": "x > 0.95 and y > 0.95", "shape": "ball"},
            "a predicate that some points of the box satisfy",
        ),
        (
            {"coordinates": {"x": (0, 1), "arm": Categorical(("a", "b"))}, "shape": "ball"},
            "shape: expected 'box', because arm is not Continuous, got 'ball'",
        ),
        (
            {"coordinates": {"x": (0, 1), "n": Integer(0, 3)}, "shape": "ball"},
            "shape: expected 'box', because n is not Continuous, got 'ball'",
        ),
    ],
)
def test_a_bad_box_is_refused_saying_which_and_why(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Box(**cast(Any, {"coordinates": XY, **arguments}))
    assert message in str(caught.value)
