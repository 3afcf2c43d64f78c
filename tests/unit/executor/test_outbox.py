"""What waits for one listener is nobody else's business."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.executor.outbox import Message, Outbox

PEERS = (b"a", b"b", b"c")


def test_a_peer_that_reads_nothing_stands_in_nobodys_way() -> None:
    outbox = Outbox()
    for number in range(3):
        for peer in PEERS:
            outbox.put(peer, [b"%d" % number])
    heard: list[tuple[bytes, Message]] = []

    def deaf(peer: bytes, message: Message) -> bool:
        if peer != b"b":
            heard.append((peer, message))
        return peer != b"b"

    outbox.send(deaf)
    assert [peer for peer, _ in heard] == [b"a"] * 3 + [b"c"] * 3
    assert outbox.waiting(b"b") == 3
    outbox.drop(b"b")
    assert not outbox


@given(st.lists(st.tuples(st.sampled_from(PEERS), st.booleans())))
def test_each_peer_hears_everything_once_and_in_order(steps: list[tuple[bytes, bool]]) -> None:
    outbox = Outbox()
    put: dict[bytes, list[int]] = {peer: [] for peer in PEERS}
    heard: dict[bytes, list[int]] = {peer: [] for peer in PEERS}
    takes = iter([takes for _, takes in steps])

    def now_and_then(peer: bytes, message: Message) -> bool:
        if not next(takes, True):
            return False
        heard[peer].append(int(bytes(message[0])))
        return True

    for number, (peer, _) in enumerate(steps):
        put[peer].append(number)
        outbox.put(peer, [b"%d" % number])
        outbox.send(now_and_then)
    while outbox:
        outbox.send(now_and_then)
    assert heard == put
