"""What is under way is what was sent on this connection and is not carried out."""

from __future__ import annotations

import pytest

from gpu_backend.opstream.marks import Marks
from gpu_backend.wire.messages import Op, Welcome
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.credit import Credit

GRANTED = Welcome(0, 1, 10, 100, 0, {})


def batch(first: int, count: int, size: int = 0) -> OpenBatch:
    made = OpenBatch(first)
    made.ops, made.bytes, made.last = [Op("op", 0, ())] * count, size, first + count - 1
    return made


@pytest.fixture
def marks() -> Marks:
    """Nine ops may have been sent."""
    made = Marks()
    made.note_recorded(9)
    made.note_sent(9)
    return made


@pytest.fixture
def credit(marks: Marks) -> Credit:
    """Seven ops are under way, and 80 bytes."""
    made = Credit(marks)
    for one in (batch(1, 4, 50), batch(5, 2), batch(7, 1, 30)):
        made.note_sent(one)
        made.note_sent(one)  # as after an interrupt
    return made


def test_ops_and_bytes_are_counted_apart(credit: Credit) -> None:
    assert (credit.ops_in_flight, credit.bytes_in_flight) == (7, 80)
    assert credit.has_room(batch(8, 3, 20), GRANTED)
    assert not credit.has_room(batch(8, 4), GRANTED)
    assert not credit.has_room(batch(8, 1, 21), GRANTED)


def test_a_place_is_free_when_its_op_is_carried_out_whenever_the_device_is_done(credit: Credit, marks: Marks) -> None:
    """Else a queue of the device's own would stall the notebook."""
    assert not credit.has_room(batch(8, 7), GRANTED)
    marks.note_progress(4, 0)
    assert credit.has_room(batch(8, 7), GRANTED)
    assert not credit.has_room(batch(8, 8), GRANTED)


def test_bytes_are_free_when_their_whole_message_is_carried_out(credit: Credit, marks: Marks) -> None:
    marks.note_progress(3, 0)
    assert (credit.ops_in_flight, credit.bytes_in_flight) == (4, 80)
    marks.note_progress(4, 0)
    assert (credit.ops_in_flight, credit.bytes_in_flight) == (3, 30)
    marks.note_progress(2, 0)  # old news
    assert (credit.ops_in_flight, credit.bytes_in_flight) == (3, 30)


def test_one_message_alone_may_be_larger_than_all_credit() -> None:
    assert Credit(Marks()).has_room(batch(1, 1, 1_000), GRANTED)


def test_what_was_lost_with_a_connection_is_not_under_way(credit: Credit, marks: Marks) -> None:
    marks.note_progress(2, 0)
    credit.resume(4)
    assert (credit.ops_in_flight, credit.bytes_in_flight) == (2, 50)
    credit.note_sent(batch(5, 2))
    credit.note_sent(batch(7, 1, 30))
    assert (credit.ops_in_flight, credit.bytes_in_flight) == (5, 80)
