"""Whether a pool can be heard where its settings say, tried before a process depends on it."""

from __future__ import annotations

import socket

from gpu_backend.pool.settings import PoolSettings
from gpu_backend.transport import forecourt
from gpu_backend.wire.errors import PoolRefusal


def refuse_unheard(settings: PoolSettings, with_port: bool) -> None:
    """Go on only if gateway and executors can listen on their addresses; the gateway ``with_port`` on its own ports.

    Raises
    ------
    PoolRefusal
        If one of them cannot; the message names the setting.
    """
    refuse_unnamed(settings)
    if settings.listen_host and settings.nodes_host and settings.listen_port == settings.nodes_port:
        raise PoolRefusal(
            f"listen_port and nodes_port are both {settings.nodes_port}: notebooks and machines need two."
        )
    if settings.listen_host:
        _try_gateway(settings.listen_host, settings.listen_port if with_port else 0, "listen")
    if settings.nodes_host:
        _try_gateway(settings.nodes_host, settings.nodes_port if with_port else 0, "nodes")
    host = settings.executor_host or settings.listen_host
    try:
        if host and host != "*":
            found = socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            socket.create_server((found[0][4][0], 0), family=found[0][0]).close()
    except OSError as error:
        name = "executor_host" if settings.executor_host else "listen_host"
        raise PoolRefusal(
            f"Executors cannot be heard at {name} = {host!r}: {error.strerror or error}. It must be an address of this "
            "machine. Nothing was changed."
        ) from None


def refuse_unnamed(settings: PoolSettings) -> None:
    """Go on only if there is a name to tell to notebooks of other machines.

    Raises
    ------
    PoolRefusal
        If the pool listens on all addresses and says none.
    """
    for who in ("listen", "nodes"):
        if getattr(settings, f"{who}_host") in ("0.0.0.0", "*", "::") and not settings.advertise_host:
            those = "notebooks elsewhere" if who == "listen" else "machines that join"
            raise PoolRefusal(
                f"{who}_host is {getattr(settings, f'{who}_host')!r}, so {those} must be told a name of this machine: "
                "set advertise_host in pool.toml, or give --advertise to `workbench pool up`."
            )


def _try_gateway(host: str, port: int, who: str) -> None:
    """Try a door of the gateway, whose settings are ``who``_host and ``who``_port; port 0 for any."""
    endpoint = f"tcp://{host}:{port}"
    try:
        forecourt.listen(endpoint).close()
    except OSError as error:
        raise PoolRefusal(
            f"The gateway cannot be heard at {endpoint}: {error.strerror or error}. {who}_host must be an "
            "IP address of this machine (0.0.0.0 for all of them; its name for others is advertise_host), and "
            f"nobody else may listen on {who}_port. Nothing was changed."
        ) from None
