"""One value, one form: round trips, refusals and the place they name."""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any, Literal, Union

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from numpy.typing import NDArray

from discreet.errors import InvalidArgument, Malformed
from discreet.storage.canonical import decode, digest, encode


@dataclass(frozen=True)
class Leaf:
    lengthscale: float = 1.0

    def __post_init__(self):
        if self.lengthscale <= 0:
            raise InvalidArgument("lengthscale", "a positive number", self.lengthscale)


@dataclass(frozen=True)
class Sum:
    left: "Kernel"
    right: "Kernel"


Kernel = Union["Leaf", "Sum"]


@dataclass(frozen=True, eq=False)
class Everything:
    kernel: Kernel
    zone: str
    mode: Literal["a", 1, True, None]
    count: int
    done: bool
    nothing: None
    ratio: float
    bound: float | None
    names: tuple[str, ...]
    pair: tuple[int, str]
    bounds: Mapping[str, tuple[float, float]]
    many: tuple[Kernel, ...] | Leaf | float | bool | str | None
    table: Mapping[str, int] | int
    weights: NDArray[np.float64]
    sums: NDArray[np.int64] | Sum
    derived: int = field(init=False, default=3)
    cache: Any = field(default=None, compare=False, repr=False)


floats = st.floats(allow_nan=False, allow_infinity=False)
kernels = st.recursive(
    st.builds(Leaf, st.floats(1e-300, 1e300)), lambda inner: st.builds(Sum, inner, inner)
)
shapes = nps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
everything = st.builds(
    Everything,
    kernel=kernels,
    zone=st.text(),
    mode=st.sampled_from(["a", 1, True, None]),
    count=st.integers(),
    done=st.booleans(),
    nothing=st.none(),
    ratio=floats,
    bound=st.none() | floats,
    names=st.lists(st.text()).map(tuple),
    pair=st.tuples(st.integers(), st.text()),
    bounds=st.dictionaries(st.text(), st.tuples(floats, floats)),
    many=st.one_of(
        st.lists(kernels, max_size=3).map(tuple),
        st.builds(Leaf),
        floats,
        st.booleans(),
        st.text(),
        st.none(),
    ),
    table=st.integers() | st.dictionaries(st.text(), st.integers()),
    weights=nps.arrays(np.float64, shapes, elements=floats),
    sums=nps.arrays(np.int64, shapes) | st.builds(Sum, kernels, kernels),
    cache=st.none(),
)

SAMPLE = Everything(
    kernel=Sum(Leaf(0.5), Leaf(1e-05)),
    zone='é"\n\x7f😀',
    mode=True,
    count=-(10**20),
    done=False,
    nothing=None,
    ratio=-0.0,
    bound=1e22,
    names=("x", ""),
    pair=(3, "y"),
    bounds={"dose": (0.0, 10.0), "age": (18.0, 90.0)},
    many=(Leaf(2.0),),
    table={"b": 1, "a": 2},
    weights=np.array([[1.0, -0.0]]),
    sums=np.array([1, -1]),
)
GOLDEN = (
    '{"bound":1e+22,"bounds":[["dose",[0.0,10.0]],["age",[18.0,90.0]]],'
    '"count":-100000000000000000000,"done":false,"kernel":{"left":{"lengthscale":0.5,'
    '"type":"Leaf"},"right":{"lengthscale":1e-05,"type":"Leaf"},"type":"Sum"},'
    '"many":[{"lengthscale":2.0,"type":"Leaf"}],"mode":true,"names":["x",""],"nothing":null,'
    '"pair":[3,"y"],"ratio":-0.0,'
    '"sums":{"data":"AQAAAAAAAAD//////////w==","dtype":"int64","shape":[2]},'
    '"table":[["b",1],["a",2]],"type":"Everything",'
    '"weights":{"data":"AAAAAAAA8D8AAAAAAAAAgA==","dtype":"float64","shape":[1,2]},'
    '"zone":"é\\"\\n\x7f😀"}'
).encode()


def accepted_only_as_itself(kind, data):
    """`decode` refuses with Malformed, or the bytes are the form of what it returns."""
    try:
        value = decode(kind, data)
    except Malformed:
        return False
    assert encode(value) == data
    return True


# -- the form


def test_the_form_of_a_sample_never_changes():
    assert encode(SAMPLE) == GOLDEN
    assert digest(SAMPLE) == "aa7e2997a5d79cebe3f05bc3b5fee9af07a37760e47b0ccb6c8dbcec6663de18"


def test_the_form_is_json_with_sorted_keys():
    tree = json.loads(GOLDEN)
    tree["zone"] = "text"
    text = encode(dataclasses.replace(SAMPLE, zone="text")).decode()
    assert text == json.dumps(tree, sort_keys=True, separators=(",", ":"))


@given(everything)
def test_every_value_comes_back(value):
    data = encode(value)
    copy = decode(Everything, data)
    assert encode(copy) == data
    for name in ("kernel", "zone", "mode", "count", "pair", "bounds", "many", "table", "names"):
        assert getattr(copy, name) == getattr(value, name)
    assert type(copy.mode) is type(value.mode)
    assert math.copysign(1, copy.ratio) == math.copysign(1, value.ratio)
    assert list(copy.bounds) == list(value.bounds)
    np.testing.assert_array_equal(copy.weights, value.weights)
    assert copy.weights.shape == value.weights.shape
    assert copy.weights.dtype == np.float64
    assert not copy.weights.flags.writeable


def test_the_order_of_a_mapping_is_part_of_the_value():
    turned = dataclasses.replace(SAMPLE, table={"a": 2, "b": 1})
    assert digest(turned) != digest(SAMPLE)
    assert list(decode(Everything, encode(turned)).table) == ["a", "b"]


def test_fields_that_are_not_compared_are_left_out():
    assert encode(dataclasses.replace(SAMPLE, cache=object())) == GOLDEN
    assert decode(Everything, GOLDEN).cache is None


def test_an_int_in_a_float_field_is_the_float_it_equals():
    assert encode(Leaf(2)) == encode(Leaf(2.0)) == encode(Leaf(np.float64(2)))
    assert encode(dataclasses.replace(SAMPLE, bound=3)) == encode(
        dataclasses.replace(SAMPLE, bound=3.0)
    )
    with pytest.raises(InvalidArgument, match="finite float"):
        encode(Leaf(2**53 + 1))


def test_array_layout_in_memory_does_not_matter():
    turned = np.arange(6.0).reshape(2, 3).T
    one = dataclasses.replace(SAMPLE, weights=turned)
    other = dataclasses.replace(SAMPLE, weights=np.ascontiguousarray(turned))
    assert encode(one) == encode(other)


def test_a_union_is_decoded_by_its_tag():
    assert decode(Leaf | Sum, encode(Leaf(2.0))) == Leaf(2.0)
    with pytest.raises(Malformed, match=r"^\$: expected type Leaf or type Sum"):
        decode(Leaf | Sum, GOLDEN)


# -- strict decoding


def mutations(data):
    """Every place, with the bytes that are most likely to slip through there."""
    for place in range(len(data)):
        yield data[:place] + data[place + 1 :]
        for byte in {*b' 0159.eE+-"\\{}[],:/=\x00\x80\xff', data[place] ^ 1, data[place] ^ 32}:
            yield data[:place] + bytes([byte]) + data[place:]
            if byte != data[place]:
                yield data[:place] + bytes([byte]) + data[place + 1 :]


def test_no_mutation_of_a_byte_slips_through():
    outcomes = [accepted_only_as_itself(Everything, mutant) for mutant in mutations(GOLDEN)]
    assert 0 < sum(outcomes) < len(outcomes) / 2


@given(everything, st.data())
def test_no_mutation_of_any_document_slips_through(value, data):
    whole = bytearray(encode(value))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    accepted_only_as_itself(Everything, bytes(whole))


@given(st.binary() | st.text().map(str.encode))
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b'{"left":' * 100_000)
@example(b"\xef\xbb\xbf{}")
@example(b'{"lengthscale":"\xed\xa0\x80","type":"Leaf"}')
@example(b'"Leaf"')
def test_arbitrary_bytes_are_malformed(data):
    assert not accepted_only_as_itself(Leaf, data)
    assert not accepted_only_as_itself(Sum, data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.sampled_from(sorted(json.loads(GOLDEN))), json_values)
def test_any_json_in_a_field_is_malformed_or_itself(name, token):
    tree = json.loads(GOLDEN) | {name: token}
    text = json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    accepted_only_as_itself(Everything, text.encode("utf-8", "surrogatepass"))


def swapped(old, new):
    assert old in GOLDEN
    return GOLDEN.replace(old, new, 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (swapped(b'"ratio":-0.0', b'"ratio":0'), "$.ratio: expected a finite float, got int"),
        (swapped(b'"ratio":-0.0', b'"ratio":NaN'), "$.ratio: expected a finite float, got NaN"),
        (swapped(b'"ratio":-0.0', b'"ratio":1e999'), "$.ratio: expected a finite float"),
        (swapped(b'"ratio":-0.0', b'"ratio":-Infinity'), "$.ratio: expected a finite float, got"),
        (swapped(b'"ratio":-0.0', b'"ratio":true'), "$.ratio: expected a finite float, got bool"),
        (swapped(b'"ratio":-0.0', b'"ratio":-0.00'), "$: expected the canonical form"),
        (swapped(b'"count":-', b'"count":' + b"9" * 5000), "$.count: expected an int of not too"),
        (swapped(b'"count":-1', b'"count":1.'), "$.count: expected an int"),
        (swapped(b'"done":false', b'"done":0'), "$.done: expected one of true, false"),
        (swapped(b'"mode":true', b'"mode":1.0'), '$.mode: expected one of "a", 1, true, null'),
        (swapped(b'"mode":true', b'"mode":[]'), "$.mode: expected one of"),
        (swapped(b'["x",""]', b'["x",4]'), "$.names[1]: expected a str"),
        (swapped(b'["x",""]', b'["x","\\ud800"]'), "$.names[1]: expected a str without lone"),
        (swapped(b'["x",""]', b'["\\u0078",""]'), "$: expected the canonical form"),
        (swapped(b'[3,"y"]', b'[3,"y",1]'), "$.pair: expected 2 items"),
        (swapped(b'[3,"y"]', b'{"3":"y"}'), "$.pair: expected a list"),
        (swapped(b'["age",[18.0', b'["age",[18'), "$.bounds[1][1][0]: expected a finite float"),
        (swapped(b'["age",', b'["dose",'), "$.bounds: expected each key once"),
        (swapped(b"0.5", b"-0.5"), "$.kernel.left: expected a valid Leaf (lengthscale: expected"),
        (swapped(b'"type":"Sum"', b'"type":"Product"'), "$.kernel: expected type Leaf or type Sum"),
        (swapped(b'"type":"Sum"', b'"type":["Sum"]'), "$.kernel: expected type Leaf or type Sum"),
        (swapped(b'"type":"Every', b'"type":"Any'), '$.type: expected one of "Everything"'),
        (swapped(b'"done":false,', b""), "$: expected exactly the keys"),
        (swapped(b'"done":', b'"doing":1,"done":'), "$: expected exactly the keys"),
        (swapped(b'"done":', b'"done":true,"done":'), "$: expected an object, got an object with"),
        (swapped(b'"done":', b' "done":'), "$: expected the canonical form"),
        (swapped(b'"lengthscale":2.0,', b'"lengthscale":2.0,"lengthscale":2.0,'), "$.many[0]: "),
        (swapped(b"8D8AA", b"8D8*A"), "$.weights.data: expected base64"),
        (swapped(b'gA=="', b'gA="'), "$.weights.data: expected base64"),
        (swapped(b'gA=="', b'gB=="'), "$: expected the canonical form"),
        (swapped(b"AAAAAAAA8D8", b"AAAAAAAA8H8"), "$.weights: expected an array of finite"),
        (swapped(b'"float64"', b'"int64"'), '$.weights.dtype: expected one of "float64"'),
        (swapped(b"[1,2]", b"[1,3]"), "$.weights: expected an array of as many numbers"),
        (swapped(b"[1,2]", b"[1,-1]"), "$: expected the canonical form"),
        (swapped(b"[1,2]", b"[1,true]"), "$.weights.shape[1]: expected an int"),
        (swapped(b"[1,2]", b"[" + b"1," * 70 + b"2]"), "$.weights: expected an array of as many"),
        (swapped(b"[1,2]", b"[1,%d]" % 10**30), "$.weights: expected an array of as many numbers"),
        (swapped(b'"shape":[2]', b'"shape":2'), "$.sums.shape: expected a list"),
        (GOLDEN + b"\n", "$: expected the canonical form"),
        (GOLDEN + b"{}", "$: expected JSON, fails at character"),
        (b"", "$: expected JSON"),
        (b"\xff", "$: expected UTF-8, fails at byte 0"),
    ],
)
def test_a_refusal_names_the_place(data, message):
    with pytest.raises(Malformed) as caught:
        decode(Everything, data)
    assert str(caught.value).startswith(message)


def test_the_reason_of_a_constructor_is_kept():
    with pytest.raises(Malformed, match=r"a positive number, got -1\.0") as caught:
        decode(Leaf, b'{"lengthscale":-1.0,"type":"Leaf"}')
    assert isinstance(caught.value.__cause__, InvalidArgument)


@dataclass(frozen=True)
class Rounded:
    ratio: float

    def __post_init__(self):
        1 / self.ratio
        object.__setattr__(self, "ratio", round(self.ratio, 1))


def test_a_value_the_constructor_changes_is_malformed():
    assert decode(Rounded, encode(Rounded(0.14))) == Rounded(0.1)
    with pytest.raises(Malformed, match="canonical form"):
        decode(Rounded, b'{"ratio":0.14,"type":"Rounded"}')


def test_whatever_a_constructor_raises_is_malformed():
    with pytest.raises(Malformed, match="division by zero"):
        decode(Rounded, b'{"ratio":0.0,"type":"Rounded"}')


def test_deep_nesting_is_refused_both_ways():
    kernel = Leaf()
    for _ in range(5000):
        kernel = Sum(kernel, Leaf())
    with pytest.raises(InvalidArgument, match="nesting"):
        encode(kernel)
    leaf = encode(Leaf())
    deep = b'{"left":' * 5000 + leaf + (b',"right":' + leaf + b',"type":"Sum"}') * 5000
    with pytest.raises(Malformed, match="nesting"):
        decode(Sum, deep)


# -- what cannot be encoded


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ratio": math.nan}, r"\$\.ratio: expected a finite float"),
        ({"ratio": True}, r"\$\.ratio: expected a finite float, got bool"),
        ({"count": True}, r"\$\.count: expected an int .*, got bool"),
        ({"count": 1.0}, r"\$\.count: expected an int .*, got float"),
        ({"count": 10**5000}, r"\$\.count: expected an int of not too many digits"),
        ({"zone": "\ud800"}, r"\$\.zone: expected a str without lone surrogates"),
        ({"names": ["x"]}, r"\$\.names: expected a tuple, got list"),
        ({"pair": (1,)}, r"\$\.pair: expected 2 items"),
        ({"mode": 1.0}, r"\$\.mode: expected one of"),
        ({"mode": []}, r"\$\.mode: expected one of"),
        ({"bounds": {1: (0.0, 1.0)}}, r"\$\.bounds\[0\]\[0\]: expected a str"),
        ({"bounds": ()}, r"\$\.bounds: expected a mapping, got tuple"),
        ({"kernel": 3}, r"\$\.kernel: expected type Leaf or type Sum, got int"),
        ({"many": (Leaf(), 3)}, r"\$\.many\[1\]: expected type Leaf or type Sum, got int"),
        ({"weights": [1.0]}, r"\$\.weights: expected an array of float64"),
        ({"weights": np.ones(2, np.float32)}, r"\$\.weights: expected an array of float64"),
        ({"weights": np.array([np.inf])}, r"\$\.weights: expected an array of finite numbers"),
    ],
)
def test_a_wrong_value_is_refused_and_not_echoed(change, message):
    with pytest.raises(InvalidArgument, match=f"^{message}"):
        encode(dataclasses.replace(SAMPLE, **change))


@dataclass
class Thawed:
    x: int


class Undecorated(Leaf):
    pass


@dataclass(frozen=True)
class Extra(Leaf):
    x: int = 0


@pytest.mark.parametrize("value", [3, None, "x", [Leaf()], Leaf, Thawed(3), Undecorated()])
def test_only_frozen_dataclasses_are_encoded(value):
    with pytest.raises(InvalidArgument, match="expected a frozen dataclass"):
        encode(value)


def test_a_subclass_does_not_pass_for_its_base():
    assert decode(Extra, encode(Extra())) == Extra()
    with pytest.raises(InvalidArgument, match=r"\$\.left: expected type Leaf or type Sum"):
        encode(Sum(Extra(), Leaf()))


@pytest.mark.parametrize(
    "annotation",
    [
        list[int], dict[str, int], tuple, bytes, object, Any, Mapping[int, int], Thawed, complex,
        NDArray[np.float32], Literal[b"x"], tuple[int, ...] | Mapping[str, int],
        str | Literal[1, "a"], "Nowhere", InitVar[int],
    ],
)  # fmt: skip
def test_unsupported_annotations_are_refused(annotation):
    kind = dataclasses.make_dataclass("Odd", [("x", annotation)], frozen=True)
    with pytest.raises(InvalidArgument, match=r"Odd|Thawed"):
        encode(kind(1))


def test_data_that_would_be_left_out_is_refused():
    fields = [("x", int, field(compare=False))]
    kind = dataclasses.make_dataclass("Partial", fields, frozen=True)
    with pytest.raises(InvalidArgument, match=r"Partial\.x.*default"):
        encode(kind(1))


def test_a_field_may_not_be_called_type():
    with pytest.raises(InvalidArgument, match=r"Tagged\.type"):
        encode(dataclasses.make_dataclass("Tagged", [("type", str)], frozen=True)("x"))


@pytest.mark.parametrize("kind", [int, Thawed, Leaf | None, tuple[Leaf, ...]])
def test_only_frozen_dataclasses_are_decoded(kind):
    with pytest.raises(InvalidArgument, match="frozen dataclass"):
        decode(kind, b"{}")
