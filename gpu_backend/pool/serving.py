"""The gateway's process, put together from a pool's state directory."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import fields
from time import time

from gpu_backend.arbiter.policies import registry
from gpu_backend.engine.base import Engine
from gpu_backend.engine.detached import ProcessId, write_identity
from gpu_backend.engine.limits import take_all_descriptors
from gpu_backend.engine.local import LocalEngine
from gpu_backend.gateway.accounts import Accounts
from gpu_backend.gateway.directory import Directory
from gpu_backend.gateway.entitlements import Entitlements, Holder, Quota, Rights
from gpu_backend.gateway.service import Gateway
from gpu_backend.gateway.settings import GatewaySettings
from gpu_backend.pool import clusters
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.setup import agent_command, node_name
from gpu_backend.pool.state import PoolState
from gpu_backend.transport import curve
from gpu_backend.wire.version import of_software


def serve(state: PoolState, settings: PoolSettings) -> None:
    """Be the gateway of the pool until a signal, or an operator, ends it."""
    write_identity(state.process_file("gateway"), ProcessId.mine())
    take_all_descriptors()  # each connection takes some, see `forecourt`
    asyncio.run(_serve(state, settings))


async def _serve(state: PoolState, settings: PoolSettings) -> None:
    directory = Directory(state.directory_file)
    engine = _engine(state, settings, directory)
    accounts = Accounts(state.accounts_file)
    wanted = gateway_settings(state, settings)
    gateway = Gateway(wanted, curve.load(state.gateway_key), directory, accounts, engine)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, gateway.stop)
    try:
        await gateway.run()
    finally:
        directory.close()
        accounts.close()
    if gateway.was_stopped_by_operator:
        state.stopped_note.touch()  # tells the supervisor not to start another


def _engine(state: PoolState, settings: PoolSettings, directory: Directory) -> Engine:
    if settings.engine == "local":
        return LocalEngine(node_name(state), agent_command(state), state.node, state.logs / "agent.log")

    def admit(node: str, public: str) -> None:
        """Let a node's agent in. Those of the pool's own cluster were invited; another's are members by being in it."""
        is_free = directory.holder_of(public) in ("", f"node {node}")  # no key is registered at two doors
        if settings.ray_address and is_free and directory.node_of(public) != node:
            directory.set_node(node, public, time())

    return clusters.engine(state, settings, admit)


def gateway_settings(state: PoolState, settings: PoolSettings) -> GatewaySettings:
    """Return what the gateway is told."""
    endpoints = [state.client_endpoint]
    if settings.listen_host:
        endpoints.append(f"tcp://{settings.listen_host}:{settings.listen_port}")
    agents = [state.agent_endpoint]
    if settings.nodes_host:
        agents.append(f"tcp://{settings.nodes_host}:{settings.nodes_port}")
    return GatewaySettings(
        pool=settings.name,
        version=of_software(),
        client_endpoints=tuple(endpoints),
        agent_endpoints=tuple(agents),
        defaults=defaults(settings),
        sessions_per_device=settings.sessions_per_device,
        default_memory_bytes=settings.default_memory_bytes,
        lease_seconds=settings.lease_seconds,
        node_lost_seconds=settings.node_lost_seconds,
        stop_seconds=settings.stop_seconds + 5.0,
        metrics_port=settings.metrics_port,
        metrics_by_user=settings.metrics_users == "named",
        needs_walls=settings.sandbox == "required",
        gives_several_gpus=settings.several_gpus != "refused",
        closes_over_quota=settings.over_quota == "close",
        steered_policies=registry.steered(),
        placement=settings.placement,
        cluster=clusters.as_told(state, settings),
    )


def defaults(settings: PoolSettings) -> Entitlements:
    """Return what holds for users and groups for whom nothing else is set."""
    rights = {one.name: getattr(settings, one.name) for one in fields(Rights)}
    return Entitlements(_quota(settings, "user"), _quota(settings, "group"), Rights(**rights))


def _quota(settings: PoolSettings, holder: Holder) -> Quota:
    return Quota(
        sessions=getattr(settings, f"max_sessions_per_{holder}"),
        memory_bytes=getattr(settings, f"max_memory_bytes_per_{holder}"),
        gpu_seconds_per_day=getattr(settings, f"max_gpu_seconds_per_{holder}_and_day"),
        gpu_seconds_per_week=getattr(settings, f"max_gpu_seconds_per_{holder}_and_week"),
        gpu_seconds_per_month=getattr(settings, f"max_gpu_seconds_per_{holder}_and_month"),
    )
