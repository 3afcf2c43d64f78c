"""Opening connections for executors, which can open none, to those of the same user's other sessions."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from gpu_backend.node.executor import Executor
from gpu_backend.transport.reaching import connect
from gpu_backend.wire.channels import DialChannel, TakeChannel
from gpu_backend.wire.words import printable

__all__ = ["Dialing"]

log = logging.getLogger("node.dialing")

#: How long whoever listens may take to accept a connection, seconds.
_CONNECT_SECONDS = 5.0
#: Connections that are being opened for one session at a time. More wait, as many as its executor keeps channels: one
#: that comes last into a group has all of them opened at once. What is beyond is refused.
_MOST_OF_ONE = 4
_MOST_WAITING = 32
#: Threads of their own: who listens nowhere must not keep what the agent does for others.
_THREADS = 8
#: Most characters of what is told of a failure.
_MOST_TOLD = 200


class Dialing:
    """Opens connections as the gateway says. ``find`` returns the executor that serves a session in some epoch."""

    def __init__(self, find: Callable[[str, int], Executor | None]) -> None:
        self._find = find
        #: Orders that are not done, and whose turn it is, by their session.
        self._under_way: Counter[str] = Counter()
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._threads = ThreadPoolExecutor(_THREADS, "dial")

    async def dial(self, order: DialChannel) -> None:
        """Open a connection and hand it over; that nobody could be reached is handed on as well."""
        try:
            if self._under_way[order.session] >= _MOST_WAITING:
                self._hand_over(order, "its node opens enough connections for it now")
            else:
                await self._in_turn(order)
        except Exception as error:  # whatever there is too little of, it ends no agent
            log.warning("a connection for an executor cannot be handed over: %s", error)

    async def _in_turn(self, order: DialChannel) -> None:
        self._under_way[order.session] += 1
        try:
            async with self._turns.setdefault(order.session, asyncio.Semaphore(_MOST_OF_ONE)):
                await self._open(order)
        finally:
            self._under_way[order.session] -= 1
            if not self._under_way[order.session]:
                del self._under_way[order.session], self._turns[order.session]

    async def _open(self, order: DialChannel) -> None:
        try:
            connected = await asyncio.get_running_loop().run_in_executor(
                self._threads, connect, order.endpoints, _CONNECT_SECONDS
            )
        except Exception as error:  # what a node says of its executors may be anything
            told = printable(str(error), _MOST_TOLD)
            log.info("an executor cannot be reached: %s", told)
            self._hand_over(order, told)
        else:
            with connected:
                self._hand_over(order, "", connected)

    def close(self) -> None:
        """Open no more; what is being opened is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _hand_over(self, order: DialChannel, failure: str, connected: socket.socket | None = None) -> None:
        executor = self._find(order.session, order.epoch)  # which may have ended meanwhile
        if executor is None:
            return
        if connected is None:
            executor.hand_over(TakeChannel(order.channel, failure=failure), None)
        else:
            executor.hand_over(TakeChannel(order.channel, order.secret, order.certificate), connected)
