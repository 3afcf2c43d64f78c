"""The ops of a recording, given to an op stream with other optimisations: each answer must be what CuPy alone said."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.executor.program.run import OpStream
from gpu_backend.wire.messages import Op, Want
from tests.fuzz.recording import Piece, Recording, shown
from tests.fuzz.structure import quiet

__all__ = ["Difference", "Played", "Streams", "play"]

Streams = Callable[[Device, Collection[str]], OpStream]
#: Most ops of one message.
_LONGEST = 64


class Difference(NamedTuple):
    """An answer that is another one: of which op, what CuPy alone said, and what was said here."""

    op: Op | None
    said: object
    found: object

    @property
    def is_fatal(self) -> bool:
        """Whether the device is lost: nothing more can be asked of it."""
        return isinstance(self.found, tuple) and self.found[0] == "fatal"

    def lines(self) -> Iterator[str]:
        """Yield what a person needs to know of it."""
        yield f"{str(self.op)[:300]}"
        kinds = [one[:2] if isinstance(one, tuple) else one for one in (self.said, self.found)]
        yield f"CuPy alone: {str(kinds[0])[:200]}; here: {str(kinds[1])[:200]}"
        if kinds[0] == kinds[1] and isinstance(self.said, tuple) and isinstance(self.said[2], bytes):
            said, found = (np.frombuffer(one[2], one[0]) for one in (self.said, self.found))  # type: ignore[index]
            width = said.dtype.itemsize
            rows = (np.frombuffer(one[2], np.uint8).reshape(-1, width) for one in (self.said, self.found))  # type: ignore[index]
            places = np.flatnonzero((next(rows) != next(rows)).any(axis=1))
            at = places[0]
            bits = said[at].tobytes().hex(), found[at].tobytes().hex()
            yield f"{len(places)} of {len(said)} elements; at {at}: {said[at]!r} {bits[0]}; {found[at]!r} {bits[1]}"


class Played(NamedTuple):
    """What came of it: a difference or none, and how ops were carried out (see `OpStream.ways`)."""

    difference: Difference | None
    ways: tuple[tuple[str, str, int], ...]


def play(recording: Recording, device: Device, passes: Collection[str], streams: Streams = OpStream) -> Played:
    """Give all ops of ``recording`` to a stream with ``passes``, in messages of other lengths; stop at a difference."""
    structure, stream = recording.structure, streams(device, passes)
    try:
        with quiet():
            for pieces in _until_awaited(recording.pieces):
                batches = list(_batches(pieces, random.Random(structure.seed), first=1 + pieces[0].before))
                found = _run(stream, batches)
                said = {piece.before + len(piece.ops): piece.answer for piece in pieces if piece.answer is not None}
                if found != said:
                    return Played(_first(pieces, said, found), stream.ways())
                while structure.learns and stream.has_lesson:
                    stream.learn()
        return Played(None, stream.ways())
    finally:
        stream.clear()


def _first(pieces: Sequence[Piece], said: dict[int, object], found: dict[int, object]) -> Difference:
    number = min(one for one in said.keys() | found.keys() if said.get(one) != found.get(one))
    ops = [op for piece in pieces for op in piece.ops]
    return Difference(ops[number - pieces[0].before - 1], said.get(number), found.get(number))


def _until_awaited(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Yield what comes before the notebook waits for an answer."""
    gathered: list[Piece] = []
    for piece in pieces:
        gathered.append(piece)
        if piece.ops[-1].want is not Want.NOTHING:
            yield gathered
            gathered = []
    if gathered:
        yield gathered


def _batches(pieces: Sequence[Piece], drawn: random.Random, first: int) -> Iterator[QueuedBatch]:
    """Yield the ops of ``pieces`` in batches of other lengths, each of which knows the next one."""
    before: QueuedBatch | None = None
    for frames, together in groupby(pieces, lambda piece: piece.frames):
        ops = [op for piece in together for op in piece.ops]
        while ops:
            count = drawn.randint(1, _LONGEST)
            batch = QueuedBatch(first, tuple(ops[:count]), 0, frames)
            if before is not None:
                before.following = batch
            yield (before := batch)
            first += len(batch.ops)
            del ops[:count]


def _run(stream: OpStream, batches: Sequence[QueuedBatch]) -> dict[int, object]:
    """Run all of ``batches``; return the answers by the numbers of their ops."""
    found: dict[int, object] = {}
    batch: QueuedBatch | None = batches[0]
    while batch is not None:
        place, answer = stream.run(batch, float("inf"))
        if answer is not None:
            found[batch.first + place - 1] = shown(answer)
        batch.next = place
        while batch is not None and batch.next >= len(batch.ops):
            beyond, batch = batch.next - len(batch.ops), batch.following
            if batch is not None:
                batch.next += beyond
    return found
