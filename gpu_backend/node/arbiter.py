"""One arbiter as its agent holds it: started, adopted, started again, and told who shares its device."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path
from subprocess import CalledProcessError
from time import monotonic

import msgspec

from gpu_backend.engine.detached import ProcessId, Watched, read_identity, spawn, write_identity
from gpu_backend.gate import bell
from gpu_backend.gate import roster as rosters
from gpu_backend.gate.roster import ArbiterConfig, Roster
from gpu_backend.node import stock
from gpu_backend.node.inventory import Found
from gpu_backend.node.settings import NodeSettings

log = logging.getLogger("node.arbiter")

#: Below the runtime directory: where arbiters have their directories.
ARBITERS = "a"

#: How often an unchanged roster is touched, so that its arbiter knows that there is an agent, seconds.
_TOUCH_SECONDS = 2.0
#: An arbiter that ran for this long did not fail to start.
_STEADY_SECONDS = 5.0


class Arbiter:
    """Keeps the arbiter of one device running. It outlives its agent, and the next one adopts it."""

    def __init__(self, settings: NodeSettings, device: Found) -> None:
        self._command = settings.arbiter_command
        self._config = ArbiterConfig(
            policy=settings.policy_of(device.ordinal),
            orphan_seconds=settings.orphan_seconds,
            device_kind=device.kind,
            device_uuid=device.uuid,
            overrun_seconds=settings.overrun_seconds,
        )
        self._directory = directory_of(settings.runtime_dir, device.ordinal)
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._process: Watched | None = None
        self._roster: Roster | None = None
        self._written_at = 0.0
        self._is_stopping = False

    async def keep(self) -> None:
        """Keep the arbiter running until `stop` is called."""
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
                log.error(
                    "the arbiter in %s has ended; until the next one, its device's gates are open", self._directory
                )

    def publish(self, roster: Roster) -> None:
        """Tell the arbiter who shares its device."""
        now = monotonic()
        path = self._directory / rosters.ROSTER
        if roster != self._roster:
            rosters.write(path, roster)
            bell.ring(self._directory / rosters.BELL)  # who is new waits for a word
            self._roster, self._written_at = roster, now
        elif now - self._written_at > _TOUCH_SECONDS:
            os.utime(path)
            self._written_at = now

    @property
    def unseen(self) -> str:
        """Why it sees nobody from outside; empty if it does."""
        return rosters.unseen(self._directory)

    def stop(self) -> None:
        """End the arbiter for good."""
        self._is_stopping = True
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def _adopt(self) -> Watched | None:
        identity = read_identity(self._directory / rosters.PROCESS)
        if identity is None:
            return None
        try:
            found = Watched(identity)
        except ProcessLookupError:
            return None
        log.info("adopted the arbiter in %s, pid %d", self._directory, identity.pid)
        if self._config_there() != self._config:
            found.send_signal(signal.SIGTERM)  # the settings have changed; its successor is started when it is gone
        return found

    def _config_there(self) -> ArbiterConfig | None:
        try:
            return rosters.read_config(self._directory)
        except (OSError, msgspec.DecodeError):
            return None

    def _start(self) -> Watched | None:
        try:
            rosters.write(self._directory / rosters.CONFIG, self._config)
            identity = spawn([*self._command, str(self._directory)], self._directory / "log", self._directory)
            write_identity(self._directory / rosters.PROCESS, identity)
            started = Watched(identity)
        except (OSError, CalledProcessError) as error:
            log.error("the arbiter in %s could not be started: %s", self._directory, error)
            return None
        log.info("started the arbiter in %s, pid %d", self._directory, identity.pid)
        return started


def directory_of(runtime_dir: str, ordinal: int) -> Path:
    """Return where the arbiter of a device has its files."""
    return Path(runtime_dir) / ARBITERS / str(ordinal)


def processes(runtime_dir: Path) -> list[ProcessId]:
    """Return every arbiter that runs, whoever started it."""
    found = [read_identity(path) for path in sorted((runtime_dir / ARBITERS).glob(f"*/{rosters.PROCESS}"))]
    return [identity for identity in found if identity is not None]
