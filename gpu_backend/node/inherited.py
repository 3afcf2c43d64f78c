"""What a launcher makes for an executor and hands over: sockets that listen, which it cannot make, and a page."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpu_backend.executor.config import CONTROL, Descriptors
from gpu_backend.gate import reports
from gpu_backend.transport import local
from gpu_backend.transport.control_socket import ControlListener

_BACKLOG = 64
#: The system chooses.
ANY_PORT = range(1)


class NoFreePort(OSError):
    """Somebody listens on every port that an executor may have."""


@dataclass(frozen=True, slots=True)
class Handover:
    """The descriptors of one executor, and under which endpoints notebooks find them, the best first."""

    descriptors: Descriptors
    endpoints: tuple[str, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """All descriptors."""
        return self.descriptors.numbers


@contextmanager
def listening(directory: Path, host: str, ports: range = ANY_PORT, devices: int = 1) -> Iterator[Handover]:
    """Have what is handed to the executor of ``directory``, for as long as it takes to start it.

    Parameters
    ----------
    directory
        For the socket of those who give orders: private, of a short path.
    host
        Address for notebooks of other hosts.
    ports
        Of these it listens on the first that is free.
    devices
        How many it has: each has a report page.

    Raises
    ------
    OSError
        If one of them cannot be had; a `NoFreePort` if somebody listens on all ``ports``.
    """
    with ExitStack() as ours:  # our copies are of no use once it has its own
        near, endpoint = local.listen(directory.name)
        ours.enter_context(near)
        control = ours.enter_context(ControlListener.open(directory / CONTROL))
        far = ours.enter_context(_far(host, ports))
        pages = [reports.make() for _ in range(devices)]
        for page in pages:
            ours.callback(os.close, page)
        descriptors = Descriptors(
            local=near.fileno(), control=control.fileno(), far=far.fileno(), report=pages[0],
            other_reports=tuple(pages[1:]),
        )  # fmt: skip
        port = far.getsockname()[1]
        yield Handover(descriptors, (endpoint, f"tls://{host}:{port}"))


def _far(host: str, ports: range) -> socket.socket:
    found = socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = found[0]
    for port in ports:
        try:
            return socket.create_server((address[0], port), family=family, backlog=_BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise NoFreePort(
        f"all {len(ports)} ports of executor_ports ({ports[0]}-{ports[-1]}) are taken. Each session needs one, and so "
        "does each executor that is kept ready; the pool's operator can widen the range in pool.toml"
    )
