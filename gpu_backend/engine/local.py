"""The engine of one machine: this one. Keeps one agent process on it."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from gpu_backend.engine.base import NodeChange, NodeEvent
from gpu_backend.engine.detached import Watched, read_identity, spawn, write_identity

log = logging.getLogger("engine.local")

#: An agent that ends sooner than this after its start is started again ever later, seconds.
_STEADY_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 10.0
#: How long an agent has to end after it was asked to, seconds.
_STOP_SECONDS = 5.0


class LocalEngine:
    """One node, and an agent on it that outlives this process and is found again by the next one."""

    def __init__(self, node: str, command: Sequence[str], directory: Path, log_file: Path) -> None:
        """Run ``command`` as the agent of ``node``, in ``directory``, where its process identity is noted as well."""
        self._node = node
        self._command = tuple(command)
        self._directory = directory
        self._log_file = log_file
        self._identity_file = directory / "agent.json"
        self._agent: Watched | None = None
        self._is_kept = False
        self._wake = asyncio.Event()

    async def nodes(self) -> tuple[str, ...]:
        """Return the one node."""
        return (self._node,)

    async def watch(self) -> AsyncIterator[NodeEvent]:
        """Yield ``JOINED``, then ``AGENT_STARTED`` whenever the agent had to be started again."""
        yield NodeEvent(self._node, NodeChange.JOINED)
        failures = 0
        while True:
            if not self._is_kept:
                await self._wake.wait()
            elif self._agent is None:
                # The first time at once: a session may be waiting for it.
                await asyncio.sleep(min(0.1 * 2**failures, _LONGEST_PAUSE_SECONDS) if failures > 1 else 0)
                if self._start():
                    yield NodeEvent(self._node, NodeChange.AGENT_STARTED, "The agent had ended.")
                else:
                    failures += 1
            else:
                since = monotonic()
                await self._agent.ended()
                self._agent.close()
                self._agent = None
                failures = 0 if monotonic() - since > _STEADY_SECONDS else failures + 1
            self._wake.clear()

    async def ensure_agent(self, node: str) -> None:
        """Adopt the agent that an earlier engine started here, or start one."""
        self._check(node)
        self._is_kept = True
        if self._agent is None:  # else `watch` sees to it
            running = read_identity(self._identity_file)
            if running is not None:
                with suppress(ProcessLookupError):
                    self._agent = Watched(running)
                    log.info("adopted the agent, pid %d", running.pid)
            if self._agent is None:
                self._start()
        self._wake.set()

    async def stop_agent(self, node: str) -> None:
        """End the agent."""
        self._check(node)
        self._is_kept = False
        running = read_identity(self._identity_file)
        if running is None:
            return
        with suppress(ProcessLookupError):
            agent = Watched(running)
            agent.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(_STOP_SECONDS):
                    await agent.ended()
            except TimeoutError:
                log.error("the agent did not end within %.0f s: killed", _STOP_SECONDS)
                agent.send_signal(signal.SIGKILL)
                await agent.ended()
            finally:
                agent.close()

    async def ask_capacity(self, devices: int) -> int:
        """Return 0: one machine stays one machine."""
        return 0

    def _start(self) -> bool:
        try:
            identity = spawn(self._command, self._log_file, self._directory)
            self._agent = Watched(identity)
        except ProcessLookupError as error:
            log.error("the agent ended at once: %s", error)
            return False
        # The agent notes itself there too; this covers the time until it does.
        write_identity(self._identity_file, identity)
        log.info("started the agent, pid %d", identity.pid)
        return True

    def _check(self, node: str) -> None:
        if node != self._node:
            raise LookupError(f"There is no node {node!r} here; this machine is {self._node!r}.")
