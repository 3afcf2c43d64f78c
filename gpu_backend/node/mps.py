"""The MPS daemon of one device as its agent holds it: kept running, and asked how it stands."""

from __future__ import annotations

import signal
import sys
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

import msgspec

from gpu_backend.engine.detached import ProcessId, Watched, read_identity
from gpu_backend.node import mps_files
from gpu_backend.node.inventory import Found
from gpu_backend.node.kept import PROCESS, Kept, processes_below
from gpu_backend.node.mps_files import DAEMONS, ClientWay, DaemonConfig, MpsSharing

__all__ = ["Mps", "leftovers", "processes", "retire"]

_KEEPER = "gpu_backend.node.mps_daemon"


class Mps:
    """Keeps the daemon of one device running. It outlives its agent, and the next one adopts it."""

    def __init__(self, runtime_dir: str, device: Found, sharing: MpsSharing) -> None:
        #: For whom, and within which limits.
        self.sharing = sharing
        self._directory = mps_files.directory_of(runtime_dir, device.ordinal)
        told = msgspec.json.encode(DaemonConfig(visible=device.visible))
        command, loss = (sys.executable, "-m", _KEEPER), "nobody new can compute on its device"
        self._kept = Kept("keeper of an MPS daemon", command, self._directory, told, loss)

    async def keep(self) -> None:
        """Keep the daemon running until `stop` is called."""
        await self._kept.keep()

    def stop(self) -> None:
        """End the daemon for good."""
        self._kept.stop()

    def renew(self) -> None:
        """Have another daemon take its place; nobody may compute by this one any more."""
        self._kept.renew()

    @property
    def is_ready(self) -> bool:
        """Whether clients can begin: the daemon stands, and is not about to end."""
        said = mps_files.standing(self._directory)
        return said is not None and said.is_ready and self._kept.is_steady

    @property
    def problem(self) -> str:
        """Why no client can begin; empty if one can, or may be able to in a moment."""
        said = mps_files.standing(self._directory)
        return said.problem if said is not None and not self._kept.is_renewing else ""

    def has_lost(self, daemon: str) -> bool:
        """Tell whether those who compute by ``daemon`` cannot any more, for that it is not there."""
        said = mps_files.standing(self._directory)
        return said is not None and said.daemon != daemon

    def way(self) -> ClientWay:
        """Return how an executor reaches the device."""
        said = mps_files.standing(self._directory)
        return mps_files.way_to(self._directory, said.daemon if said is not None else "", self.sharing)

    def in_words(self) -> str:
        """Return how the device is shared, for people."""
        threads, memory = self.sharing.threads_percent, self.sharing.memory_bytes
        limits = [f"{threads:g} % of its multiprocessors"] if threads < 100 else []
        limits += [f"{memory / 2**30:.3g} GiB"] if memory else []
        return f"MPS, for group {self.sharing.group!r}" + (f", each at most {' and '.join(limits)}" if limits else "")


def leftovers(runtime_dir: str, wanted: Container[int]) -> dict[int, ProcessId]:
    """Return the keepers of daemons of devices that are not ``wanted`` any more, and still run."""
    paths = (Path(runtime_dir) / DAEMONS).glob(f"[0-9]*/{PROCESS}")
    found = {int(path.parent.name): read_identity(path) for path in paths}
    return {ordinal: one for ordinal, one in found.items() if one is not None and ordinal not in wanted}


def retire(keeper: ProcessId) -> None:
    """Have a daemon end."""
    with suppress(ProcessLookupError):
        watched = Watched(keeper)
        watched.send_signal(signal.SIGTERM)
        watched.close()


def processes(runtime_dir: Path) -> list[ProcessId]:
    """Return the keeper of every daemon that runs, whoever started it."""
    return processes_below(runtime_dir / DAEMONS)
