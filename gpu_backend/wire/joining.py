"""The messages of machines that join a pool, at the agents' door: who one is, its key has said before."""

from __future__ import annotations

import msgspec

from gpu_backend.wire.control import FromAgent, ToGateway


class Join(msgspec.Struct, frozen=True, array_like=True, tag="join"):
    """With an invitation's key: let ``public`` (Z85) speak for the node that was invited, from now on.

    Answered by ``Membership`` or ``Denied``. Idempotent for the same ``public``; for another the invitation is used up.
    """

    request: int
    public: str


class AskNode(msgspec.Struct, frozen=True, array_like=True, tag="ask_node"):
    """With a node's key: how do you see me? Answered by ``Membership``."""

    request: int


class AskCluster(msgspec.Struct, frozen=True, array_like=True, tag="ask_cluster"):
    """With a node's key: where is the pool's Ray cluster, and what lets me in? Answered by ``Cluster``."""

    request: int


class Leave(msgspec.Struct, frozen=True, array_like=True, tag="leave"):
    """With a node's key: my operator takes this machine down now. Answered by ``Membership``. Idempotent.

    Its sessions are lost, and no more come until an agent is heard that was started since.
    """

    request: int


#: What is heard at the agents' door.
AtAgentsDoor = FromAgent | Join | AskNode | AskCluster | Leave
#: What is asked of a gateway and has one answer.
Question = ToGateway | Join | AskNode | AskCluster | Leave
