"""Opening connections for executors, which can open none, to those of the same user's other sessions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from gpu_backend.node.executor import Executor
from gpu_backend.transport.reaching import NotReached, connect
from gpu_backend.wire.channels import DialChannel, TakeChannel, channel_name

__all__ = ["Dialing"]

log = logging.getLogger("node.dialing")

#: How long whoever listens may take to accept a connection, seconds.
_CONNECT_SECONDS = 5.0
#: Connections that are being opened at a time; more are refused. A notebook wants one for each two of its devices.
_MOST_AT_ONCE = 64


class Dialing:
    """Opens connections as the gateway says. ``find`` returns the executor that serves a session in some epoch."""

    def __init__(self, find: Callable[[str, int], Executor | None]) -> None:
        self._find = find
        self._under_way = 0

    async def dial(self, order: DialChannel) -> None:
        """Open a connection and hand it over; that nobody could be reached is handed on as well."""
        executor = self._find(order.session, order.epoch)
        if executor is None:
            return
        own = channel_name(order.session, order.epoch)
        if self._under_way >= _MOST_AT_ONCE:
            executor.hand_over(TakeChannel(own, order.peer, failure="its node opens too many connections now"), None)
            return
        self._under_way += 1
        try:
            connected = await asyncio.to_thread(connect, order.endpoints, _CONNECT_SECONDS)
        except NotReached as error:
            log.info("the executor known by %s cannot be reached: %s", order.peer, error)
            executor.hand_over(TakeChannel(own, order.peer, failure=str(error)), None)
            return
        finally:
            self._under_way -= 1
        with connected:
            executor.hand_over(TakeChannel(own, order.peer, order.secret, order.certificate), connected)
