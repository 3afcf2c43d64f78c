"""The engine seam: which nodes there are, and one agent on each of them. Nothing about sessions, arrays or policies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class NodeChange(StrEnum):
    """What can happen to a node."""

    JOINED = "joined"  #: it can have an agent now
    LOST = "lost"  #: it is gone, and every process on it
    AGENT_STARTED = "agent_started"  #: its agent was started, or started again after it had ended


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """A change to one node. ``detail`` is for people."""

    node: str
    change: NodeChange
    detail: str = ""


class Engine(Protocol):
    """Knows the nodes of the pool and keeps an agent on each.

    An engine starts and restarts agents; it never touches executors, which must outlive their agent. One conformance
    suite, ``tests/conformance/test_engine.py``, runs over all engines.
    """

    async def nodes(self) -> tuple[str, ...]:
        """Return the names of the nodes that are there now."""

    def watch(self) -> AsyncIterator[NodeEvent]:
        """Yield what happens to nodes, in order and each thing at least once, beginning with those that are there.

        Called once by the gateway and iterated for as long as it lives. Agents are kept (restarted when they end)
        while somebody iterates.
        """

    async def ensure_agent(self, node: str) -> None:
        """Have exactly one agent run on ``node``: adopt the one that does, or start one. Idempotent.

        Called by the gateway for each node that joined.

        Raises
        ------
        LookupError
            If there is no such node.
        """

    async def stop_agent(self, node: str) -> None:
        """End the agent on ``node`` and keep it no longer; its executors run on. Idempotent.

        Called when the pool goes down, after the executors were ended.

        Raises
        ------
        LookupError
            If there is no such node.
        """

    async def ask_capacity(self, devices: int) -> int:
        """Ask for nodes with so many devices in all; return how many nodes are expected to come of it.

        Called when admission had to say "full". They join, if at all, through `watch`.
        """
