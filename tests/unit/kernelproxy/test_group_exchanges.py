"""Exchanges of a process group: whatever ranks exchange, and however long each takes, none waits for ever."""

from __future__ import annotations

from collections import defaultdict, deque
from types import SimpleNamespace
from typing import Any

import pytest
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
    wrong: list[str] = []
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
            exchange.of_all().exchange(
                {other: [array(max(0, sizes[rank, other]))] for other in exchange.others},
                {other: [array(max(0, sizes[other, rank]))] for other in exchange.others},
            )
        ends[0][0].send([array(3), array(2 * BLOCK_BYTES)], 1)
        ends[1][0].receive([array(3), array(2 * BLOCK_BYTES)], 0)
    assert carry_out([told for _, told in ends], turns) == []


def test_what_a_rank_did_not_do_is_passed_over_by_its_next_numbers() -> None:
    (one, told), (other, heard) = rank_of(0, 2), rank_of(1, 2)
    one.of_all().exchange({1: []}, {})  # it was interrupted before it had recorded any of it
    one.send([array(1)], 1)
    other.of_all().exchange({}, {0: [array(1)]})
    other.receive([array(1)], 0)
    sent = [op[3] for op in told]
    asked = [op[4] for op in heard]
    assert sent == asked[1:]
    assert asked[0] < asked[1]


def test_a_later_call_never_takes_what_belongs_to_one_that_was_interrupted_between_its_exchanges() -> None:
    (one, told), (other, heard) = rank_of(0, 2), rank_of(1, 2)
    for end, peer, exchanges in ((one, 1, 1), (other, 0, 2)):  # the first rank was interrupted in its call
        call = end.of_all()
        for _ in range(exchanges):
            call.exchange({peer: [array(1)]}, {peer: [array(1)]})
    for end, peer in ((one, 1), (other, 0)):
        end.of_all().exchange({peer: [array(1)]}, {peer: [array(1)]})
    sent, asked = ([op[at] for op in ops if (op[0] == SEND) == (at == 3)] for ops, at in ((told, 3), (heard, 4)))
    assert [sent[0], sent[-1]] == [asked[0], asked[-1]]
    assert asked[1] not in sent


def test_more_pieces_than_have_numbers_are_refused() -> None:
    exchange, told = rank_of(0, 2)
    with pytest.raises(OverflowError, match="65536 pieces"):
        exchange.send([array(BLOCK_BYTES << 16)], 1)
    assert not told


class Between:
    """What lies between each two executors, as their channels hold it: numbers, and what they bring."""

    def __init__(self) -> None:
        self.held: defaultdict[tuple[int, int], deque[tuple[int, str]]] = defaultdict(deque)
        self.taken: list[tuple[str, str | None]] = []

    def can(self, rank: int, op: tuple[Any, ...]) -> bool:
        """Tell whether an op can be carried out now."""
        if op[0] == SEND:
            return len(self.held[rank, other_of(op[2], rank)]) < _HELD
        self._pass_over(other_of(op[3], rank), rank, op[4])
        return bool(self.held[other_of(op[3], rank), rank])

    def carry_out(self, rank: int, op: tuple[Any, ...], brings: str) -> None:
        if op[0] == SEND:
            self.held[rank, other_of(op[2], rank)].append((op[3], brings))
            return
        lies = self.held[other_of(op[3], rank), rank]
        self.taken.append((brings, lies.popleft()[1] if lies[0][0] == op[4] else None))

    def drop(self, rank: int, op: tuple[Any, ...]) -> None:
        """Cancel an op: who waits for what it would have sent is told so."""
        if op[0] != SEND:
            self._pass_over(other_of(op[3], rank), rank, op[4] + 1)

    def _pass_over(self, sender: int, receiver: int, number: int) -> None:
        lies = self.held[sender, receiver]
        while lies and lies[0][0] < number:
            lies.popleft()


def other_of(channel: str, rank: int) -> int:
    (other,) = {int(one) for one in channel.split()} - {rank}
    return other


@given(st.integers(2, 4), st.data())
def test_whoever_is_interrupted_between_exchanges_nothing_is_taken_for_anything_else(size: int, turns: Any) -> None:
    """What each op carries is told by its call, its exchange and both ranks: what is taken is that, or nothing."""
    ends = [rank_of(rank, size) for rank in range(size)]
    labels: list[deque[str]] = [deque() for _ in ends]
    calls = turns.draw(st.integers(1, 4))
    for call in range(calls + 1):
        exchanges = turns.draw(st.integers(1, 3))
        is_of_two = call < calls and turns.draw(st.booleans())
        for rank, (exchange, told) in enumerate(ends):
            if is_of_two and rank > 1:
                continue
            done = exchanges if call == calls else turns.draw(st.sampled_from([exchanges, *range(exchanges)]))
            begun = exchange.of_two(1 - rank, 1 - rank) if is_of_two else exchange.of_all()
            peers = [1 - rank] if is_of_two else exchange.others
            for at in range(done):
                before = len(told)
                begun.exchange({peer: [array(5)] for peer in peers}, {peer: [array(5)] for peer in peers})
                for op in list(told)[before:]:
                    far = other_of(op[2] if op[0] == SEND else op[3], rank)
                    way = (rank, far) if op[0] == SEND else (far, rank)
                    labels[rank].append(f"{call} {at} {way}")
    between, last = Between(), f"{calls} "
    while any(told for _, told in ends):
        ready = [rank for rank, (_, told) in enumerate(ends) if told and between.can(rank, told[0])]
        if ready:
            rank = turns.draw(st.sampled_from(ready))
            between.carry_out(rank, ends[rank][1].popleft(), labels[rank].popleft())
            continue
        # All wait for what somebody did not send: all are interrupted, and the last call is made after that.
        waited = sum(len(told) for _, told in ends)
        for rank, (_, told) in enumerate(ends):
            while told and not labels[rank][0].startswith(last):
                between.drop(rank, told.popleft())
                labels[rank].popleft()
        assert sum(len(told) for _, told in ends) < waited, "all wait in the last call"
    assert all(brought in (awaited, None) for awaited, brought in between.taken)
    assert all(brought == awaited for awaited, brought in between.taken if awaited.startswith(last))
