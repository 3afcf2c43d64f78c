"""What an engine and its Ray driver tell each other: JSON, one message a line, over the pipes between them."""

from __future__ import annotations

from typing import Literal

import msgspec


class Keep(msgspec.Struct, frozen=True, tag=True):
    """Have an agent run on ``node`` from now on; whoever prepares it there is ``told`` this."""

    node: str
    told: str


class Stop(msgspec.Struct, frozen=True, tag=True):
    """End the agent of ``node`` and keep it no longer."""

    node: str


class Nodes(msgspec.Struct, frozen=True, tag=True):
    """The nodes that are alive, with their addresses, and why those that were before are not."""

    addresses: dict[str, str]
    causes: dict[str, str] = {}


class Kept(msgspec.Struct, frozen=True, tag=True):
    """``agent`` (empty if it has just ended) runs on ``node``, and shows the gateway the public ``key``."""

    node: str
    agent: str
    key: str


class Unkept(msgspec.Struct, frozen=True, tag=True):
    """There is no agent on ``node`` yet; it is tried again."""

    node: str
    problem: str


class Stopped(msgspec.Struct, frozen=True, tag=True):
    """The agent of ``node`` has ended, or could not be reached."""

    node: str
    problem: str = ""


ToDriver = Keep | Stop
FromDriver = Nodes | Kept | Unkept | Stopped


class Looked(msgspec.Struct, frozen=True):
    """What came of looking at a cluster: a problem with its ``detail``, or the versions that its nodes must have."""

    problem: Literal["", "shut", "token", "silent"] = ""
    detail: str = ""
    ray: str = ""
    python: str = ""


class Prepared(msgspec.Struct, frozen=True):
    """What a node says when it was prepared for its agent."""

    command: list[str]
    #: Where the agent runs and is noted.
    directory: str
    log_file: str
    #: The public key that the agent shows.
    key: str
    #: Whether an agent that runs already was told something else.
    is_new: bool = False
