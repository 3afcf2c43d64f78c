"""The engine of one machine: this one. Keeps one agent process on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from gpu_backend.engine.base import NodeChange, NodeEvent
from gpu_backend.engine.kept_process import KeptProcess


class LocalEngine:
    """One node, and an agent on it that outlives this process and is found again by the next one."""

    def __init__(
        self,
        node: str,
        command: Sequence[str],
        directory: Path,
        log_file: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Run ``command`` as the agent of ``node``, in ``directory``, where its process identity is noted as well."""
        self._node = node
        self._agent = KeptProcess("agent", command, directory, log_file, environment)

    async def nodes(self) -> tuple[str, ...]:
        """Return the one node."""
        return (self._node,)

    async def watch(self) -> AsyncIterator[NodeEvent]:
        """Yield ``JOINED``, then ``AGENT_STARTED`` whenever the agent had to be started again."""
        yield NodeEvent(self._node, NodeChange.JOINED)
        async for _ in self._agent.keep():
            yield NodeEvent(self._node, NodeChange.AGENT_STARTED, "The agent had ended.")

    async def ensure_agent(self, node: str) -> None:
        """Adopt the agent that an earlier engine started here, or start one."""
        self._check(node)
        self._agent.want()

    async def stop_agent(self, node: str) -> None:
        """End the agent."""
        self._check(node)
        await self._agent.stop()

    async def ask_capacity(self, devices: int) -> int:
        """Return 0: one machine stays one machine."""
        return 0

    def _check(self, node: str) -> None:
        if node != self._node:
            raise LookupError(f"There is no node {node!r} here; this machine is {self._node!r}.")
