"""Frames in pieces: whatever the order, a frame comes out as it went in, and nothing else is a piece of it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.transport.pieces import PIECE_BYTES, FrameInPieces, cut

SIZES = st.one_of(
    st.integers(0, 4 * PIECE_BYTES),
    st.builds(lambda count, more: max(0, count * PIECE_BYTES + more), st.integers(0, 5), st.integers(-1, 1)),
)


@given(SIZES, st.integers(0, 1_000_000))
def test_pieces_in_any_order_are_the_frame(size: int, seed: int) -> None:
    chance = random.Random(seed)
    content = chance.randbytes(size)
    pieces = cut(7, content)
    chance.shuffle(pieces)
    frame = FrameInPieces(size)
    for piece in pieces:
        assert piece.frame == 7
        assert not frame.is_whole
        place = frame.claim(piece.offset)
        assert len(place) == len(piece.content)
        place[:] = piece.content
        frame.note_filled()
    assert frame.is_whole
    assert frame.content == content


@given(SIZES, st.one_of(st.integers(0, 6 * PIECE_BYTES), st.integers(0, (1 << 64) - 1)))
def test_a_place_is_one_of_the_frames_pieces_and_given_once(size: int, offset: int) -> None:
    frame = FrameInPieces(size)
    if offset in {piece.offset for piece in cut(0, bytes(size))}:
        frame.claim(offset)
    with pytest.raises(ValueError, match="none of its frame, or came before"):
        frame.claim(offset)


def test_a_frame_is_not_whole_while_a_piece_is_being_read() -> None:
    frame = FrameInPieces(2 * PIECE_BYTES)
    frame.claim(0)
    frame.claim(PIECE_BYTES)
    frame.note_filled()
    assert not frame.is_whole
