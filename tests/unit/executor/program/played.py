"""A notebook's messages carried out by a real op stream: real batches, in the order and in the bundles as given."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device
from gpu_backend.executor.answer import Answer
from gpu_backend.executor.config import PASSES
from gpu_backend.executor.conversation import Conversation
from gpu_backend.executor.heap import Kind
from gpu_backend.executor.program.run import OpStream
from gpu_backend.wire import messages as wire
from gpu_backend.wire import values
from gpu_backend.wire.codec import Frame, encode
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref, View

PEER = b"a"
_PART = 1 << 40
CPU = open_device("cpu")


class PlayedNotebook:
    """Sends ops to an executor in this thread, and keeps what they are answered."""

    def __init__(self, passes: Collection[str] = PASSES, device: Device = CPU, kept_bytes: int = 0) -> None:
        self.device = device
        self.stream = OpStream(device, passes, kept_bytes)
        self.talk = Conversation(wire.Welcome(0, 1, 10_000, 1 << 30, 0, {}), "s")
        self.talk.receive(PEER, encode(wire.Hello("s", 1, "me", 1, 0)))
        self.answers: dict[int, Answer] = {}
        self._sent = 0

    def send(self, *ops: Op, frames: Sequence[Frame] = ()) -> None:
        """Let a message with ``ops`` arrive, and with the ``frames`` that they name."""
        self.talk.receive(PEER, encode(wire.Batch(self._sent + 1, 0, ops), frames))
        self._sent += len(ops)

    def work(self, most: int = 1 << 30) -> None:
        """Run all that has arrived, ``most`` at a time."""
        while (batch := self.talk.front()) is not None:
            place, answer = self.stream.run(batch, float("inf"), most)
            self.talk.advance(batch, place)
            if answer is not None:
                self.answers[self.talk.applied] = answer
        assert self.talk.queued_ops == 0
        assert self.talk.applied == self._sent

    def run(self, *ops: Op, bundles: Sequence[int] = (), most: int = 1 << 30) -> list[Answer]:
        """Send ``ops`` in messages of so many, the rest in one; return what they were answered."""
        place, first = 0, self._sent + 1
        for count in (*bundles, len(ops)):
            if ops[place : place + count]:
                self.send(*ops[place : place + count])
            place += count
        self.work(most)
        return [answer for seq, answer in self.answers.items() if seq >= first]

    def contents(self, value: values.Value) -> np.ndarray[Any, Any]:
        """Return what is in the array that ``value`` names."""
        (answer,) = self.run(Op(".same", 0, (value,), None, Want.CONTENTS))
        assert answer.error is None, answer.error
        assert isinstance(answer.value, values.Buffer)
        data = answer.value.data if answer.value.frame < 0 else answer.buffers[answer.value.frame].tobytes()
        return np.frombuffer(data, answer.value.dtype).reshape(answer.value.shape)

    def holds(self) -> dict[int, tuple[str, tuple[int, ...], bytes]]:
        """Return what is there: dtype, shape and bits of arrays, and of what an object has of its arrays."""
        heap = self.stream.heap
        found = {}
        for handle in sorted(heap.objects):
            value: values.Value = Ref(handle)
            if heap.kind(handle) is not Kind.ARRAY:
                name = "data" if hasattr(heap.objects[handle], "nnz") else "coeffs"
                self.run(Op(".getattr", _PART, (value, name), None, Want.DESCRIPTION))
                value = Ref(_PART)
            one = self.contents(value)
            found[handle] = one.dtype.str, one.shape, one.tobytes()
            self.run(Op(".nothing", 0, (), (_PART,)))
        return found


def window(root: int, start: int, count: int = 6) -> View:
    """Return a view of ``count`` doubles of ``root``."""
    return View(root, 8 * start, (count,), (8,), "<f8", "")


def added(into: int, *args: values.Value, drop: tuple[int, ...] | None = None, reuse: int = 0) -> Op:
    """Return an op that adds."""
    return Op("cupy.add", into, args, drop, reuse=reuse)
