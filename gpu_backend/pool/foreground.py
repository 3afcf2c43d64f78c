"""A pool, or a node of one, under somebody else's supervision: systemd, a container's runtime, a batch job.

The process stays in the foreground and ends when it is told to. Executors outlive it, as they outlive the gateway and
the agent, which end with it: so a newer version is started by stopping this one, and no notebook notices. What such a
supervisor wants to know is said in its own words: that all is up (``sd_notify``), and how it ended (the exit status).
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Sequence
from time import monotonic

from gpu_backend.engine.detached import ProcessId, end_all
from gpu_backend.node import arbiter
from gpu_backend.pool import commands, joining
from gpu_backend.pool.state import PoolState
from gpu_backend.wire.errors import NotAuthorized, PoolError, PoolRefusal, PoolUnreachable

log = logging.getLogger("pool.foreground")

__all__ = ["node_standing", "pool_standing", "serve"]

_LOOK_SECONDS = 0.1
_GRACE_SECONDS = 3.0
#: After this long without an answer of the head, a node is ready: it goes on trying by itself, seconds.
_AWAY_SECONDS = 5.0
#: Says in words that all is up; "" while it is not yet.
Standing = Callable[[], str]


def serve(state: PoolState, keep: Callable[[], Coroutine[None, None, bool]], standing: Standing) -> None:
    """Keep a pool, or a node, by ``keep`` until a signal or an operator ends it; then its gateway and agent end too.

    What an earlier version of it left running is replaced, but for the executors that serve a session.

    Raises
    ------
    PoolRefusal
        If it cannot come up; the message says why.
    """
    notify, elder = _notifier(), arbiter.processes(state.runtime)
    commands.end_servants(state)
    commands.end_idle_executors(state)
    state.problem_note.unlink(missing_ok=True)
    try:
        asyncio.run(_keep(keep, _announcing(standing, elder, notify)))
    finally:
        notify("STOPPING=1")
        commands.end_servants(state)


def pool_standing(state: PoolState) -> Standing:
    """Return what says whether the pool is up."""

    def look() -> str:
        _refuse_problem(state)
        try:
            view = commands.status(state)
        except PoolError:
            return ""
        return f"the pool {view.pool} is up with {len(view.devices)} devices" if view.devices else ""

    return look


def node_standing(state: PoolState) -> Standing:
    """Return what says whether this machine is up as a node: its head has heard of it, or does not answer."""
    begun = monotonic()

    def look() -> str:
        _refuse_problem(state)
        try:
            member = joining.seen(state)
        except NotAuthorized:
            raise
        except PoolUnreachable as error:
            is_late = monotonic() - begun > _AWAY_SECONDS
            return f"the node is up, and goes on trying to reach its pool. {error}" if is_late else ""
        is_heard = member.node.silent_seconds < monotonic() - begun  # and not an agent that ran before
        is_up = is_heard and member.node.devices and member.node.state in ("up", "draining")
        return f"the node {member.node.name} of {member.pool} is up with {member.node.devices} devices" if is_up else ""

    return look


async def _keep(keep: Callable[[], Coroutine[None, None, bool]], announce: Coroutine[None, None, None]) -> None:
    keeping, announcing = asyncio.ensure_future(keep()), asyncio.ensure_future(announce)
    try:
        await asyncio.wait({keeping, announcing}, return_when=asyncio.FIRST_COMPLETED)
        if announcing.done():
            announcing.result()
            await keeping
    finally:
        for task in (keeping, announcing):
            task.cancel()
        await asyncio.gather(keeping, announcing, return_exceptions=True)


async def _announcing(standing: Standing, elder: Sequence[ProcessId], notify: Callable[[str], None]) -> None:
    while not (said := await asyncio.to_thread(standing)):
        await asyncio.sleep(_LOOK_SECONDS)
    # Not before the agent is there that starts others at once: while a device has no arbiter, shut gates stay shut.
    await asyncio.to_thread(end_all, elder, _GRACE_SECONDS)
    log.info("%s", said)
    notify(f"READY=1\nSTATUS={said}")


def _refuse_problem(state: PoolState) -> None:
    if state.problem_note.exists():
        raise PoolRefusal(f"It cannot come up. {state.problem_note.read_text()}")


def _notifier() -> Callable[[str], None]:
    """Return how to tell systemd something, by the protocol of sd_notify(3); nobody else is told where.

    It is not asked for where nobody has set the socket's address.
    """
    address = os.environ.pop("NOTIFY_SOCKET", "")

    def notify(words: str) -> None:
        if not address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
                door.connect(f"\0{address[1:]}" if address.startswith("@") else address)
                door.sendall(words.encode())
        except OSError as error:
            log.error("%s cannot be told: %s", address, error)

    return notify
