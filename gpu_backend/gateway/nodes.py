"""The nodes as the gateway sees them: how to reach each agent, and what it last reported."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic, time
from typing import NamedTuple

import zmq.asyncio

from gpu_backend.gateway.changes import Changes
from gpu_backend.gateway.loads import DeviceLoad
from gpu_backend.transport.sockets import send_now
from gpu_backend.wire.codec import encode
from gpu_backend.wire.control import NodeReport, ToAgent
from gpu_backend.wire.devices import DeviceReport

log = logging.getLogger("gateway.nodes")


class Said(NamedTuple):
    """What a node last said of itself."""

    version: str = ""
    #: How far its clock is ahead of ours.
    ahead_seconds: float = 0.0
    devices: int = 0


@dataclass(frozen=True, slots=True)
class _Link:
    route: bytes
    report: NodeReport
    heard_at: float
    said: Said


class Nodes:
    """Knows each node's last report and the way to its agent. A node that falls silent is left out of `devices`."""

    def __init__(
        self,
        socket: zmq.asyncio.Socket,
        silence_seconds: float,
        capacity: int,
        changes: Changes | None = None,
        drained: Callable[[], frozenset[str]] = frozenset,
        members: Callable[[str], frozenset[str]] = lambda _: frozenset(),
    ) -> None:
        """Speak to agents through ``socket``; tell ``changes`` when there are other devices than before.

        ``drained`` says which nodes take no new sessions, ``members`` which users come to devices that serve a group.
        """
        self._socket = socket
        self._changes = changes or Changes()
        self._silence_seconds = silence_seconds
        self._capacity = capacity
        self._drained = drained
        self._members = members
        self._links: dict[str, _Link] = {}
        #: The agents of machines that were taken down, by their ways: they may report until they have ended.
        self._left: dict[str, bytes] = {}
        #: Every report of any node, as it comes.
        self.reports = Changes()

    def note(self, node: str, route: bytes, report: NodeReport) -> None:
        """Take in a report. Orders go to where the last one came from: a restarted agent has another route."""
        self._left.pop(node, None)
        before = self._links.get(node)
        is_news = before is None or before.report.devices != report.devices or node not in self.names()
        ahead = report.clock - time() if report.clock else 0.0
        said = Said(report.version, ahead, len(report.devices))
        self._links[node] = _Link(route, report, monotonic(), said)
        if is_news:
            self._changes.tell()
        self.reports.tell()

    def forget(self, node: str) -> None:
        """The node is gone."""
        self._links.pop(node, None)

    def leave(self, node: str) -> None:
        """The node is taken down: what its present agent still reports counts no more, what another one says does."""
        link = self._links.pop(node, None)
        if link is not None:
            self._left[node] = link.route
            self._changes.tell()

    def has_left(self, node: str, route: bytes | None = None) -> bool:
        """Tell whether a node was taken down; with a ``route``, whether it is the agent there that was."""
        return node in self._left and route in (None, self._left[node])

    def send(self, node: str, order: ToAgent) -> bool:
        """Give an order; tell whether there was a way to the agent. Lost orders are given again after its reports.

        One that cannot be said counts as given: it could not be said the next time either, and the log has why.
        """
        link = self._links.get(node)
        if link is None:
            return False
        try:
            frames = encode(order)
        except (OverflowError, TypeError, ValueError):
            log.exception("an order for %s cannot be said", node)
            return True
        return send_now(self._socket, [link.route, *frames])

    def route(self, node: str) -> bytes:
        """Return the way to the agent of ``node``; another one once the agent was restarted."""
        link = self._links.get(node)
        return link.route if link is not None else b""

    def all(self) -> list[str]:
        """Return the nodes that were heard and not forgotten, be they reachable now or not."""
        return list(self._links)

    def heard_at(self, node: str, otherwise: float) -> float:
        """Return when a node was last heard (monotonic), or what is to be said of one that never was."""
        link = self._links.get(node)
        return link.heard_at if link is not None else otherwise

    def said(self, node: str) -> Said:
        """Return what a node last said of itself."""
        link = self._links.get(node)
        return link.said if link is not None else Said()

    def takes_sessions(self, node: str) -> bool:
        """Tell whether new sessions can go to a node: it can be reached, and is not being drained."""
        return node in self.names() and node not in self._drained()

    def names(self, silence_seconds: float | None = None) -> list[str]:
        """Return the nodes that can be reached now; or those that were silent for no longer than so many seconds."""
        horizon = monotonic() - (self._silence_seconds if silence_seconds is None else silence_seconds)
        return [node for node, link in self._links.items() if link.heard_at >= horizon]

    def devices(self, silence_seconds: float | None = None) -> list[DeviceLoad]:
        """Return the devices of `names`, as if nobody used them."""
        drained = self._drained()
        return [
            DeviceLoad(
                node,
                d.ordinal,
                d.kind,
                d.name,
                d.total_bytes,
                self._capacity,
                warm=d.warm,
                policy=d.policy,
                wall=d.wall,
                unseen=d.unseen,
                island=f"{node}/{d.island}" if d.island else "",
                is_part=d.is_part,
                drained=node if node in drained else f"{node}/{d.kind}{d.ordinal}" if d.is_withheld else "",
                group=d.group,
                members=self._members(d.group) if d.group else None,
                space=d.space,
                ailment=d.ailment,
            )
            for node in self.names(silence_seconds)
            for d in self._reported(node)
        ]

    def device(self, node: str, ordinal: int) -> DeviceReport | None:
        """Return what a node last said about one device, reachable or not."""
        if node not in self._links:
            return None
        return next((device for device in self._reported(node) if device.ordinal == ordinal), None)

    def processes(self, nodes: Sequence[str]) -> int:
        """Return how many executor processes those of ``nodes`` that can be reached still have."""
        return sum(self._links[node].report.processes for node in self.names() if node in nodes)

    def _reported(self, node: str) -> Sequence[DeviceReport]:
        return self._links[node].report.devices
