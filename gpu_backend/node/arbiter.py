"""One arbiter as its agent holds it: kept running, and told who shares its device."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from time import monotonic

import msgspec

from gpu_backend.engine.detached import ProcessId
from gpu_backend.gate import bell
from gpu_backend.gate import roster as rosters
from gpu_backend.gate.roster import ArbiterConfig, Roster
from gpu_backend.node.inventory import Found
from gpu_backend.node.kept import Kept, processes_below
from gpu_backend.node.settings import NodeSettings

log = logging.getLogger("node.arbiter")

#: Below the runtime directory: where arbiters have their directories.
ARBITERS = "a"

#: How often an unchanged roster is touched, so that its arbiter knows that there is an agent, seconds.
_TOUCH_SECONDS = 2.0


class Arbiter:
    """Keeps the arbiter of one device running. It outlives its agent, and the next one adopts it."""

    def __init__(self, settings: NodeSettings, device: Found) -> None:
        config = ArbiterConfig(
            policy=settings.policy_of(device.ordinal),
            orphan_seconds=settings.orphan_seconds,
            device_kind=device.kind,
            device_uuid=device.uuid,
            overrun_seconds=settings.overrun_seconds,
        )
        self._directory = directory_of(settings.runtime_dir, device.ordinal)
        told, loss = msgspec.json.encode(config), "its device's gates are open"
        self._kept = Kept("arbiter", settings.arbiter_command, self._directory, told, loss)
        self._roster: Roster | None = None
        self._written_at = 0.0

    async def keep(self) -> None:
        """Keep the arbiter running until `stop` is called."""
        await self._kept.keep()

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
        self._kept.stop()


def directory_of(runtime_dir: str, ordinal: int) -> Path:
    """Return where the arbiter of a device has its files."""
    return Path(runtime_dir) / ARBITERS / str(ordinal)


def processes(runtime_dir: Path) -> list[ProcessId]:
    """Return every arbiter that runs, whoever started it."""
    return processes_below(runtime_dir / ARBITERS)
