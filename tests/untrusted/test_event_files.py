"""Event files of TensorBoard: scalars of both kinds, everything else passed over, and damage within bounds."""

import io
import math
import random
import struct

import pytest

from tests.untrusted.event_records import AT_S, TENSORBOARD, TENSORFLOW, event, field, record, simple, tensor, varint
from traceviz.untrusted.event_files import MOST_MESSAGE, DamagedEventsError, Scalar, scalars

DOUBLE = b"\x08\x02"
SHAPES = {"none": b"", "1": field(2, b"\x08\x01"), "1 x 1": field(2, b"\x08\x01") * 2}


def read(*records: bytes) -> list[Scalar]:
    return list(scalars(io.BytesIO(b"".join(records))))


def values(*records: bytes) -> list[tuple[str, float]]:
    return [(scalar.tag, scalar.value) for scalar in read(*records)]


def test_what_tensorflow_and_tensorboard_wrote_is_read_to_the_nanosecond_of_their_clock():
    found = read(TENSORFLOW, TENSORBOARD)
    assert [(scalar.tag, round(scalar.value, 6), scalar.step) for scalar in found] == [
        ("evaluation_loss_vs_iterations", 0.175159, 9),
        ("epoch_loss", 0.175159, 0),
        ("Loss/train", 1.0, 0),
    ]
    assert [scalar.unix_ns for scalar in found] == [1795433880443970048, 1795433880488164864, 1795433868080621312]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_tensor_of_one_element_is_a_scalar_however_it_is_packed(shape):
    packed = [
        b"\x08\x01" + field(4, struct.pack("<f", 0.5)),
        DOUBLE + field(4, struct.pack("<d", 0.5)),
        b"\x08\x13" + field(4, struct.pack("<e", 0.5)),
        b"\x08\x01\x2d" + struct.pack("<f", 0.5),
        DOUBLE + field(6, struct.pack("<d", 0.5)),
    ]
    found = values(*(event(tensor("loss", content + field(2, shape))) for content in packed))
    assert found == [("loss", 0.5)] * 5
    whole = [b"\x08\x03" + field(4, struct.pack("<i", -7)), b"\x08\x09\x50" + varint(2**64 - 7)]
    assert values(*(event(tensor("count", content)) for content in whole)) == [("count", -7.0)] * 2


@pytest.mark.parametrize(
    "value",
    [
        tensor("h", DOUBLE + field(4, struct.pack("<2d", 1, 2))),
        tensor("h", DOUBLE + field(4, struct.pack("<d", 1)) + field(2, field(2, b"\x08\x03"))),
        tensor("t", b"\x08\x07" + field(8, b"secret")),
        tensor("p", DOUBLE + field(4, struct.pack("<d", 1)), plugin="pr_curves"),
        tensor("e", DOUBLE),
        field(1, b"image") + field(4, b"png"),
        simple("", 1.0),
        simple("x" * 1_001, 1.0),
    ],
)
def test_what_is_no_scalar_is_passed_over(value):
    assert values(event(value), event(simple("loss", 0.25))) == [("loss", 0.25)]


def test_a_tag_of_another_plugin_is_none_of_ours_in_all_of_its_3_events():
    other = event(tensor("curve", DOUBLE + field(6, struct.pack("<d", 1)), plugin="pr_curves"))
    later = event(tensor("curve", DOUBLE + field(6, struct.pack("<d", 1)), plugin=""))
    assert values(other, later, later) == []


def test_several_values_of_one_event_and_those_that_are_no_finite_numbers_are_kept():
    both = field(1, simple("a", 1.0)) + field(1, simple("b", math.inf))
    at = b"\x09" + struct.pack("<d", AT_S)
    assert values(record(at + field(5, both))) == [("a", 1.0), ("b", math.inf)]
    assert values(event(simple("late", 1.0), at_s=math.nan), event(simple("late", 1.0), at_s=1e300)) == []


def test_a_file_that_is_still_written_ends_with_its_last_whole_record():
    whole = event(simple("loss", 0.5), step=300)
    assert [[scalar.step for scalar in read(whole, whole[:end])] for end in range(len(whole))] == [[300]] * len(whole)


def test_a_message_with_a_wrong_checksum_is_passed_over_and_a_wrong_length_ends_the_file():
    good, bad = event(simple("loss", 0.5)), bytearray(event(simple("loss", 0.75)))
    bad[20] ^= 1
    assert values(good, bytes(bad), good) == [("loss", 0.5)] * 2
    bad[3] ^= 1
    found = scalars(io.BytesIO(good + bad + good))
    assert next(found).value == 0.5
    with pytest.raises(DamagedEventsError, match=f"record at byte {len(good)} has no valid length"):
        next(found)


def test_a_message_of_more_than_64_kb_is_passed_over_unread():
    assert values(record(b"\0" * (MOST_MESSAGE + 1)), event(simple("loss", 0.5))) == [("loss", 0.5)]


def test_whatever_a_message_says_nothing_but_scalars_and_an_error_of_ours_comes_out():
    chance = random.Random(7)
    messages = [
        whole[12:-4] for whole in (event(simple("loss", 0.5), 5), event(tensor("a", DOUBLE + field(6, b"12345678"))))
    ]
    for _ in range(2_000):
        message = bytearray(chance.choice(messages))
        for _ in range(chance.randint(1, 4)):
            message[chance.randrange(len(message))] = chance.randrange(256)
        spoilt = bytearray(record(bytes(message[: chance.randint(1, len(message))])))
        if chance.random() < 0.1:
            spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
        try:
            found = read(bytes(spoilt))
        except DamagedEventsError:
            continue
        assert all(isinstance(scalar.value, float) and -(2**63) <= scalar.step < 2**63 for scalar in found)
