"""A pool, or a node, that is kept in the foreground, as systemd keeps it: told of when it is up, ended by a signal."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.notebook_pool import STATE_SECONDS

ROOT = Path(__file__).parents[2]


class Served:
    """The process of ``workbench pool serve``, or of ``node serve``, and what it has told its supervisor."""

    def __init__(self, process: subprocess.Popen[str], door: socket.socket, log: Path) -> None:
        self.process = process
        self.log = log
        self._door = door

    def told(self) -> str:
        """Return what the supervisor is told next."""
        return self._door.recv(4096).decode()

    def wait_ready(self) -> str:
        """Wait until all is up, and return what is said of it."""
        try:
            said = self.told()
        except TimeoutError:
            raise AssertionError(f"it is not up: {self.log.read_text()}") from None
        assert said.startswith("READY=1\nSTATUS="), said
        return said

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop it as a supervisor does, and return its exit status."""
        self.process.send_signal(number)
        return self.process.wait(STATE_SECONDS)


@contextmanager
def served(directory: Path, *words: str, code: Path = ROOT) -> Iterator[Served]:
    """Run ``workbench WORDS`` by the packages in ``code``; what it says goes to a log in ``directory``."""
    address, log = directory / f"notify{len(list(directory.iterdir()))}", directory / "served.log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door, log.open("a") as written:
        door.bind(str(address))
        door.settimeout(STATE_SECONDS)
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "workbench", *words], cwd=directory, text=True, stdin=subprocess.DEVNULL,
            stdout=written, stderr=written, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(code), "NOTIFY_SOCKET": str(address)},
        ) as process:  # fmt: skip
            try:
                yield Served(process, door, log)
            finally:
                process.kill()
