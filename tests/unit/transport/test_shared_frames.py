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


@given(st.lists(st.tuples(st.booleans(), st.binary(min_size=1, max_size=300), st.booleans()), max_size=60))
def test_what_is_put_in_comes_out_while_it_is_held(steps: list[tuple[bool, bytes, bool]]) -> None:
    maker, other = make_sides()
    held: list[tuple[bool, memoryview, bytes]] = []
    for from_maker, content, is_released in steps:
        sender, receiver = (maker, other) if from_maker else (other, maker)
        block = sender.put(content)
        under_way = sum(one[0] == from_maker for one in held)
        assert (block is None) == (under_way == BLOCKS)
        if block is not None:
            held.append((from_maker, receiver.take(block, len(content)), content))
        assert all(bytes(seen) == content for _, seen, content in held)
        if is_released and held:
            held.pop(0)


def test_a_block_is_taken_until_the_last_look_into_it_is_gone(sides: Sides) -> None:
    maker, other = sides
    blocks = [maker.put(b"abc") for _ in range(BLOCKS)]
    assert maker.is_full
    assert not other.is_full
    assert maker.put(b"one more") is None
    seen = other.take(blocks[3] or 0, 3)
    array = np.frombuffer(seen, np.uint8)[1:]
    del seen
    assert maker.is_full
    assert bytes(array) == b"bc"
    del array
    assert not maker.is_full
    assert maker.put(b"another") == blocks[3]


def test_a_block_is_set_free_without_a_line_of_python(sides: Sides) -> None:
    """So that no interrupt can strike in it: Python would print it, and forget it."""
    maker, other = sides
    for _ in range(2 * BLOCKS):
        block = maker.put(b"abc")
        assert block is not None
        seen = [other.take(block, 3)]
        lines = python_run(seen.clear)
        assert not lines
    assert not maker.is_full


@pytest.mark.parametrize(("block", "length"), [(0, 0), (0, -1), (0, BLOCK_BYTES + 1), (BLOCKS, 1), (-1, 1), (1, 1)])
def test_a_frame_that_cannot_be_is_refused(sides: Sides, block: int, length: int) -> None:
    maker, other = sides
    assert maker.put(b"abc") == 0
    with pytest.raises(ValueError, match="block"):
        other.take(block, length)
