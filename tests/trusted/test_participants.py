"""Who took part how often: pseudonyms, and the rounds that the guarantee allows."""

import numpy as np
import pytest

from discreet import Box, JointDP, NonPrivate, Plan
from discreet.errors import InvalidArgument, Refused
from discreet.protocol.records import UserKey
from discreet.trusted.participants import Participants

DOMAIN = Box({"dose": (0, 10)})
#: Of "u-17" under the key abab...: journals hold such, and must count the same people again.
PSEUDONYM = "9135083445676bf8101552affb55021a"


def make_participants(rounds=1):
    privacy = JointDP(1.0, 1e-3, rounds_per_user=rounds)
    participants = Participants(Plan(domain=DOMAIN, privacy=privacy))
    participants.identify(participants.new_key())
    return participants


def test_without_privacy_nobody_is_counted():
    participants = Participants(Plan(domain=DOMAIN, privacy=NonPrivate()))
    assert participants.admit(None) is participants.admit("u-17") is None


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_a_user_takes_part_as_often_as_the_guarantee_allows(rounds):
    participants = make_participants(rounds)
    for number in range(2 * rounds):  # two users take turns
        pseudonym = participants.admit("ann" if number % 2 else "bob")
        assert participants.admit("ann" if number % 2 else "bob") == pseudonym  # admitting is free
        participants.count(pseudonym)
    for user in ("ann", "bob"):
        words = f"has taken part in {rounds} of {rounds} rounds"
        with pytest.raises(Refused, match=words) as refused:
            participants.admit(user)
        assert user not in str(refused.value)
    assert participants.admit("eve")


@pytest.mark.parametrize(
    "user",
    [None, "", 17.0, b"u-17", ["u-17"], True, np.bool_(True), np.float64(17), np.array(17), 17j],
    ids=repr,
)
def test_someone_without_an_id_is_refused_without_an_echo(user):
    words = (
        r"user: expected an id for each person, text or a whole number \(of a float, int\(id\)\)"
    )
    with pytest.raises(InvalidArgument, match=words) as refused:
        make_participants().admit(user)
    assert "17" not in str(refused.value)


@pytest.mark.parametrize("user", [17, np.int64(17), np.uint8(17), np.str_("17")], ids=repr)
def test_a_whole_number_and_its_text_are_one_person(user):
    participants = make_participants()
    assert participants.admit(user) == participants.admit("17")
    participants.count(participants.admit(user))
    with pytest.raises(Refused, match="has taken part"):
        participants.admit("17")


def test_the_pseudonym_of_a_text_is_what_it_always_was():
    participants = Participants(Plan(domain=DOMAIN, privacy=JointDP(1.0, 1e-3)))
    participants.identify(UserKey("ab" * 32))
    assert participants.admit("u-17") == PSEUDONYM


def test_any_text_is_an_id_and_no_two_are_the_same():
    participants = make_participants()
    users = ["a", "A", "a ", "å", "a\u030a", "\udc80", "\udc81", "?", "\0", "\0\0", "x" * 10_000]
    pseudonyms = [participants.admit(user) for user in users]
    assert len(set(pseudonyms)) == len(users)
    assert all(len(pseudonym) == 32 for pseudonym in pseudonyms)


def test_another_study_gives_the_same_user_another_pseudonym():
    assert len({make_participants().admit("u-17") for _ in range(20)}) == 20


def test_a_study_has_one_key_and_has_it_before_the_first_epoch():
    participants = Participants(Plan(domain=DOMAIN, privacy=JointDP(1.0, 1e-3)))
    with pytest.raises(InvalidArgument, match="key: expected a key for pseudonyms"):
        participants.check_identified()
    participants.identify(participants.new_key())
    with pytest.raises(InvalidArgument, match="key: expected a single one"):
        participants.identify(participants.new_key())


@pytest.mark.parametrize("key", ["", "ab", "AB" * 32, "xy" * 32, "ab" * 33])
def test_a_key_is_64_hexadecimal_digits(key):
    with pytest.raises(InvalidArgument, match="key: expected 64 hexadecimal digits") as refused:
        UserKey(key)
    assert not key or key not in str(refused.value).replace("hexadecimal", "")


def test_a_key_does_not_show_itself():
    key = Participants(Plan(domain=DOMAIN, privacy=NonPrivate())).new_key()
    assert key.key not in f"{key} {key!r}"
