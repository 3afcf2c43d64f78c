"""Which machines belong to the pool, which of them are there, and how one becomes a member.

The gateway's own machine is kept by its engine. The others were invited, joined with a key of their own, and are kept
by whoever runs them: nobody but their agents tells of them, so one that is not heard for long is taken for lost.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from time import monotonic, time

from msgspec.structs import replace

from gpu_backend.gateway.directory import Directory, Node
from gpu_backend.gateway.nodes import Nodes
from gpu_backend.gateway.settings import GatewaySettings
from gpu_backend.lifecycle.states import PLACED, Session
from gpu_backend.transport.curve import is_public_key
from gpu_backend.wire.clusters import Cluster
from gpu_backend.wire.control import Denied
from gpu_backend.wire.errors import RefusalCode
from gpu_backend.wire.joining import AskCluster, AskNode, Join, Leave
from gpu_backend.wire.views import Membership, NodeView

_USED_UP = "The invitation was used already, by another machine or with another key."
_TAKEN = "This is no key, or one that is known already: another node's, a user's, or that of an invitation."
_ROOM = "Ask the pool's operator to make room on the disk that holds its records."
_ANOTHER = "Ask the pool's operator for another one: `workbench node invite`."


class Members:
    """The machines of the pool, by its records and by what is heard of them."""

    def __init__(self, settings: GatewaySettings, directory: Directory, nodes: Nodes) -> None:
        self._settings = settings
        self._directory = directory
        self._nodes = nodes
        self._since = monotonic()

    # --- becoming one, and being one ----------------------------------------------------------------------------------

    def join(self, key: str, message: Join) -> Membership | Denied:
        """Let the machine that shows an invitation's ``key`` be the node that was invited."""
        node = self._directory.invited(key, time())
        if node is None:
            return Denied(message.request, RefusalCode.NOT_AUTHORIZED, "This key is no invitation.", _ANOTHER)
        if not self._is_its_own(node, message.public):
            return Denied(message.request, RefusalCode.NOT_AUTHORIZED, _TAKEN, "Join with a key made for it.")
        try:
            with self._directory.together():
                if not self._directory.use_invitation(key, message.public):
                    return Denied(message.request, RefusalCode.NOT_AUTHORIZED, _USED_UP, _ANOTHER)
                self._directory.set_node(node, message.public, time())
        except sqlite3.Error as error:  # a full disk, say
            return Denied(message.request, RefusalCode.LAUNCH_FAILED, f"The pool cannot record it: {error}.", _ROOM)
        return self._membership(message.request, node, ())

    def _is_its_own(self, node: str, public: str) -> bool:
        """Tell whether ``public`` can be the key of ``node``: nobody else's, and no invitation's, which others know."""
        return is_public_key(public) and self._directory.holder_of(public) in ("", f"node {node}")

    def ask(
        self, node: str, message: AskNode | AskCluster | Leave, sessions: Iterable[Session]
    ) -> Membership | Cluster:
        """Tell a node how the pool sees it, or where the pool's Ray cluster is."""
        if isinstance(message, AskCluster):
            return replace(self._settings.cluster, request=message.request)
        return self._membership(message.request, node, sessions)

    def _membership(self, request: int, node: str, sessions: Iterable[Session]) -> Membership:
        view = next(one for one in self.views(sessions) if one.name == node)
        return Membership(request, self._settings.pool, self._settings.version, view, self._settings.engine)

    # --- who is there -------------------------------------------------------------------------------------------------

    def gone(self, sessions: Iterable[Session]) -> Iterator[tuple[str, str]]:
        """Yield the nodes that have sessions and are given up, each with the reason in words."""
        known = {node.name: node for node in self._directory.nodes()}
        for name in sorted({session.node for session in sessions if session.state in PLACED}):
            if name not in known:
                yield name, f"The node {name} was removed from the pool by its operator."
            elif known[name].joined_at is not None and self._is_lost(name):
                yield name, f"The node {name} was lost: nothing was heard of it for {self._silence(name):.0f} s."

    def removed(self) -> set[str]:
        """Return the nodes that were heard once and are members no more."""
        return set(self._nodes.all()) - {node.name for node in self._directory.nodes()}

    def views(self, sessions: Iterable[Session]) -> tuple[NodeView, ...]:
        """Return every machine as people see it."""
        placed = Counter(session.node for session in sessions if session.state in PLACED)
        return tuple(self._view(node, placed[node.name]) for node in self._directory.nodes())

    def _view(self, node: Node, sessions: int) -> NodeView:
        said = self._nodes.said(node.name)
        return NodeView(
            node.name, self._state(node), said.version, said.ahead_seconds, self._silence(node.name), said.devices,
            sessions,
        )  # fmt: skip

    def _state(self, node: Node) -> str:
        if node.name in self._nodes.names():
            return "up" if node.drained_at is None else "draining"
        if self._nodes.has_left(node.name):
            return "down"
        if node.joined_at is not None and self._is_lost(node.name):
            return "lost" if node.name in self._nodes.all() else "never heard"
        return "silent"

    def _is_lost(self, name: str) -> bool:
        return self._silence(name) > self._settings.node_lost_seconds

    def _silence(self, name: str) -> float:
        """Return for how long a node was not heard, as far as this gateway can tell."""
        return monotonic() - self._nodes.heard_at(name, self._since)
