"""Whether a pool can be heard where its settings say, tried before a process depends on it."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gpu_backend.engine.detached import ProcessId
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.transport import forecourt
from gpu_backend.wire.errors import PoolRefusal

#: Where metrics are told.
_LOOPBACK = "127.0.0.1"
#: How ``/proc/net/tcp`` and its twin of IPv6 say of a socket that it listens.
_LISTENS = "0A"


def refuse_unheard(
    settings: PoolSettings, with_port: bool, gateway: ProcessId | None = None, with_metrics: bool = True
) -> None:
    """Go on only if gateway and executors can listen on their addresses; the gateway ``with_port`` on its own ports.

    Those that ``gateway`` has, the pool's present one, are free for the next one. A pool comes up without its figures,
    too, or any account of this machine could keep it down: where that counts, they are not tried ``with_metrics``.

    Raises
    ------
    PoolRefusal
        If one of them cannot, or the figures cannot be told at their port; the message names the setting.
    """
    refuse_unnamed(settings)
    if settings.listen_host and settings.nodes_host and settings.listen_port == settings.nodes_port:
        raise PoolRefusal(
            f"listen_port and nodes_port are both {settings.nodes_port}: notebooks and machines need two."
        )
    if settings.listen_host:
        _try_gateway(settings.listen_host, settings.listen_port if with_port else 0, "listen", gateway)
    if settings.nodes_host:
        _try_gateway(settings.nodes_host, settings.nodes_port if with_port else 0, "nodes", gateway)
    if settings.metrics_port and with_port and with_metrics:
        _try_metrics(settings.metrics_port, gateway)
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


def _try_gateway(host: str, port: int, who: str, gateway: ProcessId | None) -> None:
    """Try a door of the gateway, whose settings are ``who``_host and ``who``_port; port 0 for any."""
    endpoint = f"tcp://{host}:{port}"
    failure = _failure(lambda: forecourt.listen(endpoint), host, port, gateway)
    if failure is not None:
        raise PoolRefusal(
            f"The gateway cannot be heard at {endpoint}: {failure}. {who}_host must be an "
            "IP address of this machine (0.0.0.0 for all of them; its name for others is advertise_host), and "
            f"nobody else may listen on {who}_port. Nothing was changed."
        )


def _try_metrics(port: int, gateway: ProcessId | None) -> None:
    """Try the port at which Prometheus finds the pool's figures."""
    failure = _failure(lambda: socket.create_server((_LOOPBACK, port)), _LOOPBACK, port, gateway)
    if failure is not None:
        raise PoolRefusal(
            f"The pool's figures cannot be had at {_LOOPBACK}:{port}: {failure}. Nobody else may "
            "listen on metrics_port; 0 is for none. Nothing was changed."
        )


def _failure(listen: Callable[[], socket.socket], host: str, port: int, gateway: ProcessId | None) -> str | None:
    """Return why nobody can ``listen`` there, in the system's words; None if somebody can, or ``gateway`` does."""
    try:
        listen().close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE and gateway is not None and _listens_at(gateway, host, port):
            return None
        return error.strerror or str(error)
    return None


def _listens_at(process: ProcessId, host: str, port: int) -> bool:
    """Tell whether it is ``process`` that has a TCP port, and nobody else has it at ``host``."""
    proc, own = Path("/proc") / str(process.pid), set()
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended, or is not ours
        for descriptor in (proc / "fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                own.add(os.readlink(descriptor))
        tables = [(proc / "net" / name).read_text() for name in ("tcp", "tcp6") if (proc / "net" / name).exists()]
        lines = [line.split() for table in tables for line in table.splitlines()[1:]]
        listening = [(one[1], f"socket:[{one[9]}]") for one in lines if one[3] == _LISTENS]
        at_port = {name for address, name in listening if address.endswith(f":{port:04X}")}
        others = {name for address, name in listening if address == _as_told(host, port)} - own
        return not own.isdisjoint(at_port) and not others
    return False


def _as_told(host: str, port: int) -> str:
    """Return how ``/proc/net/tcp`` tells an address of IPv4; "" of any other."""
    try:
        return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"
    except OSError:
        return ""
