"""What a structure gave: the ops as the notebook sent them, and what CuPy alone answered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.executor.answer import Answer
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Buffer
from tests.conformance.in_process import InProcess, mirrored, notebook_on
from tests.fuzz.structure import Run, Structure, quiet

__all__ = ["Piece", "Recording", "record", "shown"]

_SECONDS = 600.0


class Piece(NamedTuple):
    """Ops that ran one after the other, the buffers that came with them, and what the last of them was answered.

    ``before`` counts the ops before them.
    """

    before: int
    ops: tuple[Op, ...]
    frames: tuple[bytes, ...]
    answer: object | None


class Recording(NamedTuple):
    """All ops of a structure; how many statements raised something."""

    structure: Structure
    pieces: list[Piece]
    failed: int

    @property
    def ops(self) -> int:
        """How many ops there are."""
        return sum(len(one.ops) for one in self.pieces)


class Recorder(InProcess):
    """An executor without any optimisation, which keeps what comes and what it answers."""

    def __init__(self, device: Device) -> None:
        self.pieces: list[Piece] = []
        self._ops = 0
        super().__init__(device, ())

    def work(self, most: int) -> None:
        """Run all ops that have arrived."""
        while (batch := self.talk.front()) is not None:
            began = batch.next
            place, answer = self.stream.run(batch, float("inf"))
            frames = tuple(map(bytes, batch.frames))
            said = None if answer is None else shown(answer)
            self.pieces.append(Piece(self._ops, batch.ops[began:place], frames, said))
            self._ops += place - began
            self.talk.advance(batch, place)
            self.talk.note_done(self.talk.applied, 0.0)
            if answer is not None:
                self.talk.answer(answer)


def record(structure: Structure, device: Device) -> Recording:
    """Run ``structure`` by CuPy alone on ``device``; return all that came of it.

    The notebook asks for everything: what it knows by itself is no result of the device's.
    """
    executor = Recorder(device)
    with quiet(), notebook_on(device, executor), mirrored("off"):
        run = Run(structure)
        run.run()
        run.scope.clear()
        executor.live()
    executor.stream.clear()
    return Recording(structure, executor.pieces, run.failed)


def shown(answer: Answer) -> object:
    """Return what must be the same of an answer: each bit of what is in arrays, NaNs' payloads too."""
    if answer.error is not None:
        return "fatal" if answer.fatal else "error", answer.error.kind, answer.error.message
    value = answer.value
    if isinstance(value, Buffer):
        data = value.data if value.frame < 0 else np.ascontiguousarray(answer.buffers[value.frame]).tobytes()
        return value.dtype, value.shape, bytes(data)
    return repr(value), [np.ascontiguousarray(one).tobytes() for one in answer.buffers], repr(answer.warnings)
