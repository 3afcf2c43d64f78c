"""``python -m gpu_backend.pool.ray_node``: make this node of a Ray cluster ready for its agent.

Run by the keeper that Ray has on the node. Reads the node's name, its address and what the pool's head tells it as a
JSON list from standard input, and prints a `Prepared`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from gpu_backend.engine.ray_words import Prepared
from gpu_backend.node.settings import NodeSettings
from gpu_backend.pool import joined
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.own_root import default_root
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.setup import agent_command, agent_settings
from gpu_backend.pool.state import PoolState, at
from gpu_backend.transport import curve
from gpu_backend.wire.errors import PoolError, PoolRefusal, quoted

#: Names the state directory of a machine whose part of Ray was started by ``workbench``.
STATE = "GPU_WORKBENCH_RAY_STATE"


class Told(msgspec.Struct, frozen=True):
    """What the pool's head tells its nodes: where it hears agents, its public key (Z85), and settings."""

    gateway: str
    gateway_key: str
    settings: dict[str, Any]


def of_machines(settings: PoolSettings) -> dict[str, Any]:
    """Return of a pool's settings those that hold for a machine with none of its own."""
    return settings.model_dump(mode="json", include=set(joined.OF_A_NODE))


def main() -> None:
    """Make the node ready. What is wrong is one line on standard error."""
    os.umask(0o077)
    node, address, words = msgspec.json.decode(sys.stdin.buffer.read(), type=tuple[str, str, str])
    told = msgspec.json.decode(words, type=Told)
    try:
        prepared = prepare(_root(node), node, address, told)
    except (PoolError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(1) from None
    sys.stdout.buffer.write(msgspec.json.encode(prepared))


def prepare(root: Path, node: str, address: str, told: Told) -> Prepared:
    """Make everything that the agent of ``node`` expects to find, with its things in ``root``.

    Raises
    ------
    PoolRefusal
        If a setting is wrong.
    """
    state = at(root)
    state.make()
    public = curve.load_or_generate(state.agent_key).public.decode()
    is_new = joined.tell(state, _instructions(state, node, address, told))
    log_file = str(state.logs / "agent.log")
    return Prepared(agent_command(state), str(state.node), log_file, public, is_new)


def _instructions(state: PoolState, node: str, address: str, told: Told) -> NodeSettings:
    if joined.has_joined(state):
        return joined.instructions(state, joined.read_settings(state))
    settings = pool_settings.made_of(told.settings)
    if not state.settings_file.exists():  # else this is the head, whose own address they say
        settings = settings.model_copy(update={"executor_host": address, "advertise_host": ""})
    return agent_settings(state, settings, node, told.gateway, told.gateway_key)


def _root(node: str) -> Path:
    """Return where this node has its things: several of one cluster may share a home."""
    if own := os.environ.get(STATE):
        return Path(own)
    if not joined.NAME.fullmatch(node):
        raise PoolRefusal(f"{quoted(node)} is no name of a machine: start its Ray with another --node-name.")
    return default_root().with_name("ray") / node


if __name__ == "__main__":
    main()
