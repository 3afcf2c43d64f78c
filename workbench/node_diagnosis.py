"""What ``workbench doctor`` looks at on a machine that has joined a pool, as one of its nodes."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_backend.engine.detached import read_identity
from gpu_backend.pool import joined, joining
from gpu_backend.pool.state import PoolState, at
from gpu_backend.wire.errors import PoolError, PoolUnreachable
from workbench import cluster_diagnosis, nodes
from workbench.finding import Finding, State
from workbench.reachability import try_port

_SUBJECT = "this machine as a node"
_FIREWALL = "Let this machine reach `nodes_port` of the pool's head, which is in its pool.toml."


def findings(state: PoolState | None = None) -> Iterator[Finding]:
    """Check this machine's way to its pool's head, if it has joined a pool; else there is nothing to say."""
    state = state or at(joined.default_node_root())
    try:
        known = joined.membership(state)
    except PoolUnreachable:
        return
    port = try_port(known.gateway, "the pool", _FIREWALL)
    if port.problem:
        yield Finding("head's port", State.PROBLEM, port.problem, port.remedy)
        return
    yield Finding("head's port", State.OK, f"{port.place} is open from here")
    try:
        member = joining.seen(state)
    except PoolError as error:
        yield Finding(_SUBJECT, State.PROBLEM, str(error))
        return
    if read_identity(state.process_file("supervisor")) is None:
        found = f"{known.node} of {known.pool}, and it is down"
        yield Finding(_SUBJECT, State.PROBLEM, found, "Run `workbench node up`.")
    else:
        yield Finding(_SUBJECT, State.OK, f"{known.node} of {known.pool}: {nodes.state_in_words(member.node)}")
    if known.engine == "ray":
        yield from cluster_diagnosis.of_node(state)
    yield from nodes.findings([member.node], member.version)
