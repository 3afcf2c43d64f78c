"""What a machine that has joined a pool knows of it and of itself: files in its state directory."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from gpu_backend.node.settings import CONFIG, NodeSettings
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.hearing import refuse_unheard
from gpu_backend.pool.own_root import default_root
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.setup import agent_settings
from gpu_backend.pool.state import PoolState
from gpu_backend.transport.private_files import write_private
from gpu_backend.wire.errors import PoolRefusal, PoolUnreachable

#: The settings of a pool that each of its machines has for itself; `join` writes them down.
OF_A_NODE = (
    "executor_host", "executor_ports", "advertise_host", "devices", "cpu_devices", "withheld_devices", "policy",
    "device_policies", "devices_shared_by_mps", "warm_executors_per_device", "orphan_seconds", "overrun_seconds",
    "stop_seconds", "passes", "kept_upload_bytes_per_session", "start_seconds", "sandbox", "sandbox_reads",
    "several_gpus", "executor_command", "ray_certificates",
)  # fmt: skip
#: What names of machines look like: they stand in command lines, and before a slash.
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,59}", re.ASCII)
_EVERYWHERE = ("0.0.0.0", "*", "::")


class Joined(msgspec.Struct, frozen=True):
    """Which pool this machine has joined, as which node: the file ``joined.json``."""

    node: str
    pool: str
    gateway: str
    server_key: str
    #: What keeps the pool's machines together, "local" or "ray".
    engine: str = "local"


def default_node_root() -> Path:
    """Return where a machine that has joined a pool keeps its state."""
    return default_root().with_name("node")


def settings_file(state: PoolState) -> Path:
    """Return where the settings of this machine as a node are."""
    return state.root / "node.toml"


def membership(state: PoolState) -> Joined:
    """Return which pool this machine has joined.

    Raises
    ------
    PoolUnreachable
        If it has joined none.
    """
    try:
        return msgspec.json.decode((state.root / "joined.json").read_bytes(), type=Joined)
    except (OSError, msgspec.DecodeError):
        raise PoolUnreachable(
            f"This machine has joined no pool (there is no record in {state.root}). Run `workbench node invite NAME` "
            "on the pool's head, and here what that says."
        ) from None


def has_joined(state: PoolState) -> bool:
    """Tell whether this machine has joined a pool."""
    return (state.root / "joined.json").exists()


def read_settings(state: PoolState) -> PoolSettings:
    """Return the settings of this machine, which has joined a pool, and make its directories.

    Raises
    ------
    PoolRefusal
        If they are not right.
    PoolUnreachable
        If it has joined none.
    """
    membership(state)  # says that there is none
    settings = pool_settings.read(settings_file(state), OF_A_NODE)
    refuse_unheard_here(settings)
    state.make()
    return settings


def instructions(state: PoolState, settings: PoolSettings) -> NodeSettings:
    """Return what the agent of this machine is told, which has joined a pool."""
    known = membership(state)
    return agent_settings(state, settings, known.node, known.gateway, known.server_key)


def tell(state: PoolState, told: NodeSettings) -> bool:
    """Write down what the agent is told; tell whether that is something else than before."""
    encoded = msgspec.json.encode(told)
    try:
        before = (state.node / CONFIG).read_bytes()
    except OSError:
        before = b""
    write_private(state.node / CONFIG, encoded)
    return before != encoded


def refuse_unheard_here(settings: PoolSettings) -> None:
    """Go on only if notebooks can reach the sessions of this machine.

    Raises
    ------
    PoolRefusal
        If they cannot; the message says what to say.
    """
    if not settings.executor_host:
        raise PoolRefusal(
            "Notebooks reach the sessions of this machine directly: say at which of its addresses, with --listen HOST."
        )
    if settings.executor_host in _EVERYWHERE and not settings.advertise_host:
        raise PoolRefusal(
            f"With {settings.executor_host!r}, notebooks must be told a name of this machine: add --advertise HOST."
        )
    refuse_unheard(settings, with_port=False)
