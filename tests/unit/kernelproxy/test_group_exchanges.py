"""Exchanges of a process group: whatever ranks exchange, and however long each takes, none waits for ever."""

from __future__ import annotations

from collections import defaultdict, deque
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.transport.shared_frames import BLOCK_BYTES
from gpu_backend.wire import values as wire
from gpu_backend.wire.channels import SEND
from kernelproxy.namespace.process_group.exchange import Exchange

#: Pieces that lie between two executors, of those that send: fewer are held nowhere.
_HELD = 4


def rank_of(rank: int, size: int) -> tuple[Exchange, deque[tuple[Any, ...]]]:
    """Return one rank's end, and what its executor is told."""
    told: deque[tuple[Any, ...]] = deque()
    pipeline = SimpleNamespace(flush=lambda: None, counters=SimpleNamespace(direct_bytes=0))
    pipeline.record = lambda name, args, want, stream: told.append((name, *args))
    session: Any = SimpleNamespace(epoch=1)
    client: Any = SimpleNamespace(
        session=session, opened=session, pipeline=pipeline, streams=SimpleNamespace(current_handle=lambda: 0)
    )
    names = tuple("" if rank == other else f"{min(rank, other)} {max(rank, other)}" for other in range(size))
    return Exchange(client, rank, names), told


def array(nbytes: int) -> Any:
    return SimpleNamespace(_ref=wire.Ref(8), _layout=SimpleNamespace(nbytes=nbytes, memory_order="C"))


def carry_out(told: list[deque[tuple[Any, ...]]], turns: Any) -> list[str]:
    """Carry out what executors are told, each in its order, whose turn it is by chance; return what was wrong."""
    between: defaultdict[tuple[int, str], deque[int]] = defaultdict(deque)
    wrong = []
    while any(told):
        ready = []
        for rank, ops in enumerate(told):
            if ops and ops[0][0] == SEND:
                ready += [rank] * (len(between[rank, ops[0][2]]) < _HELD)
            elif ops:
                (sender,) = {int(one) for one in ops[0][3].split()} - {rank}
                ready += [rank] * bool(between[sender, ops[0][3]])
        if not ready:
            return [*wrong, "all wait"]
        rank = turns.draw(st.sampled_from(ready))
        op = told[rank].popleft()
        if op[0] == SEND:
            between[rank, op[2]].append(op[3])
        else:
            (sender,) = {int(one) for one in op[3].split()} - {rank}
            if between[sender, op[3]].popleft() != op[4]:
                wrong.append(f"rank {rank} was sent another piece than {op[4]}")
    return [*wrong, *(f"{pair} is left" for pair, left in between.items() if left)]


@given(st.integers(2, 4), st.data())
def test_whatever_is_exchanged_comes_and_nobody_waits_for_ever(size: int, turns: Any) -> None:
    ends = [rank_of(rank, size) for rank in range(size)]
    pieces = st.integers(0, 9)
    for _ in range(turns.draw(st.integers(1, 3))):
        sizes = {
            (one, other): turns.draw(pieces) * BLOCK_BYTES - turns.draw(st.sampled_from([0, 5]))
            for one in range(size) for other in range(size) if one != other
        }  # fmt: skip
        for rank, (exchange, _) in enumerate(ends):
            exchange.among_all(
                {other: [array(max(0, sizes[rank, other]))] for other in exchange.others},
                {other: [array(max(0, sizes[other, rank]))] for other in exchange.others},
            )
        ends[0][0].send([array(3), array(2 * BLOCK_BYTES)], 1)
        ends[1][0].receive([array(3), array(2 * BLOCK_BYTES)], 0)
    assert carry_out([told for _, told in ends], turns) == []


def test_what_a_rank_did_not_do_is_passed_over_by_its_next_numbers() -> None:
    (one, told), (other, heard) = rank_of(0, 2), rank_of(1, 2)
    one.among_all({1: []}, {})  # it was interrupted before it had recorded any of it
    one.send([array(1)], 1)
    other.among_all({}, {0: [array(1)]})
    other.receive([array(1)], 0)
    sent = [op[3] for op in told]
    asked = [op[4] for op in heard]
    assert sent == asked[1:]
    assert asked[0] < asked[1]
