"""Executor processes and their directories: made, found again, swept away."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from gpu_backend.engine.detached import ProcessId, end, noted_identity, read_identity, spawn, write_identity
from gpu_backend.engine.process_sessions import end_session, numbers_in
from gpu_backend.executor import config as executor_config
from gpu_backend.executor.config import CERTIFICATE, CONFIG, OWN, PROCESS, ExecutorConfig
from gpu_backend.node import inherited, leavings, prepared_kernels
from gpu_backend.node.certificate import make_certificate
from gpu_backend.node.environment import executor_environment
from gpu_backend.node.inherited import Handover
from gpu_backend.node.inventory import Found
from gpu_backend.node.mps_files import ClientWay
from gpu_backend.node.settings import NO_GATE, NodeSettings
from gpu_backend.node.walls import walls_around
from gpu_backend.transport.private_files import write_private
from gpu_backend.transport.secret_proof import SECRET_BYTES
from gpu_backend.wire.orders import Assign
from gpu_backend.wire.words import MOST_SHOWN, printable

log = logging.getLogger("node.launcher")

#: Where an agent that cannot start says why, in its state directory.
PROBLEM_NOTE = "problem"
#: Below the runtime directory: where executors have their directories.
EXECUTORS = "x"
#: Logs of crashed executors that are kept.
_LOGS_KEPT = 20
_LOG_TAIL_BYTES, _MOST_LOG_BYTES = 4_096, 4 << 20


def launch(
    settings: NodeSettings, agent_key: bytes, devices: Sequence[Found], way: ClientWay | None = None
) -> tuple[Path, ProcessId]:
    """Start an executor on ``devices``, which are of one kind; return its directory and its process.

    Parameters
    ----------
    settings
        Those of its agent.
    agent_key
        That agent's public key (Z85).
    devices
        What it is to compute on.
    way
        How it reaches its device, if that is shared by MPS.

    Raises
    ------
    ProcessLookupError
        If it ended at once; the message quotes its log.
    """
    directory = executors_dir(settings.runtime_dir) / secrets.token_hex(4)
    directory.mkdir(mode=0o700)
    own = directory / OWN
    own.mkdir(mode=0o700)
    certificate = make_certificate()
    write_private(own / CERTIFICATE, certificate.pem)
    with _listening(directory, settings, len(devices)) as handed:
        config = _config(settings, agent_key, devices, way, own, handed, certificate.fingerprint)
        write_private(directory / CONFIG, msgspec.json.encode(config))
        command = [*settings.executor_command, str(directory)]
        environment = executor_environment(own, devices, os.environ) | (way.environment if way is not None else {})
        identity = _spawned(command, directory, handed, environment)
    try:
        write_identity(directory / PROCESS, identity)
    except OSError:  # a full disk, say: nobody would find it again
        end(identity, 0.0)
        sweep(directory, None)
        raise
    return directory, identity


def _config(
    settings: NodeSettings,
    agent_key: bytes,
    devices: Sequence[Found],
    way: ClientWay | None,
    own: Path,
    handed: Handover,
    fingerprint: str,
) -> ExecutorConfig:
    device = devices[0]
    return ExecutorConfig(
        device_kind=device.kind,
        ordinal=0 if device.visible or len(devices) > 1 else device.ordinal,
        devices=len(devices),
        on_node=tuple(one.ordinal for one in devices),
        own=str(own),
        walls=walls_around(settings, devices, is_mps_client=way is not None),
        group=way.group if way is not None else "",
        daemon=way.daemon if way is not None else "",
        agent_key=agent_key.decode(),
        endpoints=handed.endpoints,
        descriptors=handed.descriptors,
        secret=secrets.token_hex(SECRET_BYTES),
        certificate=fingerprint,
        prepared=str(prepared_kernels.folder(settings.cache_dir)) if device.kind == "cuda" else "",
        orphan_seconds=settings.orphan_seconds,
        passes=settings.passes,
        kept_bytes=settings.kept_bytes,
        has_arbiter=any(settings.policy_of(one.ordinal) != NO_GATE for one in devices),
    )


def _spawned(command: list[str], directory: Path, handed: Handover, environment: dict[str, str]) -> ProcessId:
    try:
        return spawn(command, directory / "log", directory / OWN, handed.numbers, environment)
    except ProcessLookupError:  # its log goes with its directory
        words = last_words(directory).rstrip(".")
        told = f"; its log ends: {words}" if words else " and said nothing"
        raise ProcessLookupError(f"{command[0]} ended at once{told}") from None


@contextmanager
def _listening(directory: Path, settings: NodeSettings, devices: int) -> Iterator[Handover]:
    """Have what is handed over; where there is nothing to hand over, leave nothing behind."""
    first, last = settings.executor_ports
    try:
        with inherited.listening(directory, settings.bind_host, range(first, last + 1), devices) as handed:
            yield handed
    except OSError:
        sweep(directory, None)
        raise


def directories(runtime_dir: str) -> Iterator[Path]:
    """Yield the directories of all executors that were ever started and not yet swept away."""
    yield from sorted(path for path in executors_dir(runtime_dir).iterdir() if path.is_dir())


def executors_dir(runtime_dir: str) -> Path:
    """Return where executors have their directories, made if need be."""
    path = Path(runtime_dir) / EXECUTORS
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def process_in(directory: Path) -> ProcessId | None:
    """Return the executor that runs in ``directory``, or None if none does."""
    return read_identity(directory / PROCESS)


def noted_process(directory: Path) -> ProcessId | None:
    """Return the executor of ``directory`` whether it still runs or not."""
    return noted_identity(directory / PROCESS)


def config_in(directory: Path) -> ExecutorConfig | None:
    """Return what the executor in ``directory`` was told; None if that is not known, which is said if it should be."""
    try:
        return executor_config.read(directory)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        log.error("what the executor in %s was told cannot be read: %s", directory, error)
        return None


def note_assignment(directory: Path, order: Assign) -> None:
    """Keep what the executor was assigned to, for the next agent."""
    write_private(directory / "assign.json", msgspec.json.encode(order))


def assignment_in(directory: Path) -> Assign | None:
    """Return what the executor in ``directory`` was assigned to; None if that is not known."""
    try:
        return msgspec.json.decode((directory / "assign.json").read_bytes(), type=Assign)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        log.error("what the executor in %s was assigned to cannot be read: %s", directory, error)
        return None


def note_ready(directory: Path) -> None:
    """Keep that the executor was heard, for people and tests who look into its directory."""
    (directory / "ready").touch(mode=0o600)


def is_ready(directory: Path) -> bool:
    """Tell whether the executor in ``directory`` was ever heard."""
    return (directory / "ready").exists()


def note_serving(directory: Path) -> None:
    """Keep that the executor said it serves its session."""
    (directory / "serving").touch(mode=0o600)


def is_serving(directory: Path) -> bool:
    """Tell whether the executor in ``directory`` ever said that it serves."""
    return (directory / "serving").exists()


def note_ending(directory: Path) -> None:
    """Keep that the executor ends: its session is over, or goes on elsewhere."""
    (directory / "ending").touch(mode=0o600)


def has_session(directory: Path) -> bool:
    """Tell whether an executor runs in ``directory`` that holds a session, and is not about to end."""
    is_given = assignment_in(directory) is not None and not (directory / "ending").exists()
    return is_given and process_in(directory) is not None


def last_words(directory: Path) -> str:
    """Return the last line of an executor's log, in which there may be anything, as what can be shown of it."""
    lines = _log_tail(directory, _LOG_TAIL_BYTES).decode(errors="replace").split("\n")
    return next((readable(line) for line in reversed(lines) if line.strip()), "")


def readable(text: str) -> str:
    """Return what can be shown of something that an executor wrote."""
    return printable(text[-MOST_SHOWN:]).strip()


def _log_tail(directory: Path, most: int) -> bytes:
    try:
        with (directory / "log").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            return file.read(most)
    except OSError:
        return b""


def is_too_large(directory: Path) -> bool:
    """Tell whether an executor has written more than any needs: into its folder or log, or what it then removed."""
    held_bytes, entries = leavings.held(directory / OWN)
    process = noted_process(directory)
    if process is not None and held_bytes <= leavings.MAX_BYTES:
        # It leads a session of its own, and nothing that it starts can leave that.
        held_bytes += leavings.held_unnamed(directory / OWN, numbers_in(process.pid))
    with suppress(OSError):
        held_bytes += (directory / "log").stat().st_blocks * 512
    return held_bytes > leavings.MAX_BYTES or entries > leavings.MAX_ENTRIES


def sweep(directory: Path, log_dir: Path | None) -> None:
    """Remove the directory of an executor that has ended, and end what it left running.

    The end of its log goes to ``log_dir`` if that is given.
    """
    ended = noted_process(directory)
    if ended is not None:
        end_session(ended)
    if log_dir is not None and (directory / "log").exists():
        log_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(log_dir / f"executor-{directory.name}.log", _log_tail(directory, _MOST_LOG_BYTES))
        logs = sorted(log_dir.glob("executor-*.log"), key=lambda path: path.stat().st_mtime)
        for old in logs[:-_LOGS_KEPT]:
            old.unlink(missing_ok=True)
    leavings.remove(directory / OWN)
    shutil.rmtree(directory, ignore_errors=True)
