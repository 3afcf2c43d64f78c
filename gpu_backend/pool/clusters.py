"""The Ray cluster of a pool: its head where the pool starts one, its nodes, and what stands in the way of either."""

from __future__ import annotations

import importlib.metadata
import platform
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from gpu_backend.engine.detached import end_all
from gpu_backend.engine.kept_process import KeptProcess
from gpu_backend.engine.ray import RayEngine
from gpu_backend.engine.ray_cluster import CERTIFICATES, RayCluster, make_token, need_ray
from gpu_backend.engine.ray_words import Looked
from gpu_backend.pool import running
from gpu_backend.pool.ray_node import STATE, Told, of_machines
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.setup import node_name
from gpu_backend.pool.state import PoolState
from gpu_backend.transport import curve
from gpu_backend.transport.private_files import write_private
from gpu_backend.wire.clusters import Cluster
from gpu_backend.wire.errors import PoolRefusal

_EVERYWHERE = ("", "0.0.0.0", "*", "::")


class Trouble(NamedTuple):
    """What stands between this machine and a Ray cluster, and what to do about it."""

    found: str
    remedy: str


# --- on the head ------------------------------------------------------------------------------------------------------


def of_head(state: PoolState, settings: PoolSettings) -> RayCluster:
    """Return the cluster of the pool of ``state``: its own, or the one that it is to use."""
    certificates = Path(settings.ray_certificates).expanduser() if settings.ray_certificates else None
    if settings.ray_address:
        return RayCluster(settings.ray_address, Path(settings.ray_token_file).expanduser(), certificates)
    return RayCluster(f"{settings.nodes_host}:{settings.ray_port}", state.ray_token, certificates)


def engine(state: PoolState, settings: PoolSettings, admit: Callable[[str, str], None]) -> RayEngine:
    """Return the engine for the pool's gateway; ``admit`` is told of each node's public key."""
    gateway = f"tcp://{settings.advertise_host or settings.nodes_host}:{settings.nodes_port}"
    told = Told(gateway, curve.load(state.gateway_key).public.decode(), of_machines(settings))
    prepare = ("-m", "gpu_backend.pool.ray_node")
    return RayEngine(of_head(state, settings), prepare, msgspec.json.encode(told).decode(), _log(state), admit)


def head_process(state: PoolState, settings: PoolSettings) -> KeptProcess:
    """Return the pool's own Ray head, to be kept. Its records are found again by the next one of the same version."""
    cluster = of_head(state, settings)
    make_token(cluster.token_file)
    store = state.root / "ray" / importlib.metadata.version("ray")
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = cluster.head_command(node_name(state), state.ray)
    return _kept(state, command, cluster.head_environment(store))


def refuse_unusable(state: PoolState, settings: PoolSettings) -> None:
    """Go on only if the pool can have the engine that it is to have.

    Raises
    ------
    PoolRefusal
        If it cannot; the message says what to do.
    """
    if settings.engine == "local":
        if settings.ray_address:
            raise PoolRefusal("A Ray cluster (ray_address) is used by the engine 'ray' alone: add --engine ray.")
        return
    need_ray()
    if settings.nodes_host in _EVERYWHERE:
        raise PoolRefusal(
            "With the engine 'ray' the pool's machines meet at one address of this machine, on a network of theirs "
            "alone: say which, with --head HOST (nodes_host in pool.toml)."
        )
    _refuse_missing_files(settings)
    if settings.ray_address:
        cluster = of_head(state, settings)
        trouble = trouble_of(cluster, cluster.look(), "Put the cluster's own token there (`ray get-auth-token`).")
        if trouble is not None:
            raise PoolRefusal(f"{trouble.found}. {trouble.remedy}")
    elif not _is_up(state):
        _refuse_taken(settings)


def refuse_other_engine(state: PoolState, settings: PoolSettings) -> None:
    """Go on only if a pool that is up can have the settings without its Ray head being started or ended for them.

    Raises
    ------
    PoolRefusal
        If it cannot.
    """
    if _is_up(state) != _has_head(settings):
        raise PoolRefusal(
            "The engine cannot change while the pool is up (engine, ray_address). Change it back in "
            f"{state.settings_file}, or run `workbench pool down` and `up`."
        )


def as_told(state: PoolState, settings: PoolSettings) -> Cluster:
    """Return the pool's cluster as its machines are told of it; without an address where it has none."""
    if settings.engine == "local":
        return Cluster(0)
    cluster = of_head(state, settings)
    make_token(cluster.token_file)
    versions = importlib.metadata.version("ray"), platform.python_version()
    token = cluster.token_file.read_text().strip()
    return Cluster(0, cluster.address, token, *versions, is_encrypted=cluster.certificates is not None)


# --- on a machine that joins ------------------------------------------------------------------------------------------


def of_node(state: PoolState, settings: PoolSettings) -> RayCluster:
    """Return the cluster that this machine was told of."""
    certificates = Path(settings.ray_certificates).expanduser() if settings.ray_certificates else None
    return RayCluster(noted(state).address, state.ray_token, certificates)


def noted(state: PoolState) -> Cluster:
    """Return what this machine was told of the cluster, but for the token.

    Raises
    ------
    PoolRefusal
        If it was told nothing.
    """
    try:
        return msgspec.json.decode(_note(state).read_bytes(), type=Cluster)
    except (OSError, msgspec.DecodeError):
        raise PoolRefusal(
            f"This machine was not told where the pool's Ray cluster is (there is no record in {state.root}). Run "
            "`workbench node up` when the pool's head answers."
        ) from None


def note(state: PoolState, cluster: Cluster, settings: PoolSettings) -> bool:
    """Write down what this machine is told of the cluster; tell whether that is something else than before.

    Raises
    ------
    PoolRefusal
        If this machine cannot be a node of it.
    """
    need_ray()
    if (foreign := foreign_versions(cluster.address, cluster.ray, cluster.python)) is not None:
        raise PoolRefusal(f"{foreign.found}. {foreign.remedy}")
    if cluster.is_encrypted and not settings.ray_certificates:
        raise PoolRefusal(
            "The pool's Ray cluster is encrypted: say where this machine's tls.crt, tls.key and ca.crt are, with "
            "--ray-certificates DIR."
        )
    _refuse_missing_files(settings)
    fresh = [(state.ray_token, cluster.secret.encode()), (_note(state), msgspec.json.encode(_untold(cluster)))]
    is_new = False
    for path, content in fresh:
        is_new |= not path.exists() or path.read_bytes() != content
        write_private(path, content)
    return is_new


def node_process(state: PoolState, node: str, settings: PoolSettings) -> KeptProcess:
    """Return this machine's part of the Ray cluster, to be kept."""
    cluster = of_node(state, settings)
    host = "" if settings.executor_host in _EVERYWHERE else settings.executor_host
    return _kept(state, cluster.node_command(node, host, state.ray), cluster.environment())


# --- on either --------------------------------------------------------------------------------------------------------


def trouble_of(cluster: RayCluster, looked: Looked, other_token: str) -> Trouble | None:
    """Return what is wrong between this machine and ``cluster``, by what came of looking at it.

    ``other_token`` is what to do about a token that is refused.
    """
    match looked.problem:
        case "shut":
            return Trouble(
                f"The Ray cluster at {cluster.address} is shut: {looked.detail}",
                "See whether its head is up there (`workbench pool up`) and no firewall is between.",
            )
        case "token":
            return Trouble(
                f"The Ray cluster at {cluster.address} refuses the token in {cluster.token_file}", other_token
            )
        case "silent":
            return Trouble(
                f"What listens at {cluster.address} does not answer as a Ray cluster: {looked.detail}",
                "See whether the address is that of its head, and whether both sides have certificates or neither.",
            )
    return foreign_versions(cluster.address, looked.ray, looked.python)


def foreign_versions(address: str, ray: str, python: str) -> Trouble | None:
    """Return what is wrong if the cluster at ``address`` has other versions of Ray or Python than this machine."""
    here = importlib.metadata.version("ray"), platform.python_version()
    if here == (ray, python):
        return None
    return Trouble(
        f"This machine has Ray {here[0]} on Python {here[1]}, the Ray cluster at {address} has Ray {ray} on Python "
        f"{python}, and lets in none but the same",
        f"Install gpu-workbench[ray] of the same version as on the pool's head here, with Python {python}.",
    )


def end(state: PoolState, grace_seconds: float = 0.0) -> None:
    """End what of Ray runs for ``state``. Given time, it takes its leave; else others miss it some seconds later."""
    end_all([one.identity for one in running.processes(state) if one.role == "ray"], grace_seconds)
    # By this note of its own, and any node of the cluster on this host, Ray would take its head for running.
    (state.ray / "ray_current_cluster").unlink(missing_ok=True)


def _kept(state: PoolState, command: list[str], environment: dict[str, str]) -> KeptProcess:
    variables = environment | {STATE: str(state.root)}
    # What is left of one that was killed has its ports.
    return KeptProcess("ray", command, state.runtime, state.logs / "ray.log", variables, partial(end, state))


def _untold(cluster: Cluster) -> Cluster:
    return msgspec.structs.replace(cluster, request=0, secret="")


def _note(state: PoolState) -> Path:
    return state.root / "cluster.json"


def _log(state: PoolState) -> Path:
    return state.logs / "ray-driver.log"


def _has_head(settings: PoolSettings) -> bool:
    return settings.engine == "ray" and not settings.ray_address


def _is_up(state: PoolState) -> bool:
    return any(one.role == "ray" for one in running.processes(state))


def _refuse_missing_files(settings: PoolSettings) -> None:
    files = [Path(settings.ray_certificates).expanduser() / name for name in CERTIFICATES.values()]
    wanted = {"ray_certificates": files if settings.ray_certificates else []}
    if settings.ray_address:
        wanted["ray_token_file"] = [Path(settings.ray_token_file or "a file that is not named").expanduser()]
    for name, paths in wanted.items():
        for path in paths:
            if not path.is_file():
                raise PoolRefusal(f"{name} is not right: there is no {path}. Nothing was changed.")


def _refuse_taken(settings: PoolSettings) -> None:
    try:
        socket.create_server((settings.nodes_host, settings.ray_port)).close()
    except OSError as error:
        raise PoolRefusal(
            f"Ray's head cannot be heard at {settings.nodes_host}:{settings.ray_port}: {error.strerror or error}. "
            "nodes_host must be an IP address of this machine, and nobody else may listen on ray_port. Nothing was "
            "changed."
        ) from None
