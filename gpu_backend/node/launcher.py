"""Executor processes and their directories: made, found again, swept away."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gpu_backend.arbiter.roster import BELL
from gpu_backend.engine.detached import ProcessId, read_identity, spawn, write_identity
from gpu_backend.node import arbiter
from gpu_backend.node.inventory import Found
from gpu_backend.node.settings import NO_GATE, NodeSettings
from gpu_backend.node.shares import make_page, page_of
from gpu_backend.wire.control import Assign

#: Where an agent that cannot start says why, in its state directory.
PROBLEM_NOTE = "problem"
#: Logs of crashed executors that are kept.
_LOGS_KEPT = 20
_LOG_TAIL_BYTES = 4_096


class LaunchConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What an executor is told when it starts: the agent's side of its ``config.json``."""

    device_kind: str
    ordinal: int
    bind_host: str
    agent_key: str
    orphan_seconds: float
    cache_dir: str
    gate: str = ""
    arbiter_bell: str = ""


class ExecutorState(msgspec.Struct, frozen=True):
    """What an executor says of itself in ``state.json`` once it listens; of its end in words and as `EndCause`."""

    pid: int
    start_time: int
    server_key: str
    endpoints: tuple[str, ...]
    control: str
    ended: str = ""
    cause: str = ""


def launch(settings: NodeSettings, agent_key: bytes, device: Found) -> tuple[Path, ProcessId]:
    """Start an executor on ``device``; return its directory and its process.

    Raises
    ------
    ProcessLookupError
        If it ended at once.
    """
    directory = executors_dir(settings.runtime_dir) / secrets.token_hex(4)
    directory.mkdir(mode=0o700)
    is_ungated = settings.policy_of(device.ordinal) == NO_GATE
    config = LaunchConfig(
        device_kind=device.kind,
        ordinal=device.ordinal,
        bind_host=settings.bind_host,
        agent_key=agent_key.decode(),
        orphan_seconds=settings.orphan_seconds,
        cache_dir=settings.cache_dir,
        gate=str(make_page(directory)),
        arbiter_bell="" if is_ungated else str(arbiter.directory_of(settings.runtime_dir, device.ordinal) / BELL),
    )
    write_private(directory / "config.json", msgspec.json.encode(config))
    identity = spawn([*settings.executor_command, str(directory)], directory / "log", directory)
    write_identity(directory / "process.json", identity)
    return directory, identity


def directories(runtime_dir: str) -> Iterator[Path]:
    """Yield the directories of all executors that were ever started and not yet swept away."""
    yield from sorted(path for path in executors_dir(runtime_dir).iterdir() if path.is_dir())


def executors_dir(runtime_dir: str) -> Path:
    """Return where executors have their directories, made if need be."""
    path = Path(runtime_dir) / "x"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def process_in(directory: Path) -> ProcessId | None:
    """Return the executor that runs in ``directory``, or None if none does.

    Who started it may have died before noting its identity; it then says so itself in ``state.json``.
    """
    noted = read_identity(directory / "process.json")
    state = state_in(directory)
    if noted is None and state is not None:
        own = ProcessId(state.pid, state.start_time)
        return own if own.is_running else None
    return noted


def state_in(directory: Path) -> ExecutorState | None:
    """Return what the executor in ``directory`` says of itself, once it listens."""
    try:
        return msgspec.json.decode((directory / "state.json").read_bytes(), type=ExecutorState)
    except (OSError, msgspec.DecodeError):
        return None


def config_in(directory: Path) -> LaunchConfig | None:
    """Return what the executor in ``directory`` was told."""
    try:
        return msgspec.json.decode((directory / "config.json").read_bytes(), type=LaunchConfig)
    except (OSError, msgspec.DecodeError):
        return None


def note_assignment(directory: Path, order: Assign) -> None:
    """Keep what the executor was assigned to, for the next agent."""
    write_private(directory / "assign.json", msgspec.json.encode(order))


def assignment_in(directory: Path) -> Assign | None:
    """Return what the executor in ``directory`` was assigned to."""
    try:
        return msgspec.json.decode((directory / "assign.json").read_bytes(), type=Assign)
    except (OSError, msgspec.DecodeError):
        return None


def note_serving(directory: Path) -> None:
    """Keep that the executor said it serves its session."""
    (directory / "serving").touch(mode=0o600)


def is_serving(directory: Path) -> bool:
    """Tell whether the executor in ``directory`` ever said that it serves."""
    return (directory / "serving").exists()


def last_words(directory: Path) -> str:
    """Return the last line of an executor's log, without its time."""
    try:
        with (directory / "log").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip()[-300:] for line in reversed(lines) if line.strip()), "")


def sweep(directory: Path, log_dir: Path | None) -> None:
    """Remove the directory of an executor that has ended; its log goes to ``log_dir`` if that is given."""
    if log_dir is not None and (directory / "log").exists():
        log_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(directory / "log", log_dir / f"executor-{directory.name}.log")
        logs = sorted(log_dir.glob("executor-*.log"), key=lambda path: path.stat().st_mtime)
        for old in logs[:-_LOGS_KEPT]:
            old.unlink(missing_ok=True)
    page_of(directory).unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, all or nothing."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    fresh.replace(path)
