"""Boxes: one length, one reader, one epoch."""

import pytest

from discreet.errors import InvalidArgument
from discreet.protocol.sealing import BOX_DIGITS, public_key, seal, unseal

SECRET, EPOCH = "07" * 32, "ab" * 32
KEY = public_key(SECRET)


@pytest.mark.parametrize("index", [0, 1, 16383, 2**32 - 1])
def test_a_box_opens_to_what_was_put_in(index: int) -> None:
    assert unseal(seal(index, EPOCH, KEY), EPOCH, SECRET) == index


def test_boxes_have_one_length_and_say_nothing_of_what_is_in_them() -> None:
    boxes = [seal(index, EPOCH, KEY) for index in (0, 0, 1, 2**32 - 1)]
    assert {len(box) for box in boxes} == {BOX_DIGITS}
    assert len(set(boxes)) == 4


def test_a_box_for_another_key_epoch_or_with_a_changed_byte_does_not_open() -> None:
    box = seal(7, EPOCH, KEY)
    assert unseal(box, "cd" * 32, SECRET) is None
    assert unseal(box, EPOCH, "08" * 32) is None
    changed = f"{(int(box[-1], 16) + 1) % 16:x}"
    assert unseal(box[:-1] + changed, EPOCH, SECRET) is None
    assert unseal("00" * (BOX_DIGITS // 2), EPOCH, SECRET) is None


def test_an_index_of_more_than_four_bytes_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="index"):
        seal(2**32, EPOCH, KEY)
    with pytest.raises(InvalidArgument, match="index"):
        seal(-1, EPOCH, KEY)
