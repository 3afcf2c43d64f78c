"""The verbs by which a notebook has contents of arrays pass from one executor to another, past itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.executor.channel import Channel
from gpu_backend.executor.channels import Channels
from gpu_backend.executor.described_objects import DescribedObjects
from gpu_backend.transport.shared_frames import BLOCK_BYTES
from gpu_backend.wire.channels import CHANNEL, RECEIVE, SEND, Piece
from gpu_backend.wire.errors import NotCopied
from gpu_backend.wire.messages import Op

__all__ = ["Copying"]

#: How many arguments the verbs have.
_OF_SEND, _OF_RECEIVE = 3, 4
_OTHER_LENGTH = (
    "What was sent from one device to another has {} bytes, and the array that it was for takes {} there: nothing was "
    "put into it. Give arrays of the same size on both sides."
)
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
        """Let nobody wait for ``op``, or for room that it was to make: it failed, or was cancelled."""
        if op.name == SEND and len(op.args) == _OF_SEND:
            self._channels.give_up(op.args[1], op.args[2], _GIVEN_UP)
        elif op.name == RECEIVE and len(op.args) == _OF_RECEIVE:
            self._channels.pass_over(op.args[2], op.args[3])

    def _send(self, array: Any, channel: str, number: int) -> None:
        """Send the contents of an array, or nothing: that they will not come is told once, by who waits for them."""
        there = self._channels.to(channel)
        if there is not None:
            host = self._downloaded(self._objects.array(array), there)
            there.send(Piece(number), host.reshape(-1).view(np.uint8).data)

    def _downloaded(self, array: Any, channel: Channel) -> np.ndarray[Any, Any]:
        """Return the contents of ``array``, where the peer sees them if there is such memory."""
        before, self._device.landing = self._device.landing, channel.lend
        try:
            return self._device.download(array)
        finally:
            self._device.landing = before

    def _receive(self, array: Any, offset: int, channel: str, number: int) -> None:
        """Put what has come to ``offset`` bytes into a contiguous array.

        Raises
        ------
        NotCopied
            If it will not come, or is not as long as what it belongs into: two ranks gave arrays of different sizes.
        """
        piece = memoryview(self._channels.taken(channel, number))
        into = self._objects.array(array)
        room = min(BLOCK_BYTES, into.nbytes - offset)
        if piece.nbytes != room:
            raise NotCopied(_OTHER_LENGTH.format(piece.nbytes, room))
        self._device.write(into, offset, piece)
