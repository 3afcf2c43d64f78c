"""The devices of one executor, each with its gate and its pace: an op goes by those of its own device.

Ops run in their order, so one that waits for its device's gate keeps those behind it, also of other devices.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple

from gpu_backend.devices.base import Device
from gpu_backend.devices.launching import Launcher
from gpu_backend.executor.config import ExecutorConfig
from gpu_backend.executor.control_door import Gates
from gpu_backend.executor.conversation import Conversation, QueuedBatch
from gpu_backend.executor.gate import Gate
from gpu_backend.executor.pace import Pace
from gpu_backend.gate.bell import Line
from gpu_backend.opstream.devices import device_of
from gpu_backend.transport.processors import has_spare
from gpu_backend.wire.op_classes import OP_CLASSES

__all__ = ["Lane", "Lanes", "make_lanes"]

log = logging.getLogger("executor")


class Lane(NamedTuple):
    """The way to one device: whether to launch there, and what is in flight."""

    gate: Gate
    pace: Pace


def make_lanes(config: ExecutorConfig, device: Device) -> list[Lane]:
    """Return a lane for each device that ``device`` computes on. Each tells its arbiter by a report page of its own."""
    leaving = _leaving(device.launcher, is_shared=bool(config.group))
    paces = [Pace(device.marker, perf_counter, leaving) for _ in range(device.count)]
    pages = zip(config.descriptors.reports, paces, strict=True)
    return [Lane(Gate(page, config.has_arbiter, pace), pace) for page, pace in pages]


def _leaving(launcher: Launcher | None, is_shared: bool) -> Callable[[bool], None]:
    """Return what says whether launches may be left to a thread: where nobody else wants the device or a processor.

    What is left to it could not be stopped, and would wait for a processor. Nor with a group that has the device
    together: what is refused late would be everybody's fault.
    """

    def say_alone(is_alone: bool) -> None:
        if launcher is None:
            return
        launcher.may_leave = is_alone and not is_shared and has_spare()
        if not is_alone:
            launcher.wait()

    return say_alone


class Lanes:
    """Every device's lane, and which device is current.

    Parameters
    ----------
    lanes
        In the order of the devices.
    held
        Tells how much memory of a device live arrays hold.
    """

    def __init__(self, lanes: Sequence[Lane], held: Callable[[int], int]) -> None:
        self.all = tuple(lanes)
        #: The number of the current device.
        self.number = 0
        self._held = held
        #: Bytes that live arrays held when that was last looked at, by device; and the most they held together.
        self.held_bytes = [0] * len(self.all)
        self.peak_bytes = 0
        self._done_through = 0

    # --- which device is next -----------------------------------------------------------------------------------------

    def turn(self, talk: Conversation | None) -> bool:
        """Turn to the device of the next op; where none waits, to one that works. Tell whether it is another one."""
        batch = talk.front() if talk is not None else None
        number = self._working() if batch is None else self._device_of_next(batch)
        if number == self.number:
            return False
        gate, pace = self.all[self.number]
        pace.close_group()
        gate.tell(0, False, self.held_bytes[self.number])
        self.number = number
        return True

    def most_ops(self, batch: QueuedBatch, most: int) -> int:
        """Return how many of the next ``most`` ops are for the current device, where the next one is."""
        ahead = batch.ops[batch.next + 1 : batch.next + most]
        return next((place for place, op in enumerate(ahead, 1) if device_of(op.stream) != self.number), most)

    def is_for_another(self, batch: QueuedBatch) -> bool:
        """Tell whether the next op is for another device."""
        return self._device_of_next(batch) != self.number

    def _device_of_next(self, batch: QueuedBatch) -> int:
        number = device_of(batch.ops[batch.next].stream)
        return number if 0 <= number < len(self.all) else self.number  # there is none: the op fails wherever it runs

    def _working(self) -> int:
        flying = [number for number, lane in enumerate(self.all) if lane.pace.in_flight_ops]
        return self.number if self.number in flying or not flying else flying[0]

    # --- what is asked of all of them ---------------------------------------------------------------------------------

    def measure(self) -> int:
        """Look how much memory is held; return how much on all devices."""
        self.held_bytes = [self._held(number) for number in range(len(self.all))]
        total = sum(self.held_bytes)
        self.peak_bytes = max(self.peak_bytes, total)
        return total

    def collect(self) -> None:
        """Notice what all devices have done."""
        for _, pace in self.all:
            pace.collect()

    def rest(self) -> None:
        """Tell the arbiters of the other devices that nothing waits for them."""
        for number, (gate, _) in enumerate(self.all):
            if number != self.number:
                gate.tell(0, False, self.held_bytes[number], True)

    def note_other_work(self, processor_ns: int) -> None:
        """Say that so much processor time went into ops of the current device, to who sees the others."""
        for number, (gate, _) in enumerate(self.all):
            if number != self.number:
                gate.note_other_work(processor_ns)

    def take_gate(self, gates: Gates, hear_bell: Callable[[Line | None, int], None]) -> None:
        """Obey the arbiter of one of the devices, and hear its bell and no other of that device."""
        order, way, line, device = gates
        if not 0 <= device < len(self.all):
            for descriptor in (order, way, line):
                os.close(descriptor)
            return
        gate = self.all[device].gate
        hear_bell(None, device)
        try:
            gate.take(order, way, line)
        except OSError as error:
            log.error("what an arbiter handed over is of no use: %s", error)
        hear_bell(gate.line, device)

    def done_through(self, applied: int) -> int:
        """Return up to which op all are done, as far as that is known; ``applied`` is the last that was launched."""
        known = min((pace.done_through for _, pace in self.all if pace.in_flight_ops), default=applied)
        self._done_through = max(known, self._done_through)  # a device that was idle knows only of ops long ago
        return self._done_through

    @property
    def used_seconds(self) -> float:
        """The time of all devices."""
        return sum(pace.used_seconds for _, pace in self.all)

    @property
    def used_by_class(self) -> tuple[float, ...]:
        """The same by class of op, in the order of `OP_CLASSES`."""
        return tuple(sum(pace.used_by_class[kind] for _, pace in self.all) for kind in range(len(OP_CLASSES)))
