"""What is agreed on about the MPS daemon of a device: where its files are, and what it and its clients are told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from gpu_backend.engine.detached import ProcessId

__all__ = [
    "CLIENT",
    "DAEMONS",
    "ClientWay",
    "DaemonConfig",
    "MpsSharing",
    "Standing",
    "directory_of",
    "name_of",
    "note_standing",
    "pipe_of",
    "standing",
    "way_to",
]

#: Below the runtime directory: where the keepers of daemons have their directories.
DAEMONS = "m"
#: CUDA's own variables: by which directory a client finds its daemon, and what it may have.
CLIENT = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")
_STANDING = "standing.json"


class MpsSharing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a device is shared by MPS: a mode that its operator chose for it."""

    #: The only group whose users get sessions there: a fault of one ends all of them.
    group: str
    #: Most of the device's memory that one session takes in all, CUDA's own included; 0 for no limit.
    memory_bytes: int = 0
    #: Most of the device's multiprocessors that one session's kernels have at a time, per cent.
    threads_percent: float = 100.0


class DaemonConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the keeper of a daemon is told. One that was told otherwise is replaced, and all end that compute by it."""

    #: The device, as CUDA_VISIBLE_DEVICES names it.
    visible: str


class Standing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a daemon stands: ready once a client has computed by it; else with a problem, or still starting.

    ``daemon`` names the process: whoever began with another has lost the device.
    """

    is_ready: bool = False
    problem: str = ""
    daemon: str = ""


class ClientWay(NamedTuple):
    """How an executor reaches its device through a daemon."""

    #: Whose sessions share its fate.
    group: str
    daemon: str
    #: What it has in its environment besides.
    environment: dict[str, str]


def directory_of(runtime_dir: str, ordinal: int) -> Path:
    """Return where the keeper of a device's daemon has its files."""
    return Path(runtime_dir) / DAEMONS / str(ordinal)


def pipe_of(directory: Path) -> Path:
    """Return the directory through which clients reach the daemon whose keeper has ``directory``."""
    return directory / "p"


def way_to(directory: Path, daemon: str, sharing: MpsSharing) -> ClientWay:
    """Return how a client computes by the ``daemon`` whose keeper has ``directory``, within its limits."""
    where, memory, threads = CLIENT
    found = {where: str(pipe_of(directory))}
    if sharing.memory_bytes:
        found[memory] = f"0={sharing.memory_bytes >> 20}M"  # of the only device that it sees
    if sharing.threads_percent < 100:
        found[threads] = f"{sharing.threads_percent:g}"
    return ClientWay(sharing.group, daemon, found)


def note_standing(directory: Path, now: Standing) -> None:
    """Note how the daemon stands whose keeper has ``directory``, all or nothing."""
    fresh = directory / f".{_STANDING}.{os.getpid()}"
    fresh.write_bytes(msgspec.json.encode(now))
    fresh.replace(directory / _STANDING)


def standing(directory: Path) -> Standing | None:
    """Return how the daemon stands whose keeper has ``directory``; None if that is not known."""
    try:
        return msgspec.json.decode((directory / _STANDING).read_bytes(), type=Standing)
    except (OSError, msgspec.DecodeError):
        return None


def name_of(daemon: ProcessId) -> str:
    """Return the name of a daemon, which no other ever has."""
    return f"{daemon.pid}-{daemon.start_time}"
