"""Messages have one form, and what is not a message is refused by our own error."""

import json
import math
import random
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.places import TESTS

from discreet import Box, JointDP, LocalDP, Plan, Schedule, SquaredExponential
from discreet.agreement.release import Release
from discreet.errors import InvalidArgument, Malformed
from discreet.protocol.batches import Batch, Sealed, Turn
from discreet.protocol.messages import (
    MOST_BYTES,
    Action,
    Answer,
    Ask,
    Decline,
    IndexReport,
    Message,
    Offer,
    Opening,
    Receipt,
    Report,
    Request,
    read,
    write,
)

WIRE = TESTS / "wire"
LOCAL = (Request, Offer, Report, IndexReport, Decline, Receipt)
JOINT = (Ask, Action, Answer, Release, Opening)
SHUFFLED = (Sealed, Batch, Turn)
KINDS = {kind.__name__: kind for kind in (Plan, *LOCAL, *JOINT, *SHUFFLED)}
GOLDEN = sorted(WIRE.glob("*.json"))
ID, DIGEST = "0123456789abcdef" * 2, "ab" * 32


def kind_of(path):
    return KINDS[json.loads(path.read_bytes())["type"]]


def golden_message(kind):
    """The golden message of this kind."""
    return next(read(kind, path.read_bytes()) for path in GOLDEN if kind_of(path) is kind)


def outcome(kind, data):
    """The message, or None where the bytes are refused; any other error is not caught."""
    try:
        return read(kind, data)
    except Malformed:
        return None


# -- golden files


def test_there_is_a_golden_file_for_every_kind_of_message():
    assert {kind_of(path) for path in GOLDEN} == set(KINDS.values())


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_message_round_trips_byte_for_byte(path):
    data = path.read_bytes()
    message = read(kind_of(path), data)
    assert write(message) == data
    for name, kind in KINDS.items():
        if kind is not type(message):
            with pytest.raises(Malformed):
                read(kind, data)
        assert (name == type(message).__name__) == (kind is type(message))


def test_the_golden_round_is_one_that_fits_together():
    of = {kind_of(path).__name__: read(kind_of(path), path.read_bytes()) for path in GOLDEN}
    plan, offer, report = of["Plan"], of["Offer"], of["Report"]
    assert offer.epoch.plan == plan.digest
    assert report.epoch == offer.epoch.digest
    assert report.integers.size == offer.epoch.encoding.size(plan.map)
    assert of["Request"].id == offer.id == report.id == of["Receipt"].id == of["Decline"].id
    ask, action, opening = of["Ask"], of["Action"], of["Opening"]
    assert ask.id == action.id == of["Answer"].id
    assert ask.candidates[action.chosen] == action.action
    assert opening.previous == opening.epoch.previous == of["Release"].digest
    sealed, batch, turn = of["Sealed"], of["Batch"], of["Turn"]
    assert sealed.epoch == batch.epoch == turn.release.epoch
    assert any(sealed.box in group for group in batch.groups)
    assert sealed.key == turn.key


# -- closed schemas, finite numbers, exact sizes

REPORT = Report(ID, DIGEST, np.array([1, -2, 3]))
BAD = {
    "white space": write(REPORT).replace(b":", b": ", 1),
    "another key": write(REPORT)[:-1] + b',"z":1}',
    "a missing key": write(REPORT).replace(b'"epoch":"' + DIGEST.encode() + b'",', b""),
    "a repeated key": write(REPORT).replace(b'"id":', b'"id":"' + ID.encode() + b'","id":'),
    "keys out of order": b'{"known":0,"id":"' + ID.encode() + b'","type":"Request"}',
    "capital digits": write(REPORT).replace(b"abab", b"ABAB", 1),
    "a short id": write(REPORT).replace(ID.encode(), ID.encode()[:-1]),
    "a long id": write(REPORT).replace(ID.encode(), ID.encode() + b"0"),
    "an id with a newline": write(REPORT).replace(ID.encode(), ID.encode()[:-1] + b"\\n"),
    "floats": write(REPORT).replace(b"int64", b"float64"),
    "a matrix": write(REPORT).replace(b"[3]", b"[3,1]"),
    "another size": write(REPORT).replace(b"[3]", b"[4]"),
    "a negative size": write(REPORT).replace(b"[3]", b"[-1]"),
    "an endless size": write(REPORT).replace(b"[3]", b"[" + b"9" * 5000 + b"]"),
    "not base64": write(REPORT).replace(b'"data":"', b'"data":"*'),
    "no integers": write(REPORT).replace(b"[3]", b"[0]"),
    "another type": write(REPORT).replace(b'"Report"', b'"Decline"'),
    "no bytes": b"",
    "not UTF-8": b"\xff" + write(REPORT),
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "NaN": b'{"id":"' + ID.encode() + b'","known":NaN,"type":"Request"}',
    "a float for a number": b'{"id":"' + ID.encode() + b'","known":1.0,"type":"Request"}',
    "a negative number": b'{"id":"' + ID.encode() + b'","known":-1,"type":"Request"}',
    "true for a number": b'{"id":"' + ID.encode() + b'","known":true,"type":"Request"}',
    "an unknown outcome": b'{"id":"' + ID.encode() + b'","outcome":"lost","type":"Receipt"}',
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_not_exactly_a_message_is_refused(data):
    for kind in KINDS.values():
        with pytest.raises(Malformed):
            read(kind, data)


@pytest.mark.parametrize("data", [None, 3, "{}", bytearray(b"{}"), [b"{}"]], ids=repr)
def test_only_bytes_are_read(data):
    with pytest.raises(Malformed, match="a message: expected at most"):
        read(Request, data)


def test_a_message_beyond_the_limit_is_refused_unread():
    class Huge(bytes):
        def __len__(self):
            return MOST_BYTES + 1

        def decode(self, *_):
            raise AssertionError("read")

    with pytest.raises(Malformed, match=f"at most {MOST_BYTES} bytes"):
        read(Request, Huge())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Request("x"),
        lambda: Request(ID, known=-1),
        lambda: Report(ID, "x", np.array([1])),
        lambda: Report(ID, DIGEST, np.array([1.0])),
        lambda: Report(ID, DIGEST, np.array([[1]])),
        lambda: Report(ID, DIGEST, np.array([], dtype=np.int64)),
        lambda: Report(ID, DIGEST, [1]),
        lambda: Decline(None),
        lambda: Receipt(ID, "refused"),
        lambda: Ask("x"),
        lambda: Ask(ID, user=17.0),
        lambda: Ask(ID, user=True),
        lambda: Ask(ID, user=""),
        lambda: Ask(ID, user="\udc80"),
        lambda: Ask(ID, candidates=()),
        lambda: Ask(ID, candidates=17),
        lambda: Ask(ID, candidates=({},)),
        lambda: Ask(ID, candidates=([1.0],)),
        lambda: Ask(ID, candidates=({"dose": math.nan},)),
        lambda: Ask(ID, candidates=({"dose": None},)),
        lambda: Ask(ID, candidates=({3: 1.0},)),
        lambda: Ask(ID, context={"age": [61]}),
        lambda: Ask(ID, context="age"),
        lambda: Ask(ID, candidates=({"dose": 1.0},), context={"age": 61}),
        lambda: Action(ID, {}),
        lambda: Action(ID, {"dose": math.inf}),
        lambda: Action(ID, {"dose": 1.0}, chosen=-1),
        lambda: Answer("x", 0.5),
        lambda: Answer(ID, math.nan),
        lambda: Answer(ID, "0.5"),
        lambda: Opening("x"),
        lambda: Opening(DIGEST, golden_message(Opening).epoch),
    ],
)
def test_a_message_that_could_not_be_read_can_not_be_made(make):
    with pytest.raises(InvalidArgument):
        make()


def test_what_numpy_brings_is_written_as_pythons_own():
    brought = {"age": np.float32(61), "pills": np.int64(3), "smokes": np.True_, "arm": np.str_("b")}
    plain = {"age": 61.0, "pills": 3, "smokes": True, "arm": "b"}
    for ask, same in (
        (Ask(ID, np.int64(17), context=brought), Ask(ID, "17", context=plain)),
        (Ask(ID, 17, candidates=[brought]), Ask(ID, "17", candidates=(plain,))),
    ):
        assert write(ask) == write(same) == write(read(Ask, write(ask)))
    assert write(Answer(ID, np.True_)) == write(Answer(ID, 1.0))


def test_a_report_does_not_change_with_the_array_it_was_made_from():
    integers = np.array([1, 2])
    report = Report(ID, DIGEST, integers)
    integers[0] = 9
    assert report.integers.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        report.integers[0] = 9


def test_a_report_whose_seal_does_not_fit_can_not_be_made_or_read():
    for parts in ({"id": ID[::-1]}, {"epoch": "cd" * 32}, {"integers": np.array([1, -2, 4])}):
        with pytest.raises(InvalidArgument, match="something in it was changed"):
            replace(REPORT, **parts)
        assert replace(REPORT, **parts, seal="").seal != REPORT.seal
    with pytest.raises(Malformed, match="something in it was changed"):
        read(Report, write(REPORT).replace(ID.encode(), ID[::-1].encode()))
    with pytest.raises(Malformed, match="canonical form"):
        read(Report, write(REPORT).replace(REPORT.seal.encode(), b""))


def test_an_ask_does_not_change_with_what_it_was_made_from():
    point, context = {"dose": 1.0}, {"age": 61}
    asks = Ask(ID, candidates=[point]), Ask(ID, context=context)
    point["dose"] = context["age"] = 9
    assert asks[0].candidates == ({"dose": 1.0},)
    assert asks[1].context == {"age": 61}
    with pytest.raises(TypeError):
        asks[1].context["age"] = 9


def test_what_people_bring_is_in_no_repr_and_in_no_error():
    secrets = ["617.25", "somebody", "deadbeef"]
    made = [
        Ask(ID, "somebody", candidates=({"dose": 617.25, "kind": "deadbeef"},)),
        Ask(ID, "somebody", context={"dose": 617.25, "kind": "deadbeef"}),
        Action(ID, {"dose": 617.25, "kind": "deadbeef"}, chosen=3),
        Answer(ID, 617.25),
    ]
    words = [repr(message) for message in made]
    for message in made:
        data = write(message)
        for changed in (data[:-1], data.replace(b"617.25", b"617.2500"), data.replace(b'"', b"'")):
            with pytest.raises(Malformed) as refused:
                read(type(message), changed)
            words.append(str(refused.value))
        for kind in KINDS.values():
            if kind is not type(message):
                with pytest.raises(Malformed) as refused:
                    read(kind, data)
                words.append(str(refused.value))
    for bad in ({"dose": [617.25]}, {617.25: "deadbeef"}, {"deadbeef": math.inf}):
        with pytest.raises(InvalidArgument) as refused:
            Ask(ID, "somebody", context=bad)
        words.append(str(refused.value))
    assert len(words) > 50
    assert not [word for word in words if any(secret in word for secret in secrets)]


def test_errors_do_not_quote_what_was_sent():
    secret = "deadbeef" * 3
    data = b'{"id":"' + secret.encode() + b'","known":0,"type":"Request"}'
    with pytest.raises(Malformed) as refused:
        read(Request, data)
    assert secret not in str(refused.value)


# -- generated inputs

IDS = st.text("0123456789abcdef", min_size=32, max_size=32)
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5)
WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
ARRAYS = INTEGERS.map(lambda values: np.array(values, dtype=np.int64))
VALUES = st.floats(allow_nan=False, allow_infinity=False) | st.integers() | WORDS
POINTS = st.dictionaries(WORDS, VALUES, min_size=1, max_size=3)
ROWS = st.lists(POINTS, min_size=1, max_size=3)
MESSAGES = st.one_of(
    st.builds(Ask, IDS, st.none() | WORDS, candidates=st.none() | ROWS),
    st.builds(Ask, IDS, st.none() | WORDS, context=POINTS),
    st.builds(Action, IDS, POINTS, st.none() | st.integers(0, 2**70)),
    st.builds(Answer, IDS, st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(Opening, DIGESTS),
    st.builds(Request, IDS, st.integers(0, 2**70)),
    st.builds(Report, IDS, DIGESTS, ARRAYS),
    st.builds(Decline, IDS),
    st.builds(Receipt, IDS, st.sampled_from(["counted", "declined"])),
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | IDS | DIGESTS
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
NAMES = ["id", "known", "epoch", "integers", "outcome", "ask", "releases", "user", "candidates"]
FIELDS = st.sampled_from([*NAMES, "context", "action", "chosen", "reward", "previous"])
LOOKALIKES = st.builds(
    lambda kind, fields: {"type": kind, **fields},
    st.sampled_from([*KINDS, "Epoch", "Release", ""]),
    st.dictionaries(FIELDS, TREES, max_size=4),
)


@settings(max_examples=300, deadline=None)
@given(MESSAGES)
def test_every_message_comes_back_as_itself_and_as_nothing_else(message):
    data = write(message)
    assert write(read(type(message), data)) == data
    others = [kind for kind in KINDS.values() if kind is not type(message)]
    assert [outcome(kind, data) for kind in others] == [None] * len(others)


@settings(max_examples=200, deadline=None)
@given(LOOKALIKES | TREES)
def test_json_that_looks_like_a_message_is_one_or_is_refused(tree):
    try:
        data = json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    for kind in (*LOCAL, *JOINT, *SHUFFLED):
        message = outcome(kind, data)
        assert message is None or write(message) == data


def mutated(data, rng, fragments):
    """Some bytes changed, cut, doubled, or replaced by parts of other messages."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(6):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                data[at : at + 1] = rng.choice(b'0123456789abcdef{}[],:"-.eE+').to_bytes()
            case 2:
                del data[at : at + rng.randrange(1, 20)]
            case 3:
                data[at:at] = data[at : at + rng.randrange(1, 20)]
            case 4:
                data[at:at] = rng.choice(fragments)
            case _:
                fragment = rng.choice(fragments)
                data[at : at + len(fragment)] = fragment
    return bytes(data)


def fragments_of(samples):
    """Numbers, words, arrays and objects of the messages themselves, and hostile numbers."""
    found = {b"NaN", b"1e999", b"-0", b"null", b"true", b"1.0", b"9" * 400, b'"\\ud800"', b"\xff"}
    for data in samples:
        found.update(re.findall(rb'"\w{0,70}"|-?\d+(?:\.\d+)?|\{[^{}]*\}|\[[^\[\]]*\]', data))
    return sorted(found)


def test_a_hundred_thousand_mutations_are_refused_or_read_as_exactly_what_they_are():
    rng = random.Random(6)
    small = [Request(ID, 3), REPORT, Decline(ID), Receipt(ID, "counted"), Answer(ID, 0.5)]
    small += [golden_message(kind) for kind in (Ask, Action, Release)]
    large = [golden_message(kind) for kind in (Offer, Opening)]
    samples = {write(message): type(message) for message in (*small, *large)}
    fragments, accepted = fragments_of(samples), 0
    drawn = rng.choices([*samples], weights=[24] * len(small) + [4] * len(large), k=100_000)
    others = [type(message) for message in small]
    for sample in drawn:
        data = mutated(sample, rng, fragments)
        kinds = {samples[sample], rng.choice(others)}
        found = [message for kind in kinds if (message := outcome(kind, data)) is not None]
        assert len(found) <= 1  # never two readings
        assert all(write(message) == data for message in found)
        accepted += len(found)
    assert accepted > 500  # a changed digit of an id is still an id: the mutations do reach in


def test_the_union_of_messages_is_what_the_tests_cover():
    assert {kind.__name__ for kind in Message.__args__} == KINDS.keys() - {"Plan"}


def golden():
    """The messages of the golden files: run this file to write them anew, on purpose."""
    from discreet.learning.study import Study

    plan = Plan(
        domain=Box({"dose": (0, 10)}),
        privacy=LocalDP(2.0, 1e-3),
        encoding="reward",
        kernel=SquaredExponential(0.5),
        schedule=Schedule(first=4, growth=1.5),
        horizon=40,
        name="golden",
    )
    study = Study(plan)
    study = study.opened(study.next_epoch())
    size = study.open_epoch.encoding.size(plan.map)
    release = Release(
        epoch=study.open_epoch.digest,
        previous=study.open_epoch.previous,
        asks=4,
        integers=np.arange(size) * 1000,
        private=True,
        reports=3,
    )
    study = study.released(release)
    epoch = study.next_epoch()
    integers = np.arange(epoch.encoding.size(plan.map)) * 123_457 - 2**20
    messages = {
        "plan": plan,
        "request": Request(ID, known=0),
        "offer": Offer(ID, 4, epoch, (release,)),
        "report": Report(ID, epoch.digest, integers),
        "index-report": IndexReport(ID, epoch.digest, 9173),
        "decline": Decline(ID),
        "receipt": Receipt(ID, "counted"),
    }
    joint = replace(plan, privacy=JointDP(2.0, 1e-3))
    study = Study(joint)
    study = study.opened(study.next_epoch())
    release = Release(
        epoch=study.open_epoch.digest,
        previous=study.open_epoch.previous,
        asks=study.open_epoch.length,
        integers=np.arange(study.open_epoch.encoding.size(joint.map)) * 1000,
        private=True,
    )
    points = {"dose": 2.5, "drug": "a"}, {"dose": 4.0, "drug": "b"}
    messages |= {
        "ask": Ask(ID, "u-17", candidates=points),
        "action": Action(ID, points[1], chosen=1),
        "answer": Answer(ID, 0.7),
        "release": release,
        "opening": Opening(release.digest, study.released(release).next_epoch()),
    }
    WIRE.mkdir(exist_ok=True)
    for name, message in messages.items():
        (WIRE / f"{name}.json").write_bytes(write(message))


if __name__ == "__main__":
    golden()
