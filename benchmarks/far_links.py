"""Links of a given round trip to a pool of this machine, each at a loopback address of its own."""

from __future__ import annotations

import math
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

_HERE = Path(__file__).parent
#: As many as the sessions of a benchmark and the executors that are kept ready can need.
_PORTS = 16


def port_range() -> str:
    """Return ports in a row that nobody listens on now, as ``executor_ports`` names them: those of the pool."""
    for first in range(20_000, 30_000, _PORTS):
        try:
            for port in range(first, first + _PORTS):
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return f"{first}-{first + _PORTS - 1}"
    raise RuntimeError("there are not enough free ports between 20000 and 30000")


@contextmanager
def far_links(config: Path, ports: str, round_trips: Sequence[float], rate: float = math.inf) -> Iterator[list[Path]]:
    """Have a client's settings for each of ``round_trips``, seconds: those of ``config``, but from so far away.

    ``ports`` are the pool's. Executors are met over TLS, through a relay that delivers each byte so much later; the
    gateway stays where it is. No more than ``rate`` bytes a second pass by each.
    """
    with ExitStack() as relays:
        found = []
        for number, seconds in enumerate(round_trips):
            host = f"127.0.0.{2 + number}"
            relays.enter_context(_relay(host, ports, seconds, rate))
            found.append(config.with_name(f"{host}.toml"))
            found[-1].write_text(f'{config.read_text()}executor_host = "{host}"\n')
            found[-1].chmod(0o600)
        yield found


@contextmanager
def _relay(host: str, ports: str, seconds: float, rate: float) -> Iterator[None]:
    command = [sys.executable, str(_HERE / "delayed_link.py"), host, "127.0.0.1", ports, str(seconds), str(rate)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as link:
        assert link.stdout is not None
        try:
            if link.stdout.readline().strip() != "ready":
                raise RuntimeError("the delayed link did not come up")
            yield
        finally:
            link.kill()
