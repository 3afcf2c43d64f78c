"""The agent's line to its gateway. It comes back by itself, whichever end was away."""

from __future__ import annotations

import logging
from time import monotonic

import zmq
import zmq.asyncio

from gpu_backend.transport.curve import KeyPair
from gpu_backend.transport.handshake import HandshakeWatch
from gpu_backend.transport.sockets import as_client, send_now
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.control import FromAgent, ToAgent
from gpu_backend.wire.errors import WireError

log = logging.getLogger("node.gateway_link")

#: A refused connection is tried anew after this long: the gateway may have learned our key by then.
_AGAIN_SECONDS = 1.0

_orders: Codec[ToAgent] = Codec(ToAgent)


class GatewayLink:
    """Sends what can be sent now and drops the rest: every report is whole, so none is worth a queue."""

    def __init__(self, context: zmq.asyncio.Context, keys: KeyPair, endpoint: str, server_key: bytes) -> None:
        self._context = context
        self._keys = keys
        self._endpoint = endpoint
        self._server_key = server_key
        self._refused_at = 0.0
        #: Why an order was dropped last.
        self._dropped = ""
        #: How often the connection was lost: by the sockets before the present one, and as it was told last.
        self._lost_before = self._lost = 0
        self._open()

    def _open(self) -> None:
        self._socket = as_client(self._context.socket(zmq.DEALER), self._keys, self._server_key)
        self._socket.immediate = True  # without a gateway nothing is queued
        self._watch = HandshakeWatch(self._socket)
        self._socket.connect(self._endpoint)

    def send(self, message: FromAgent) -> bool:
        """Send if the gateway is there; tell whether it was."""
        return send_now(self._socket, encode(message))

    def was_away(self) -> bool:
        """Tell whether the connection was lost since this was asked last: what was sent may not have been heard."""
        self._watch.read()
        before, self._lost = self._lost, self._lost_before + self._watch.disconnects
        return self._lost != before

    async def receive(self, seconds: float) -> ToAgent | None:
        """Return the next order, or None if none came in that time."""
        # Waiting for the order itself, with a time limit, could take one from the socket just as the time ran out.
        if not await self._socket.poll(round(seconds * 1000)):
            self._look_after()
            return None
        try:
            return _orders.decode(await self._socket.recv_multipart())
        except WireError as error:
            if str(error) != self._dropped:  # a gateway of another version says so to every report
                log.warning("an order was dropped: %s", error)
            self._dropped = str(error)
            return None

    def close(self) -> None:
        """Close the line."""
        self._watch.close()
        self._socket.close(linger=0)

    def _look_after(self) -> None:
        self._watch.read()
        if not self._watch.failure:
            return
        # libzmq gives up for good when a key is refused; only a new socket tries again.
        if not self._refused_at:
            log.error("the gateway at %s turned us away: %s", self._endpoint, self._watch.failure)
            self._refused_at = monotonic()
        elif monotonic() - self._refused_at > _AGAIN_SECONDS:
            self._refused_at = 0.0
            self._lost_before += self._watch.disconnects
            self.close()
            self._open()
