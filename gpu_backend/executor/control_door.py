"""Where an executor takes orders: connections of its agent, of that one's successors, and of its arbiter."""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Iterator
from typing import NamedTuple

from gpu_backend.transport.control_socket import ControlClosed, ControlListener, ControlSocket
from gpu_backend.wire import orders
from gpu_backend.wire.channels import TakeChannel
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.errors import WireError

log = logging.getLogger("executor.control")

#: Messages read from one connection in one go; the rest waits its turn.
_MOST_AT_ONCE = 64
#: Descriptors that a message may bring.
_MOST_DESCRIPTORS = 8

_orders: Codec[orders.ToExecutorControl] = Codec(orders.ToExecutorControl)


class Gates(NamedTuple):
    """What an arbiter hands over: the descriptors of order page, right of way and bell, which the receiver closes."""

    order: int
    way: int
    line: int
    #: Which of the executor's devices it is the arbiter of.
    device: int = 0


class Handed(NamedTuple):
    """A connection that the agent has opened: the descriptor is the receiver's; None if there is no connection."""

    order: TakeChannel
    descriptor: int | None


_OF_A_GATE = 3
Order = orders.Assign | orders.RenewLease | orders.Stop | Gates


class ControlDoor:
    """Reads orders and sends reports. ``descriptor`` is of the listening socket that was handed over."""

    def __init__(self, descriptor: int) -> None:
        self._listener = ControlListener(descriptor, _MOST_DESCRIPTORS)
        self._poll = select.epoll()
        self._poll.register(self._listener.fileno(), select.EPOLLIN)
        self._peers: dict[int, ControlSocket] = {}
        self._agent: ControlSocket | None = None

    def fileno(self) -> int:
        """Return a descriptor that is readable while there is something to read, for a poller."""
        return self._poll.fileno()

    def has_message(self) -> bool:
        """Tell whether there is something to read."""
        return bool(self._poll.poll(0, 1))

    def read(self) -> Iterator[Order | Handed]:
        """Yield orders. What does not decode is dropped, which is said: who speaks here is ours, and should know."""
        for descriptor, _ in self._poll.poll(0):
            peer = self._peers.get(descriptor)
            if peer is None:
                self._accept()
            else:
                yield from self._read(peer)

    def _read(self, peer: ControlSocket) -> Iterator[Order | Handed]:
        try:
            for _ in range(_MOST_AT_ONCE):
                message = peer.receive()
                if message is None:
                    return
                try:
                    order = _orders.decode([message.frame])
                except WireError as error:
                    log.error("an order was dropped: %s", error)
                    order = None
                if isinstance(order, orders.TakeGate) and len(message.descriptors) == _OF_A_GATE:
                    order_page, way, line = message.descriptors
                    yield Gates(order_page, way, line, order.device)
                    continue
                if isinstance(order, TakeChannel) and len(message.descriptors) <= 1:
                    self._agent = peer
                    yield Handed(order, message.descriptors[0] if message.descriptors else None)
                    continue
                for descriptor in message.descriptors:  # no other order has any
                    os.close(descriptor)
                if order is not None and not isinstance(order, orders.TakeGate | TakeChannel):
                    self._agent = peer
                    yield order
        except ControlClosed:
            self._forget(peer)

    def _accept(self) -> None:
        peer = self._listener.accept()
        if peer is not None:
            self._peers[peer.fileno()] = peer
            self._poll.register(peer.fileno(), select.EPOLLIN)

    def _forget(self, peer: ControlSocket) -> None:
        self._peers.pop(peer.fileno(), None)
        self._poll.unregister(peer.fileno())
        peer.close()
        if self._agent is peer:
            self._agent = None

    def report(self, report: orders.Report) -> None:
        """Tell the agent, if one has called; what it misses it learns with its next lease renewal."""
        if self._agent is not None:
            try:
                self._agent.send(encode(report)[0])
            except ControlClosed:  # it is forgotten when all that it had said before is read, which may be going on
                self._agent = None

    def close(self) -> None:
        """Close all; what was sent can still be read."""
        self._poll.close()
        self._listener.close()
        for peer in self._peers.values():
            peer.close()
