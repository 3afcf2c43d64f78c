"""Work of one GPU in order with that of others, whose memory it reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import cupy
from cupy.cuda import runtime


class Peers:
    """The GPUs of one session, beside each other."""

    def __init__(self, devices: Sequence[cupy.cuda.Device]) -> None:
        self._devices = devices
        self._reached: set[tuple[int, int]] = set()
        # An event is of the GPU on which it is made. Who waits for one waits for what it stood behind then, so one for
        # each GPU does, again and again.
        self._events = [_event_on(device) for device in devices]

    @contextmanager
    def in_order(self, here: int, stream: cupy.cuda.Stream, others: Collection[int]) -> Iterator[None]:
        """Have work on ``stream`` of the current GPU, ``here``, wait for that of ``others``, and theirs for it."""
        for number in others:
            self._reach(here, number)
            with self._devices[number]:
                self._events[number].record(cupy.cuda.Stream.null)
            stream.wait_event(self._events[number])
        try:
            yield
        finally:
            done = self._events[here]
            done.record(stream)
            for number in others:
                with self._devices[number]:
                    cupy.cuda.Stream.null.wait_event(done)

    def _reach(self, here: int, number: int) -> None:
        """Let the current GPU read the memory of another. CuPy does so for elementwise kernels alone: others fault."""
        if (here, number) not in self._reached:
            other = self._devices[number].id
            if runtime.deviceCanAccessPeer(self._devices[here].id, other):
                runtime._deviceEnsurePeerAccess(other)
            self._reached.add((here, number))


def _event_on(device: cupy.cuda.Device) -> cupy.cuda.Event:
    with device:
        return cupy.cuda.Event(disable_timing=True)
