"""The verbs by which a notebook has contents of arrays pass from one executor to another, past itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.executor.channels import Channel, Channels
from gpu_backend.executor.described_objects import DescribedObjects
from gpu_backend.wire.channels import CHANNEL, RECEIVE, SEND, Piece
from gpu_backend.wire.messages import Op

__all__ = ["Copying"]

_GIVEN_UP = "what computes it failed, or was cancelled"


class Copying:
    """The verbs, bound to a device and its executor's channels. ``table`` is as that of `Verbs`."""

    def __init__(self, device: Device, objects: DescribedObjects, channels: Channels) -> None:
        self._device = device
        self._objects = objects
        self._channels = channels
        self.table: dict[str, Callable[..., Any]] = {
            CHANNEL: channels.failure,
            SEND: self._send,
            RECEIVE: self._receive,
        }

    def give_up(self, op: Op) -> None:
        """Tell who waits for what ``op`` was to send that it does not come: the op failed, or was cancelled."""
        if op.name == SEND and len(op.args) > 1:
            self._channels.give_up(op.args[0], op.args[1], _GIVEN_UP)

    def _send(self, peer: str, number: int, array: Any) -> None:
        """Send the contents of an array, or nothing: that they will not come is told once, by who waits for them."""
        channel = self._channels.to(peer)
        if channel is not None:
            host = self._downloaded(self._objects.array(array), channel)
            channel.send(Piece(number), host.reshape(-1).view(np.uint8).data)

    def _downloaded(self, array: Any, channel: Channel) -> np.ndarray[Any, Any]:
        """Return the contents of ``array``, where the peer sees them if there is such memory."""
        before, self._device.landing = self._device.landing, channel.lend
        try:
            return self._device.download(array)
        finally:
            self._device.landing = before

    def _receive(self, peer: str, number: int, array: Any, offset: int) -> None:
        """Put what has come to ``offset`` bytes into a contiguous array."""
        piece = self._channels.taken(peer, number)
        self._device.write(self._objects.array(array), offset, memoryview(piece))
