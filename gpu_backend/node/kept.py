"""A process that an agent keeps running and that outlives it: started, adopted by the next agent, started again."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence
from pathlib import Path
from subprocess import CalledProcessError
from time import monotonic

from gpu_backend.engine.detached import ProcessId, Watched, read_identity, spawn, write_identity
from gpu_backend.node import stock
from gpu_backend.transport.private_files import write_private

__all__ = ["CONFIG", "LOG", "PROCESS", "Kept", "processes_below"]

log = logging.getLogger("node.kept")

#: In its directory: what it was told, who it is, and what it says.
CONFIG, PROCESS, LOG = "config.json", "process.json", "log"
#: One that ran for this long did not fail to start, seconds.
_STEADY_SECONDS = 5.0


class Kept:
    """One such process.

    Parameters
    ----------
    what
        What it is, in words.
    command
        What runs it; its directory is appended.
    directory
        Its own, which is made.
    config
        What it is told, in its file. One that was told something else is replaced.
    loss
        In words, what it means while there is none.
    """

    def __init__(self, what: str, command: Sequence[str], directory: Path, config: bytes, loss: str) -> None:
        self._what, self._loss = what, loss
        self._command = command
        self._directory = directory
        self._config = config
        self._process: Watched | None = None
        self._renewed: ProcessId | None = None
        self._is_stopping = False
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def is_renewing(self) -> bool:
        """Whether the one that there is, or was, is to be replaced."""
        return self._renewed is not None and (self._process is None or self._process.identity == self._renewed)

    @property
    def is_steady(self) -> bool:
        """Whether there is one that is not about to end."""
        return self._process is not None and not self._is_stopping and not self.is_renewing

    def renew(self) -> None:
        """Have another take its place."""
        if self._process is not None and not self.is_renewing:
            self._renewed = self._process.identity
            self._process.send_signal(signal.SIGTERM)

    async def keep(self) -> None:
        """Keep it running until `stop` is called."""
        failures = 0
        while not self._is_stopping:
            await asyncio.sleep(stock.pause_after(failures - 1) if failures else 0)
            since = monotonic()
            self._process = self._adopt() or self._start()
            if self._process is not None:
                try:
                    await self._process.ended()
                finally:
                    self._process.close()
                    self._process = None
            failures = 0 if monotonic() - since > _STEADY_SECONDS else failures + 1
            if not self._is_stopping:
                log.error("the %s in %s has ended; until the next one, %s", self._what, self._directory, self._loss)

    def stop(self) -> None:
        """End it for good."""
        self._is_stopping = True
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def _adopt(self) -> Watched | None:
        identity = read_identity(self._directory / PROCESS)
        if identity is None:
            return None
        try:
            found = Watched(identity)
        except ProcessLookupError:
            return None
        log.info("adopted the %s in %s, pid %d", self._what, self._directory, identity.pid)
        if self._config_there() != self._config:
            found.send_signal(signal.SIGTERM)  # the settings have changed; its successor is started when it is gone
        return found

    def _config_there(self) -> bytes:
        try:
            return (self._directory / CONFIG).read_bytes()
        except OSError:
            return b""

    def _start(self) -> Watched | None:
        try:
            write_private(self._directory / CONFIG, self._config)
            identity = spawn([*self._command, str(self._directory)], self._directory / LOG, self._directory)
            write_identity(self._directory / PROCESS, identity)
            started = Watched(identity)
        except (OSError, CalledProcessError) as error:
            log.error("the %s in %s could not be started: %s", self._what, self._directory, error)
            return None
        log.info("started the %s in %s, pid %d", self._what, self._directory, identity.pid)
        return started


def processes_below(folder: Path) -> list[ProcessId]:
    """Return every such process that runs in a directory in ``folder``, whoever started it."""
    found = [read_identity(path) for path in sorted(folder.glob(f"*/{PROCESS}"))]
    return [identity for identity in found if identity is not None]
