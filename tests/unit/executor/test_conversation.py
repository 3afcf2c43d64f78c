"""The protocol with a notebook: order, credits, taking over, cancelling, refusing."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.executor.answer import Answer
from gpu_backend.executor.conversation import MAX_UNREAD, Conversation
from gpu_backend.executor.outbox import Message, Outbox
from gpu_backend.wire import messages as wire
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.errors import ErrorRecord
from gpu_backend.wire.values import Ref

CLIENT: Codec[wire.ToClient] = Codec(wire.ToClient)
PEER = b"a"


def conversation(credit_ops: int = 100, credit_bytes: int = 1_000) -> Conversation:
    return Conversation(wire.Welcome(0, 1, credit_ops, credit_bytes, 0, {}), "s")


def greeted(**credits: int) -> Conversation:
    talk = conversation(**credits)
    talk.receive(PEER, encode(wire.Hello("s", 1, "me", 1, 0)))
    assert isinstance(sent(talk)[-1], wire.Welcome)
    return talk


def sent(talk: Conversation, peer: bytes = PEER) -> list[wire.ToClient]:
    """Return and forget what has been sent to ``peer``."""
    return [CLIENT.decode(frames) for to, frames in taken_from(talk.outbox) if to == peer]


def taken_from(outbox: Outbox) -> list[tuple[bytes, Message]]:
    """Return and forget all messages, and to whom they go."""
    found: list[tuple[bytes, Message]] = []

    def take(peer: bytes, message: Message) -> bool:
        found.append((peer, message))
        return True

    outbox.send(take)
    return found


def ops(count: int) -> tuple[wire.Op, ...]:
    return tuple(wire.Op("cupy.add", 1, (Ref(1),)) for _ in range(count))


def batch(first: int, count: int, received: int = 0) -> list[bytes]:
    return encode(wire.Batch(first, received, ops(count)))  # type: ignore[return-value]


def run_all(talk: Conversation) -> list[int]:
    """Carry out everything queued; return the numbers of the ops."""
    numbers = []
    while (front := talk.front()) is not None:
        numbers.append(front.first + front.next)
        talk.advance(front, front.next + 1)
    return numbers


def refusal(talk: Conversation, peer: bytes = PEER) -> str:
    message = sent(talk, peer)[-1]
    assert isinstance(message, wire.Refused)
    return message.code


def test_ops_run_in_order_across_batches() -> None:
    talk = greeted()
    talk.receive(PEER, batch(1, 3))
    talk.receive(PEER, batch(4, 2))
    assert run_all(talk) == [1, 2, 3, 4, 5]
    assert talk.applied == 5


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 6)), max_size=12))
def test_no_op_is_run_twice_or_left_out_however_often_batches_are_resent(resent: list[tuple[int, int]]) -> None:
    talk = greeted()
    talk.receive(PEER, batch(1, 4))
    for first, count in resent:
        talk.receive(PEER, batch(first, count))
    numbers = run_all(talk)
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 4


def test_a_gap_is_refused_and_changes_nothing() -> None:
    talk = greeted()
    talk.receive(PEER, batch(3, 2))
    assert refusal(talk) == "out_of_order"
    assert run_all(talk) == []


def test_a_reconnecting_client_takes_over_and_gets_unread_answers_again() -> None:
    talk = greeted()
    talk.receive(PEER, batch(1, 1))
    front = talk.front()
    assert front is not None
    talk.advance(front, 1)
    talk.answer(Answer("first"))
    taken_from(talk.outbox)  # lost on the way
    talk.receive(b"b", encode(wire.Hello("s", 1, "me", 1, 0)))
    welcome, reply = sent(talk, b"b")
    assert isinstance(welcome, wire.Welcome)
    assert welcome.taken == 1
    assert reply == wire.Reply(1, "first")
    talk.receive(PEER, batch(2, 1))
    assert refusal(talk) == "not_greeted"


def test_a_new_connection_is_told_what_was_done_before_it() -> None:
    talk = greeted()
    talk.receive(PEER, batch(1, 5))
    run_all(talk)
    talk.report_progress()
    assert sent(talk) == [wire.Ack(5)]  # which is lost
    talk.receive(b"b", encode(wire.Hello("s", 1, "me", 1, 0)))
    talk.report_progress()
    assert sent(talk, b"b")[1:] == [wire.Ack(5)]


def test_the_notebook_hears_of_a_thousand_ops_before_all_are_done() -> None:
    talk = greeted(credit_ops=2_000)
    for first in range(1, 1_501, 100):
        talk.receive(PEER, batch(first, 100))
    run_all(talk)
    assert sent(talk) == [wire.Ack(1_100)]  # at the end of a message


def test_what_still_arrives_from_a_connection_that_was_taken_over_does_not_take_the_session_back() -> None:
    talk = greeted()
    hello = encode(wire.Hello("s", 1, "me", 1, 0))
    talk.receive(b"b", hello)
    for _ in range(10_000):
        talk.receive(PEER, hello)
    talk.receive(b"b", batch(1, 3))
    assert run_all(talk) == [1, 2, 3]
    told = taken_from(talk.outbox)
    assert [peer for peer, _ in told].count(PEER) < 100
    (welcome,) = [CLIENT.decode(frames) for peer, frames in told if peer == b"b"]
    assert isinstance(welcome, wire.Welcome)


def test_it_knows_by_which_connection_the_sessions_owner_last_greeted() -> None:
    talk = greeted()
    assert talk.owner is None
    talk.receive(b"b", encode(wire.Hello("s", 1, "me", 1, 0, is_owner=True)))
    assert talk.owner == b"b"
    talk.receive(b"c", encode(wire.Hello("s", 1, "somebody else", 1, 0, is_owner=True)))
    assert talk.owner == b"b"
    talk.receive(b"d", encode(wire.Hello("s", 1, "me", 1, 0)))
    assert talk.owner is None


def test_another_process_cannot_take_the_session() -> None:
    talk = greeted()
    talk.receive(b"b", encode(wire.Hello("s", 1, "somebody else", 1, 0)))
    assert refusal(talk, b"b") == "in_use"
    talk.receive(PEER, batch(1, 1))
    assert run_all(talk) == [1]


@pytest.mark.parametrize(
    ("hello", "code"),
    [(wire.Hello("other", 1, "me", 1, 0), "wrong_session"), (wire.Hello("s", 2, "me", 1, 0), "stale_epoch")],
)
def test_foreign_sessions_and_epochs_are_refused(hello: wire.Hello, code: str) -> None:
    talk = conversation()
    talk.receive(PEER, encode(hello))
    assert refusal(talk) == code
    assert not talk.is_connected


def test_more_ops_than_credited_end_the_connection() -> None:
    talk = greeted(credit_ops=10)
    talk.receive(PEER, batch(1, 10))
    talk.receive(PEER, batch(11, 1))
    assert refusal(talk) == "over_credit"
    assert not talk.is_connected
    assert run_all(talk) == list(range(1, 11))


def test_more_bytes_than_credited_end_the_connection_but_one_large_message_passes() -> None:
    talk = greeted(credit_bytes=100)
    talk.receive(PEER, [*batch(1, 1), b"x" * 1_000])
    talk.receive(PEER, [*batch(2, 1), b"x"])
    assert refusal(talk) == "over_credit"


def test_cancel_reaches_exactly_the_ops_up_to_its_number() -> None:
    talk = greeted()
    talk.receive(PEER, batch(1, 5))
    talk.receive(PEER, encode(wire.Cancel(3)))
    seen = []
    while (front := talk.front()) is not None:
        seen.append(talk.is_cancelled)
        talk.advance(front, front.next + 1)
    assert seen == [True, True, True, False, False]


def test_a_client_that_reads_nothing_stops_its_own_ops_only() -> None:
    talk = greeted(credit_ops=10 * MAX_UNREAD)
    talk.receive(PEER, batch(1, 2 * MAX_UNREAD))
    while (front := talk.front()) is not None:
        talk.advance(front, front.next + 1)
        talk.answer(Answer(error=ErrorRecord("builtins.ValueError", "no")))
        taken_from(talk.outbox)
    assert talk.applied == MAX_UNREAD
    talk.receive(PEER, encode(wire.Ping(MAX_UNREAD // 2)))
    taken_from(talk.outbox)
    assert talk.has_work


def test_large_contents_travel_in_chunks() -> None:
    import numpy as np

    from gpu_backend.wire.messages import CHUNK_BYTES
    from gpu_backend.wire.values import Buffer

    talk = greeted()
    talk.receive(PEER, batch(1, 1))
    front = talk.front()
    assert front is not None
    talk.advance(front, 1)
    content = np.arange(CHUNK_BYTES // 8 * 2 + 5, dtype="<f8")
    talk.answer(Answer(Buffer(0, "<f8", content.shape), (content,)))
    *chunks, _ = taken_from(talk.outbox)
    joined = b"".join(bytes(frames[1]) for _, frames in chunks)
    assert joined == content.tobytes()
    assert max(len(frames[1]) for _, frames in chunks) <= CHUNK_BYTES


def test_ten_thousand_random_and_mutated_messages_are_refused_and_nothing_more() -> None:
    talk = greeted()
    rng = random.Random(20)
    honest = [
        batch(1, 3)[0],
        encode(wire.Hello("s", 1, "me", 1, 0))[0],
        encode(wire.Ping(0))[0],
        encode(wire.Cancel(1))[0],
    ]
    for _ in range(10_000):
        if rng.random() < 0.3:
            frame = rng.randbytes(rng.randrange(200))
        else:
            mutable = bytearray(rng.choice(honest))
            for _ in range(rng.randrange(1, 6)):
                mutable[rng.randrange(len(mutable))] = rng.randrange(256)
            frame = bytes(mutable)
        talk.receive(rng.choice([PEER, b"b"]), [frame, *([b"y"] * rng.randrange(3))])
        assert sum(map(talk.outbox.waiting, (PEER, b"b"))) <= 2 * MAX_UNREAD + 2
    taken_from(talk.outbox)
    talk.receive(b"c", encode(wire.Hello("s", 1, "me", 1, 0)))
    assert any(isinstance(message, wire.Welcome) for message in sent(talk, b"c"))


def test_nested_values_too_deep_to_decode_are_malformed() -> None:
    deep = b"\xc0"
    for _ in range(100_000):
        deep = b"\x92\x07\x91" + deep
    talk = greeted()
    payload = encode(wire.Ping(0))[0][:2] + msgspec.msgpack.encode(["batch", 1, 0])[:-1] + b"\x91\x93" + deep
    talk.receive(PEER, [payload])
    assert refusal(talk) == "malformed"


def test_what_the_device_has_done_is_reported_by_its_time() -> None:
    talk = greeted()
    talk.receive(PEER, batch(1, 6))
    run_all(talk)
    talk.note_done(1, 0.001)
    assert sent(talk) == [], "little time has passed"
    talk.note_done(2, 0.02)
    assert sent(talk) == [wire.Ack(6, 2, 0.02)]
    talk.note_done(2, 0.5)
    assert sent(talk) == [], "no further op is done"
    talk.note_done(6, 0.501)
    talk.report_progress()
    assert sent(talk)[-1] == wire.Ack(6, 6, 0.501)
    talk.report_progress()
    assert sent(talk) == [], "nothing is new"


def test_an_answer_with_contents_says_that_all_before_it_is_done() -> None:
    talk = greeted()
    talk.receive(PEER, batch(1, 2))
    run_all(talk)
    talk.answer(Answer(1, is_synchronized=True))
    talk.note_done(1, 0.001)  # as far as was noticed
    talk.report_progress()
    assert sent(talk) == [wire.Reply(2, 1, done=2)]
    talk.note_done(2, 0.003)
    talk.report_progress()
    assert sent(talk) == [wire.Ack(2, 2, 0.003)], "what both took, and never what one did"
    talk.report_progress()
    assert sent(talk) == [], "nothing is new"


def test_what_ops_took_is_told_to_who_waits_for_each() -> None:
    """Answers tell what is done, and an idle moment may never come."""
    talk = greeted()
    took: list[float] = []
    for number in range(1, 101):
        talk.receive(PEER, batch(number, 1))
        run_all(talk)
        talk.answer(Answer(1, is_synchronized=True))
        talk.note_done(number, number * 0.001)
        took += [message.busy_seconds for message in sent(talk) if isinstance(message, wire.Ack)]
    assert took == pytest.approx([0.015, 0.030, 0.045, 0.060, 0.075, 0.090])


@pytest.mark.parametrize("answer", [Answer(1), Answer(error=ErrorRecord("builtins.ValueError", "no"))])
def test_an_answer_that_describes_says_what_is_done_and_the_rest_is_told_later(answer: Answer) -> None:
    talk = greeted()
    talk.receive(PEER, batch(1, 3))
    run_all(talk)
    talk.note_done(1, 0.001)
    talk.answer(answer)
    [told] = sent(talk)
    assert isinstance(told, wire.Reply | wire.Failed)
    assert (told.seq, told.done) == (3, 1)
    talk.report_progress()
    assert sent(talk) == [wire.Ack(3, 1, 0.001)]
    talk.note_done(3, 0.002)
    talk.report_progress()
    assert sent(talk) == [wire.Ack(3, 3, 0.002)]


def test_who_cancels_hears_from_which_op_on() -> None:
    talk = greeted()
    talk.receive(PEER, batch(1, 5))
    front = talk.front()
    assert front is not None
    talk.advance(front, 2)
    talk.receive(PEER, encode(wire.Cancel(7)))
    assert sent(talk)[-1] == wire.Ack(2, dropped_after=2, dropped_through=7)
    assert run_all(talk) == [3, 4, 5]
    talk.receive(b"b", encode(wire.Hello("s", 1, "me", 1, 0)))
    talk.receive(b"b", encode(wire.Cancel(7)))  # said again, as nobody knows whether it was heard
    told = sent(talk, b"b")[-1]
    assert isinstance(told, wire.Ack)
    assert (told.applied, told.dropped_after, told.dropped_through) == (5, 2, 7)


# --- an op that lacks something ---------------------------------------------------------------------------------------


def test_an_op_that_lacks_something_is_no_work_until_that_has_come() -> None:
    talk, has_come = greeted(), False
    talk.receive(PEER, batch(1, 2))
    front = talk.front()
    assert front is not None
    front.awaits = lambda: has_come
    assert not talk.has_work
    assert talk.front() is None
    assert (talk.queued_ops, talk.ready_ops) == (2, 0), "its credit is not free, and the device is not wanted"
    has_come = True
    assert talk.has_work
    assert talk.ready_ops == 2


def test_who_waits_for_it_waits_for_no_device() -> None:
    talk, has_come = greeted(), False
    talk.receive(PEER, encode(wire.Batch(1, 0, (wire.Op(".same", 0, (Ref(1),), None, wire.Want.CONTENTS),))))
    front = talk.front()
    assert front is not None
    front.awaits = lambda: has_come
    assert not talk.is_awaited
    has_come = True
    assert talk.is_awaited


def test_an_op_that_lacks_something_is_dropped_as_any_other() -> None:
    talk = greeted()
    talk.receive(PEER, batch(1, 2))
    front = talk.front()
    assert front is not None
    front.awaits = lambda: False
    talk.receive(PEER, encode(wire.Cancel(1)))
    assert talk.is_cancelled
    assert talk.has_work
