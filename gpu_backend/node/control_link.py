"""An agent's connection to one executor: orders there, reports back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gpu_backend.transport.control_socket import ControlClosed, ControlSocket, connect
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.errors import WireError
from gpu_backend.wire.orders import FromExecutorControl, Report, ToExecutorControl

log = logging.getLogger("node.control")

#: Reports read in one go: who sends without end must not keep the agent from the other executors.
_MOST_AT_ONCE = 64

_reports: Codec[FromExecutorControl] = Codec(FromExecutorControl)


class ControlLink:
    """Speaks to the executor that takes orders at ``path``. Never blocks; connects by itself whenever it has to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket: ControlSocket | None = None
        #: Whether there was more than is read in one go.
        self.is_flooded = False
        #: How much was sent that is no report.
        self.dropped = 0

    def send(self, order: ToExecutorControl, descriptors: Sequence[int] = ()) -> bool:
        """Send an order; tell whether it is on its way. Who does not read is not waited for."""
        try:
            if self._socket is None:
                self._socket = connect(self._path)
            return self._socket.send(encode(order)[0], descriptors)
        except ControlClosed:
            self.close()
            return False

    async def wait(self, seconds: float) -> None:
        """Wait until something was sent to us, or the executor hung up; at most for ``seconds``."""
        if self._socket is None:
            await asyncio.sleep(seconds)
            return
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        descriptor = self._socket.fileno()
        loop.add_reader(descriptor, heard.set)
        try:
            # Not `wait_for`, which in Python 3.11 loses a cancellation that comes together with what is waited for.
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await heard.wait()
        finally:
            loop.remove_reader(descriptor)

    def read(self) -> Iterator[Report]:
        """Yield the reports that have come. What is none is dropped and counted; the first time that is logged."""
        self.is_flooded = False
        for _ in range(_MOST_AT_ONCE):
            if self._socket is None:
                return
            try:
                message = self._socket.receive()
                if message is None:
                    return
                yield _reports.decode([message.frame])
            except ControlClosed:
                self.close()
            except WireError as error:
                if not self.dropped:  # who goes on must not fill our log
                    log.warning("a report from %s was dropped, as all will be that are none: %s", self._path, error)
                self.dropped += 1
        self.is_flooded = True

    def close(self) -> None:
        """Hang up. Idempotent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
