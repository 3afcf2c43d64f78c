"""The machines of a pool in words: how they are, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpu_backend.wire.views import NodeView, SessionView
from workbench.finding import Finding, State

#: A clock that is off by more is told, seconds: what is written down of sessions and use bears a machine's time.
_CLOCK_SECONDS = 5.0
_NOBODY_PLACED = "No session is placed there until it is heard again."


def state_in_words(node: NodeView) -> str:
    """Return how a machine is."""
    if node.state == "draining":
        return "takes no new sessions"
    if node.state in ("silent", "lost"):
        return f"{node.state}, not heard for {node.silent_seconds:.0f} s"
    return node.state


def places_in_words(session: SessionView) -> str:
    """Return where a session is: its node, and the numbers of its devices."""
    return f"{session.node}/{','.join(map(str, (session.device, *session.others)))}"


def clock_in_words(node: NodeView) -> str:
    """Return how far a machine's clock is off, if it is to be told."""
    if abs(node.ahead_seconds) <= _CLOCK_SECONDS:
        return ""
    return f"{abs(node.ahead_seconds):.0f} s {'ahead of' if node.ahead_seconds > 0 else 'behind'}"


def findings(nodes: Sequence[NodeView], version: str) -> Iterator[Finding]:
    """Tell what is wrong with the machines of a pool, whose gateway has that version."""
    for node in nodes:
        name = f"node {node.name}"
        if node.state == "down":
            yield Finding(
                name, State.NOTE, "its operator took it down", f"`workbench node up` on {node.name} brings it back."
            )
        if node.state in ("silent", "lost", "never heard"):
            remedy = (
                f"{_NOBODY_PLACED} Its operator looks on {node.name} whether it is up (`workbench node up`) and "
                "reaches the pool's head."
            )
            yield Finding(name, State.NOTE, state_in_words(node), remedy)
        if node.version and node.version != version:
            yield Finding(
                name,
                State.NOTE,
                f"it runs version {node.version}, the pool's head {version}",
                f"The pool's operator installs the same version on both, and runs `workbench node up` on {node.name}, "
                "`workbench pool reload` on the head.",
            )
        if clock_in_words(node):
            yield Finding(
                name,
                State.NOTE,
                f"its clock is {clock_in_words(node)} the head's",
                "Have both machines keep their time by NTP (`timedatectl set-ntp true`).",
            )
