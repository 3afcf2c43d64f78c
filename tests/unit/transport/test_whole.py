"""Messages whole in a ring: taken and put in as `framing` does it, whatever a peer claims, compiled or not."""

from __future__ import annotations

import struct
import subprocess
import sys
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.transport import whole
from gpu_backend.transport.framing import MAX_MESSAGE_BYTES, head, place_of, single
from gpu_backend.transport.shared_frames import BLOCK_BYTES
from gpu_backend.wire.codec import Frame

#: Compiled, if anything is here, and as Python has it.
TAKES = {"chosen": whole.take, "python": whole._taken}
PUTS = {"chosen": whole.put, "python": whole._put}
SIZE = 64
PUT_AT, TAKEN_AT = 2, 5


class Ring:
    """A small ring and its words."""

    def __init__(self, put: int = 0, taken: int = 0) -> None:
        self.words, self.ring = memoryview(bytearray(8 * 8)).cast("Q"), memoryview(bytearray(SIZE))
        self.words[PUT_AT], self.words[TAKEN_AT] = put, taken

    def write(self, data: bytes, at: int) -> None:
        for place, byte in enumerate(data, at):
            self.ring[place % SIZE] = byte

    def read(self, at: int, size: int) -> bytes:
        return bytes(self.ring[(at + place) % SIZE] for place in range(size))

    def take(self, take: whole.Take) -> whole.Taken:
        return take(self.words, PUT_AT, TAKEN_AT, self.words[TAKEN_AT], self.ring)

    def put(self, put: whole.Put, frame: Frame, beside: int = 0) -> int:
        return put(self.words, PUT_AT, TAKEN_AT, self.words[PUT_AT], self.ring, frame, beside)


@pytest.fixture(params=TAKES)
def take(request: pytest.FixtureRequest) -> whole.Take:
    found: whole.Take = TAKES[request.param]
    return found


@pytest.fixture(params=PUTS)
def put(request: pytest.FixtureRequest) -> whole.Put:
    found: whole.Put = PUTS[request.param]
    return found


@pytest.mark.parametrize(("took", "gave"), list(product(TAKES.values(), PUTS.values())))
@given(st.lists(st.binary(max_size=SIZE), max_size=8), st.integers(0, 1 << 40))
def test_what_was_put_in_is_taken_out(took: whole.Take, gave: whole.Put, frames: list[bytes], begun: int) -> None:
    ring = Ring(begun, begun)
    for frame in frames:
        size = ring.put(gave, frame)
        assert size == (len(single(frame)) if 0 < len(frame) <= SIZE - whole.HEAD.size else 0)
        if size:
            assert ring.read(ring.words[TAKEN_AT], size) == single(frame)
            assert ring.take(took) == frame
        assert ring.take(took) is None
        assert ring.words[PUT_AT] == ring.words[TAKEN_AT]


@pytest.mark.parametrize(("took", "gave"), list(product(TAKES.values(), PUTS.values())))
@given(st.binary(max_size=SIZE), st.integers(0, 7), st.integers(1, BLOCK_BYTES), st.integers(0, 1 << 40))
def test_a_frame_in_a_block_is_told_of_beside_the_one_that_is_taken(
    took: whole.Take, gave: whole.Put, frame: bytes, block: int, length: int, begun: int
) -> None:
    ring, place = Ring(begun, begun), place_of(block, length)
    message = head([frame, bytes(length)], [None, block]) + frame
    size = ring.put(gave, frame, place)
    assert size == (len(message) if 0 < len(frame) <= SIZE - whole.HEAD_OF_TWO.size else 0)
    if size:
        assert ring.read(ring.words[TAKEN_AT], size) == message
        assert ring.take(took) == (frame, place)
    assert ring.take(took) is None
    assert ring.words[PUT_AT] == ring.words[TAKEN_AT]


def test_several_are_taken_one_by_one(take: whole.Take, put: whole.Put) -> None:
    ring = Ring(50, 50)
    assert ring.put(put, b"one") == 15
    assert ring.put(put, memoryview(b"two")) == 15
    assert ring.put(put, bytearray(b"three")) == 17
    assert not ring.put(put, b"fourth")  # there is room for a part of it
    assert [ring.take(take) for _ in range(4)] == [b"one", b"two", b"three", None]
    assert ring.put(put, b"fourth")


@pytest.mark.parametrize(
    "message",
    [
        b"", single(b"whole")[:11], single(b"whole")[:-1], single(b""), struct.pack("<IQ", 2, 5) + b"whole",
        struct.pack("<IQ", 1, (1 << 64) - 1) + b"whole", struct.pack("<IQ", 1, MAX_MESSAGE_BYTES) + b"whole",
        struct.pack("<IQ", 1, 5 | 1 << 63) + b"whole", struct.pack("<IQ", 0, 5) + b"whole",
        struct.pack("<IQQ", 2, 5, 5) + b"wholewhole", struct.pack("<IQQ", 2, 5, 1 << 62 | 5) + b"whole",
        struct.pack("<IQQ", 2, 0, 1 << 63 | 5), struct.pack("<IQQ", 2, 6, 1 << 63 | 5) + b"whole",
        struct.pack("<IQQ", 2, 1 << 63 | 5, 1 << 63 | 5) + b"whole", struct.pack("<IQQ", 2, 5, 1 << 63 | 5)[:-1],
        struct.pack("<IQQQ", 3, 5, 1 << 63 | 5, 1 << 63 | 5) + b"whole",
    ],
)  # fmt: skip
def test_all_other_messages_are_left_where_they_lie(take: whole.Take, message: bytes) -> None:
    ring = Ring(taken=60, put=60 + len(message))
    ring.write(message, 60)
    before = bytes(ring.ring)
    assert ring.take(take) is None
    assert ring.words[TAKEN_AT] == 60
    assert bytes(ring.ring) == before


@pytest.mark.parametrize("put_there", [59, 60 + SIZE + 1, (1 << 64) - 1, 0])
def test_a_peer_that_claims_what_cannot_be_is_left_to_those_who_say_so(take: whole.Take, put_there: int) -> None:
    ring = Ring(taken=60, put=put_there)
    ring.write(single(b"whole"), 60)
    assert ring.take(take) is None


@pytest.mark.parametrize("taken", [61, 0, (1 << 64) - 1])
def test_nothing_is_put_where_the_peer_claims_to_have_taken_what_was_never_there(put: whole.Put, taken: int) -> None:
    ring = Ring(put=60 + SIZE if taken == 0 else 60, taken=taken)
    assert not ring.put(put, b"frame")
    assert bytes(ring.ring) == bytes(SIZE)


IS_COMPILED = pytest.mark.skipif(whole.take is whole._taken, reason="nothing compiled is used here")


@pytest.fixture
def ring() -> Ring:
    return Ring()


@IS_COMPILED
@pytest.mark.parametrize("place", [-1, 8, 1 << 40])
def test_there_is_no_word_beyond_the_memory(ring: Ring, place: int) -> None:
    for places in ((place, 0), (0, place)):
        with pytest.raises(IndexError):
            whole.take(ring.words, *places, 0, ring.ring)
        with pytest.raises(IndexError):
            whole.put(ring.words, *places, 0, ring.ring, b"frame", 0)


@IS_COMPILED
def test_nothing_is_done_with_what_makes_no_sense(ring: Ring) -> None:
    for given_ in (
        (),
        (ring.words, "a", 0, 0, ring.ring),
        (ring.words, 0, 0, None, ring.ring),
        (1, 0, 0, 0, ring.ring),
    ):
        with pytest.raises(TypeError):
            whole.take(*given_)
    for frame in (None, "text", 5):
        with pytest.raises(TypeError):
            whole.put(ring.words, 0, 1, 0, ring.ring, frame, 0)  # type: ignore[arg-type]
    with pytest.raises((TypeError, BufferError)):
        whole.put(ring.words, 0, 1, 0, ring.ring.toreadonly(), b"frame", 0)
    for beside in ("a", -1, 1 << 64):
        with pytest.raises((TypeError, OverflowError)):
            whole.put(ring.words, 0, 1, 0, ring.ring, b"frame", beside)  # type: ignore[arg-type]


def test_python_does_it_where_nothing_compiled_is_wanted() -> None:
    asked = "from gpu_backend.transport import whole; assert (whole.take, whole.put) == (whole._taken, whole._put)"
    run = subprocess.run(
        [sys.executable, "-c", asked], env={"GPU_WORKBENCH_COMPILED_MODULES": "off"}, capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr
