"""The supervisor: keeps one gateway running for as long as the pool is up."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic

from gpu_backend.engine.detached import ProcessId, Watched, noted_identity, read_identity, spawn, write_identity
from gpu_backend.pool import clusters
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import REPLACED, PoolState
from gpu_backend.wire.errors import PoolError

log = logging.getLogger("pool.supervisor")

_STEADY_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 10.0
_LOOK_SECONDS = 1.0
_GRACE_SECONDS = 3.0


class Supervisor:
    """Starts the gateway, adopts one that runs already, and starts it again whenever it ends or grows too large."""

    def __init__(self, state: PoolState, settings: PoolSettings, owner: ProcessId | None) -> None:
        """Keep the pool of ``state``; if ``owner`` is given, only until that process ends."""
        self._state = state
        self._settings = settings
        self._owner = owner
        self._stop = asyncio.Event()

    async def run(self) -> bool:
        """Keep the gateway until the pool is stopped or the owner is gone; tell whether the owner is gone."""
        write_identity(self._state.process_file("supervisor"), ProcessId.mine())
        self._state.stopped_note.unlink(missing_ok=True)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        keeping = asyncio.create_task(self._keep_gateway())
        beside = asyncio.create_task(self._keep_ray())
        stopping = asyncio.create_task(self._stop.wait())
        orphaned = asyncio.create_task(gone(self._owner))
        ends = (keeping, beside, stopping, orphaned)
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        is_orphan = orphaned.done()
        for task in ends:
            task.cancel()
        results = await asyncio.gather(*ends, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result
        return is_orphan

    async def _keep_gateway(self) -> None:
        failures = 0
        while not self._state.stopped_note.exists():
            gateway = self._adopt() or self._start()
            since = monotonic()
            if gateway is not None:
                await self._follow(gateway)
            is_well = monotonic() - since > _STEADY_SECONDS or self._was_replaced(gateway)
            failures = 0 if is_well else failures + 1
            if failures > 1:
                await asyncio.sleep(min(0.1 * 2**failures, _LONGEST_PAUSE_SECONDS))

    def _was_replaced(self, gateway: Watched | None) -> bool:
        """Tell whether a gateway was ended for the next one to have other settings: that is no failure of it."""
        noted = noted_identity(self._state.process_file(REPLACED))
        return gateway is not None and gateway.identity == noted

    async def _keep_ray(self) -> None:
        """Keep the head of the pool's own Ray cluster, if it has one; the gateway does without while it is away."""
        if self._settings.engine == "local" or self._settings.ray_address:
            await asyncio.Event().wait()
        kept = clusters.head_process(self._state, self._settings)
        kept.want()
        async for _ in kept.keep():
            log.info("Ray's head was started again")

    def _adopt(self) -> Watched | None:
        running = read_identity(self._state.process_file("gateway"))
        if running is None:
            return None
        with suppress(ProcessLookupError):
            return Watched(running)
        return None

    def _start(self) -> Watched | None:
        with suppress(PoolError):  # the gateway says itself what is wrong with them
            self._settings = pool_settings.read(self._state.settings_file)
        command = [sys.executable, "-m", "gpu_backend.pool", "gateway", "--state", str(self._state.root)]
        try:
            identity = spawn(command, self._state.logs / "gateway.log", self._state.root)
            gateway = Watched(identity)
        except ProcessLookupError as error:
            log.error("the gateway ended at once: %s", error)
            return None
        write_identity(self._state.process_file("gateway"), identity)
        log.info("started the gateway, pid %d", identity.pid)
        return gateway

    async def _follow(self, gateway: Watched) -> None:
        """Wait until the gateway has ended, and see to it that it does not eat the machine meanwhile.

        A peer whose key is good may send one message of endless many frames, which libzmq gathers in memory.
        """
        ended = asyncio.create_task(gateway.ended())
        try:
            while not (await asyncio.wait({ended}, timeout=_LOOK_SECONDS))[0]:
                if _resident_bytes(gateway.identity.pid) > self._settings.gateway_memory_bytes:
                    log.error("the gateway holds more than %d bytes: killed", self._settings.gateway_memory_bytes)
                    gateway.send_signal(signal.SIGKILL)
            log.info("the gateway has ended")
        finally:
            ended.cancel()
            await asyncio.gather(ended, return_exceptions=True)
            gateway.close()


async def gone(owner: ProcessId | None) -> None:
    """Wait until ``owner`` has ended; without one, for ever."""
    if owner is None:
        await asyncio.Event().wait()
        return
    with suppress(ProcessLookupError):
        watched = Watched(owner)
        try:
            await watched.ended()
        finally:
            watched.close()


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
