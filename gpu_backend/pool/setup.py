"""A pool's state directory made ready: settings, keys, records, the agent's instructions."""

from __future__ import annotations

import getpass
import os
import sys
from contextlib import closing
from pathlib import Path
from time import time

import msgspec

from gpu_backend.gateway.database import told_of
from gpu_backend.gateway.directory import Directory
from gpu_backend.node import settings as node_settings
from gpu_backend.node.mps_files import MpsSharing
from gpu_backend.node.settings import NodeSettings
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.hearing import refuse_unnamed
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState, alone
from gpu_backend.transport import curve
from gpu_backend.transport.private_files import write_private


def prepare(state: PoolState, settings: PoolSettings) -> None:
    """Make or complete everything that the pool's processes expect to find. Idempotent."""
    state.make()
    with alone(state.keys):  # two would make two keys
        _prepare(state, settings)


def _prepare(state: PoolState, settings: PoolSettings) -> None:
    if not state.settings_file.exists():
        write_private(state.settings_file, pool_settings.render(settings).encode())
    gateway = curve.load_or_generate(state.gateway_key)
    agent = curve.load_or_generate(state.agent_key)
    operator = curve.load_or_generate(state.operator_key)
    name = node_name(state)
    if settings.engine == "local":  # else whoever keeps the agent prepares it
        node = agent_settings(state, settings, name, state.agent_endpoint, gateway.public.decode())
        write_private(state.node / node_settings.CONFIG, msgspec.json.encode(node))
    with closing(Directory(state.directory_file)) as directory, told_of(state.directory_file):
        if not settings.ray_address and directory.node_of(agent.public.decode()) != name:
            directory.set_node(name, agent.public.decode())
        if directory.user_of(operator.public.decode()) is None:
            name = user_name()
            directory.add_user(name, True, time())
            directory.add_key(operator.public.decode(), name, "made with the pool", time())


def user_name() -> str:
    """Return the name of whoever runs this."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return f"uid{os.geteuid()}"


def agent_command(state: PoolState) -> list[str]:
    """Return what runs the agent of the machine whose state that is."""
    return [sys.executable, "-m", "gpu_backend.node", "--state", str(state.node)]


def agent_settings(state: PoolState, settings: PoolSettings, node: str, gateway: str, gateway_key: str) -> NodeSettings:
    """Return what the agent of ``node`` is told, whose gateway has that endpoint and that public key (Z85)."""
    refuse_unnamed(settings)
    default = NodeSettings(
        node=node,
        gateway=gateway,
        gateway_key=gateway_key,
        key_file=str(state.agent_key),
        runtime_dir=str(state.runtime),
        log_dir=str(state.logs),
        cache_dir=str(cache_dir()),
        devices=settings.devices,
        cpu_devices=settings.cpu_devices,
        withheld_devices=settings.withheld_devices,
        passes=settings.passes,
        kept_bytes=settings.kept_upload_bytes_per_session,
        policy=settings.policy,
        device_policies=settings.device_policies,
        mps_devices={n: MpsSharing(**one.model_dump()) for n, one in settings.devices_shared_by_mps.items()},
        warm_count=settings.warm_executors_per_device,
        bind_host=settings.executor_host or settings.listen_host or "127.0.0.1",
        advertise_host=settings.advertise_host,
        executor_ports=pool_settings.port_range(settings.executor_ports),
        orphan_seconds=settings.orphan_seconds,
        overrun_seconds=settings.overrun_seconds,
        start_seconds=settings.start_seconds,
        stop_seconds=settings.stop_seconds,
        private=(str(state.root), str(state.runtime)),
        has_walls=settings.sandbox == "required",
        sandbox_reads=settings.sandbox_reads,
        gives_several_gpus=settings.several_gpus != "refused",
    )
    command = settings.executor_command
    return msgspec.structs.replace(default, executor_command=command) if command else default


def node_name(state: PoolState) -> str:
    """Return what the pool's own machine is called in it."""
    # The first name stays: sessions on record are known by it, whatever the machine is called later, and whichever
    # version wrote the rest.
    return node_settings.name_in(state.node) or os.uname().nodename


def cache_dir() -> Path:
    """Return where compiled kernels are kept."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "gpu-workbench" / "kernels"
