"""Answers that come in pieces: no more is taken than there can be."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from gpu_backend.opstream.journal import Journal
from gpu_backend.wire import messages as wire
from gpu_backend.wire.errors import ProtocolError
from kernelproxy.stream.ahead import Ahead
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.costs import Cost
from kernelproxy.stream.inbox import Answer, Inbox

PIECE = b"x" * 10

pytestmark = pytest.mark.usefixtures("both_ways")


def expecting(most_bytes: int) -> Inbox:
    journal: Journal[OpenBatch] = Journal()
    batch = OpenBatch(1)
    for _ in range(8):
        batch.add(wire.Op(".same", 0, ()), None, Cost(0.0, True))
    journal.append(batch)
    journal.note_sending(batch)
    inbox = Inbox(journal, Ahead(journal.marks), most_bytes=most_bytes)
    inbox.expect(7)
    return inbox


@pytest.mark.parametrize(("device", "known"), [(30, None), (30, 20), (30, 40)])
def test_pieces_are_taken_up_to_what_can_be(device: int, known: int | None) -> None:
    """Who asks may know the size: even more than the device holds, as of one number that is shown many times."""
    inbox, most = expecting(device), known or device
    with ExitStack() as stack:
        if known is not None:
            stack.enter_context(inbox.bounded(7, known))
        for offset in range(0, most, len(PIECE)):
            inbox.note(wire.Chunk(7, offset), [PIECE])
        with pytest.raises(ProtocolError, match=f"more than {most} bytes"):
            inbox.note(wire.Chunk(7, most), [b"x"])
        inbox.note(wire.Reply(7, None), [])
    answer = inbox.take(7)
    assert isinstance(answer, Answer)
    assert [len(one) for one in answer.buffers] == [most]
    assert not inbox._bounds


def test_a_bound_is_of_one_answer_and_ends_with_the_wait_for_it() -> None:
    inbox = expecting(30)
    with inbox.bounded(7, 10):
        inbox.expect(8)
        for offset in (0, 10, 20):
            inbox.note(wire.Chunk(8, offset), [PIECE])
    for offset in (0, 10, 20):
        inbox.note(wire.Chunk(7, offset), [PIECE])
