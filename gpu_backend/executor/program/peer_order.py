"""Ops that are given arrays of other devices, kept in order with what those devices do.

CUDA orders the work of one device's stream, and copies from device to device; a kernel that reads another device's
memory begins when it likes. Natively such a program is right by luck; here the notebook runs ahead, and luck is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from gpu_backend.devices.base import Device
from gpu_backend.executor.program.effects import handles_in
from gpu_backend.executor.verbs import WAIT_EVENT
from gpu_backend.opstream.devices import device_of
from gpu_backend.wire.messages import Op

__all__ = ["PeerOrder"]

R = TypeVar("R")


class PeerOrder:
    """Runs ops of a session with several devices. The device of the op is the current one."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def call(self, op: Op, function: Callable[..., R], args: Sequence[object], kwargs: Mapping[str, object]) -> R:
        """Return what ``function`` returns, which ``op`` names, of its arguments."""
        others = {device_of(handle) for handle in handles_in((*op.args, *(op.kwargs or {}).values()))}
        others = {number for number in others - {device_of(op.stream)} if 0 <= number < self._device.count}
        if not others or op.name == WAIT_EVENT:  # an event says by itself what is waited for
            return function(*args, **kwargs)
        with self._device.in_order_with(others):
            return function(*args, **kwargs)
