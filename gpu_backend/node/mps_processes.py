"""The processes of an MPS daemon, found by what they were started with: whoever started them may have been killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gpu_backend.engine.detached import ProcessId, end_all
from gpu_backend.node.mps_files import CLIENT, DAEMONS, pipe_of

__all__ = ["DAEMON", "left_of", "sweep", "sweep_all"]

#: NVIDIA's daemon. The server that it starts has another name, with the same beginning.
DAEMON = "nvidia-cuda-mps-control"
#: As much as the kernel shows of either's name.
_SHOWN = "nvidia-cuda-mps"
#: How long they have to end, seconds.
_GRACE_SECONDS = 1.0


def left_of(directory: Path) -> Iterator[ProcessId]:
    """Yield daemon and servers that run and whose keeper has, or had, ``directory``."""
    named = f"{CLIENT[0]}={pipe_of(directory)}".encode()
    for proc in Path("/proc").iterdir():
        with suppress(OSError):  # it is gone, or somebody else's
            if not proc.name.isdecimal() or (proc / "comm").read_text().strip() != _SHOWN:
                continue
            found = ProcessId.of(int(proc.name)) if named in (proc / "environ").read_bytes().split(b"\0") else None
            if found is not None:
                yield found


def sweep(directory: Path) -> None:
    """End what is left of the daemon whose keeper had ``directory``."""
    end_all(list(left_of(directory)), _GRACE_SECONDS)


def sweep_all(runtime_dir: Path) -> None:
    """End what is left of all daemons of a node."""
    for directory in (runtime_dir / DAEMONS).glob("[0-9]*"):
        sweep(directory)
