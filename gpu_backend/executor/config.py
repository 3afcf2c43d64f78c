"""What an agent tells an executor before it starts: the file ``config.json`` in the executor's own directory."""

from __future__ import annotations

from pathlib import Path

import msgspec


class ExecutorConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one executor, fixed for its life."""

    #: "cuda" or "cpu".
    device_kind: str
    #: Which device of that kind.
    ordinal: int = 0
    #: Address of this node on which notebooks of other hosts can reach it.
    bind_host: str = "127.0.0.1"
    #: The agent's public CURVE key (Z85): only its holder may give orders.
    agent_key: str
    #: Most device memory that may be held before a session says otherwise; 0 for no limit.
    memory_limit_bytes: int = 0
    #: File of the page between this executor and its device's arbiter; empty where there is none.
    gate: str = ""
    #: Socket file on which the arbiter is woken; empty if the device has no arbiter, so that its gate is always open.
    arbiter_bell: str = ""
    #: Without a word from the agent for this long the executor ends.
    orphan_seconds: float = 120.0
    #: Where compiled kernels are kept.
    cache_dir: str = ""
    #: Most ops that a notebook may have under way.
    credit_ops: int = 16_384
    #: Most bytes of uploads that a notebook may have under way.
    credit_bytes: int = 256 << 20


def read(directory: Path) -> ExecutorConfig:
    """Return the configuration in ``directory``.

    Raises
    ------
    msgspec.ValidationError
        If the file does not fit.
    """
    return msgspec.json.decode((directory / "config.json").read_bytes(), type=ExecutorConfig)
