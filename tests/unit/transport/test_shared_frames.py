"""Memory for large frames: what is put in comes out, blocks are used again, and a peer cannot do harm with it."""

from __future__ import annotations

import mmap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.transport.shared_frames import BLOCK_BYTES, BLOCKS, FRAMES_BYTES, SharedFrames
from tests.python_run import python_run

Sides = tuple[SharedFrames, SharedFrames]


def make_sides() -> Sides:
    memory = mmap.mmap(-1, FRAMES_BYTES)
    return SharedFrames(memory, is_maker=True), SharedFrames(memory, is_maker=False)


@pytest.fixture
def sides() -> Sides:
    return make_sides()


def put(sender: SharedFrames, content: bytes) -> int | None:
    """Send ``content``; return the number of its block, None if there is none for it."""
    frame = sender.placed(content)
    return sender.put(frame) if frame is not None else None


@given(st.lists(st.tuples(st.booleans(), st.binary(min_size=1, max_size=300), st.booleans()), max_size=60))
def test_what_is_put_in_comes_out_while_it_is_held(steps: list[tuple[bool, bytes, bool]]) -> None:
    maker, other = make_sides()
    held: list[tuple[bool, memoryview, bytes]] = []
    for from_maker, content, is_released in steps:
        sender, receiver = (maker, other) if from_maker else (other, maker)
        block = put(sender, content)
        under_way = sum(one[0] == from_maker for one in held)
        assert (block is None) == (under_way == BLOCKS)
        if block is not None:
            held.append((from_maker, receiver.take(block, len(content)), content))
        assert all(bytes(seen) == content for _, seen, content in held)
        if is_released and held:
            held.pop(0)


def test_a_block_is_taken_until_the_last_look_into_it_is_gone(sides: Sides) -> None:
    maker, other = sides
    blocks = [put(maker, b"abc") for _ in range(BLOCKS)]
    assert maker.is_full
    assert not other.is_full
    assert put(maker, b"one more") is None
    seen = other.take(blocks[3] or 0, 3)
    array = np.frombuffer(seen, np.uint8)[1:]
    del seen
    assert maker.is_full
    assert bytes(array) == b"bc"
    del array
    assert not maker.is_full
    assert put(maker, b"another") == blocks[3]


def test_a_block_is_set_free_without_a_line_of_python(sides: Sides) -> None:
    """So that no interrupt can strike in it: Python would print it, and forget it."""
    maker, other = sides
    for _ in range(2 * BLOCKS):
        block = put(maker, b"abc")
        assert block is not None
        seen = [other.take(block, 3)]
        lines = python_run(seen.clear)
        assert not lines
    assert not maker.is_full


@pytest.mark.parametrize(("block", "length"), [(0, 0), (0, -1), (0, BLOCK_BYTES + 1), (BLOCKS, 1), (-1, 1), (1, 1)])
def test_a_frame_that_cannot_be_is_refused(sides: Sides, block: int, length: int) -> None:
    maker, other = sides
    assert put(maker, b"abc") == 0
    with pytest.raises(ValueError, match="block"):
        other.take(block, length)


def test_what_was_filled_in_place_is_sent_without_a_copy(sides: Sides) -> None:
    maker, other = sides
    lent = maker.lend(1000)
    assert lent is not None
    lent[:] = 7
    for frame in (lent.data, lent.reshape(125, 8).view(np.uint64).reshape(-1).view(np.uint8).data):
        assert maker.holds(frame)
        assert maker.placed(frame) is frame
        block = maker.put(frame)
        assert block is not None
        seen = np.frombuffer(other.take(block, len(frame)), np.uint8)
        lent[0] += 1  # it is the same memory
        assert seen[0] == lent[0]
        del seen


def test_a_part_of_what_was_filled_is_sent_for_what_it_is(sides: Sides) -> None:
    maker, other = sides
    lent = maker.lend(1000)
    assert lent is not None
    lent[:] = np.arange(1000) % 251
    first, rest = lent.data[:500], lent.data[500:]
    assert maker.holds(first)
    assert not maker.holds(rest)
    for part in (first, rest):
        placed = maker.placed(part)
        assert placed is not None
        block = maker.put(placed)
        assert block is not None
        assert other.take(block, 500) == part


def test_a_block_is_lent_again_when_neither_side_looks_into_it(sides: Sides) -> None:
    """Who keeps what was sent, to send it again after a lost connection, finds it as it was."""
    maker, other = sides
    kept = []
    for _ in range(BLOCKS):
        lent = maker.lend(3)
        assert lent is not None
        kept.append(lent.data)
        block = maker.put(kept[-1])
        assert block is not None
        other.take(block, 3)  # and lets go of it
        del lent
    assert maker.lend(3) is None
    assert python_run(kept.clear) == []
    assert maker.lend(3) is not None


def test_what_was_lent_and_never_sent_is_lent_again(sides: Sides) -> None:
    maker, _ = sides
    for _ in range(2 * BLOCKS):
        lent = maker.lend(BLOCK_BYTES)
        assert lent is not None
        assert lent.ctypes.data % mmap.PAGESIZE == 0
        del lent
    assert maker.lend(0) is None
    assert maker.lend(BLOCK_BYTES + 1) is None


def test_some_blocks_are_left_for_others(sides: Sides) -> None:
    maker, _ = sides
    held = [maker.lend(1, leaving=2) for _ in range(BLOCKS)]
    assert [one is not None for one in held] == [True] * (BLOCKS - 2) + [False] * 2
    assert maker.lend(1) is not None


def test_other_memory_is_no_block(sides: Sides) -> None:
    maker, other = sides
    lent, incoming = maker.lend(100), other.lend(100)
    assert lent is not None
    assert incoming is not None
    strange = [b"abc", memoryview(b"abc"), lent[1:].data, incoming.data, memoryview(bytearray(10))]
    for frame in strange:
        assert not maker.holds(frame)
        assert maker.put(frame) is None
    assert bytes(maker.placed(lent[1:].data) or b"") == bytes(lent[1:])


def test_two_threads_are_never_lent_the_same_block(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one chooses between two steps of the first; at least one of them gets nothing, and that is free again."""
    maker, _ = sides
    choose, others = maker._free_place, []

    def chosen() -> int:
        place = choose()
        monkeypatch.setattr(maker, "_free_place", lambda: place)
        others.append(maker.lend(1))
        monkeypatch.setattr(maker, "_free_place", choose)
        return place

    monkeypatch.setattr(maker, "_free_place", chosen)
    mine = maker.lend(1)
    addresses = [one.ctypes.data for one in (mine, *others) if one is not None]
    assert len(addresses) == 1
    del mine
    others.clear()
    assert all(maker.lend(1) is not None for _ in range(BLOCKS))


def test_a_block_that_was_sent_meanwhile_is_not_lent(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread fills, puts and forgets the block that the first one has chosen and not registered yet."""
    maker, other = sides
    choose = maker._free_place

    def chosen() -> int:
        place = choose()
        monkeypatch.setattr(maker, "_free_place", choose)
        theirs = maker.lend(3)
        assert theirs is not None
        theirs[:] = np.frombuffer(b"BBB", np.uint8)
        sent.append(maker.put(theirs.data))
        return place

    sent: list[int | None] = []
    monkeypatch.setattr(maker, "_free_place", chosen)
    mine = maker.lend(3)
    assert mine is None
    assert sent[0] is not None
    assert bytes(other.take(sent[0], 3)) == b"BBB"
