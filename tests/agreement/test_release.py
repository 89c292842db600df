"""Releases: what they must look like, and that they stay what they were."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.agreement.release import GENESIS, Release
from discreet.errors import InvalidArgument, Malformed
from discreet.storage import canonical

EPOCH = "ab" * 32


def _release(**changes):
    given = {
        "epoch": EPOCH,
        "previous": GENESIS,
        "asks": 5,
        "integers": np.array([3, -4, 2**62]),
        "private": False,
    }
    return Release(**{**given, **changes})


@pytest.mark.parametrize("name", ["epoch", "previous"])
@pytest.mark.parametrize(
    "bad", ["", "ab", "AB" * 32, "zz" * 32, "ab" * 32 + "\n", "ab" * 33, None, 7, b"ab" * 32]
)
def test_digests_are_64_hexadecimal_digits(name, bad):
    with pytest.raises(InvalidArgument, match=name):
        _release(**{name: bad})


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros(3),
        np.zeros(3, dtype=np.int32),
        np.zeros(3, dtype=np.uint64),
        np.zeros((3, 1), dtype=np.int64),
        np.array(3),
        [1, 2, 3],
        None,
    ],
    ids=["float", "int32", "uint64", "matrix", "scalar", "list", "none"],
)
def test_integers_are_a_vector_of_64_bits(bad):
    with pytest.raises(InvalidArgument, match="integers"):
        _release(integers=bad)


@pytest.mark.parametrize("bad", [None, 1, "yes", np.True_])
def test_private_is_true_or_false(bad):
    with pytest.raises(InvalidArgument, match="private"):
        _release(private=bad)


def test_the_digest_is_stable():
    """A golden value: changing it breaks every stored chain."""
    digest = _release().digest
    assert digest == _release().digest
    assert digest == "a1f7482df20429834cedb8674068c45553ea028c55b34343b3662f887085b147"


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": "cd" * 32},
        {"previous": EPOCH},
        {"private": True},
        {"integers": np.array([3, -4, 2**62 - 1])},
        {"integers": np.array([3, -4])},
    ],
    ids=["epoch", "previous", "private", "value", "length"],
)
def test_any_change_is_another_digest(change):
    assert _release(**change).digest != _release().digest


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.booleans())
def test_a_release_survives_storage(integers, private):
    release = _release(integers=np.array(integers, dtype=np.int64), private=private)
    data = canonical.encode(release)
    again = canonical.decode(Release, data)
    assert canonical.encode(again) == data
    assert again.digest == release.digest
    assert again.integers.tolist() == integers
    assert again.private is private


def test_a_release_does_not_share_memory_with_what_it_was_made_from():
    integers = np.array([1, 2, 3])
    release = _release(integers=integers)
    integers[0] = 99
    assert release.integers.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        release.integers[0] = 5


def test_bytes_of_a_bad_release_are_malformed():
    data = canonical.encode(_release()).replace(EPOCH.encode(), b"xy" * 32)
    with pytest.raises(Malformed, match="epoch"):
        canonical.decode(Release, data)


@pytest.mark.parametrize("bad", [-1, 6, 1.0, True, "5"])
def test_reports_are_a_whole_number_up_to_the_asks(bad):
    with pytest.raises(InvalidArgument, match="reports"):
        _release(reports=bad)


@pytest.mark.parametrize("reports", [0, 4, 5])
def test_a_number_of_reports_survives_storage_and_is_in_the_digest(reports):
    release = _release(reports=reports)
    assert canonical.decode(Release, canonical.encode(release)).reports == reports
    assert release.digest != _release().digest


def test_without_reports_there_is_no_word_of_them():
    data = canonical.encode(_release())
    assert b"reports" not in data
    with pytest.raises(Malformed, match="canonical form"):
        canonical.decode(Release, data.replace(b',"type"', b',"reports":null,"type"'))
