"""``python -m gpu_backend.node.mps_daemon DIR``: keep one device's MPS daemon, and say how it stands.

Daemon and server outlive the agent and this process, as executors do: without them every session of the device ends.
"""

from __future__ import annotations

import fcntl
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import msgspec

from gpu_backend.engine import logs
from gpu_backend.engine.detached import ProcessId, read_identity, spawn, write_identity
from gpu_backend.node import mps_client
from gpu_backend.node.kept import CONFIG, LOG, PROCESS
from gpu_backend.node.mps_files import CLIENT, DaemonConfig, Standing, name_of, note_standing, pipe_of
from gpu_backend.node.mps_processes import DAEMON, sweep

log = logging.getLogger("node.mps")

#: Where a container has the driver's programs if they are not in its path.
_ALSO_SEARCHED = ("/usr/local/nvidia/bin", "/usr/bin")
#: How long it may take until the daemon listens, and a client until it has computed, seconds (0.02 and 1.5 on an H100).
_LISTENING_SECONDS, _CLIENT_SECONDS = 10.0, 60.0
_LOOK_SECONDS = 0.02
#: In the keeper's directory: which process is the daemon.
_NOTE = "daemon.json"


def main() -> None:
    """Keep the daemon until a signal says otherwise, or it ends."""
    directory = Path(sys.argv[1])
    os.umask(0o077)
    logs.set_up()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # two daemons would answer in one directory
        write_identity(directory / PROCESS, ProcessId.mine())
        config = msgspec.json.decode((directory / CONFIG).read_bytes(), type=DaemonConfig)
    except (OSError, msgspec.DecodeError) as error:
        log.error("cannot start: %s", error)
        raise SystemExit(2) from None
    problem = "its keeper has failed"
    try:
        problem = keep(directory, config)
        log.error("the device cannot be shared by MPS: %s", problem)
    except SystemExit:
        problem = ""  # it was told to
        raise
    finally:
        sweep(directory)
        note_standing(directory, Standing(problem=problem))
    raise SystemExit(1)


def keep(directory: Path, config: DaemonConfig) -> str:
    """Keep the daemon to its end, the one that runs already if there is one; return why there is none any more."""
    environment = _environment(directory, config)
    found = read_identity(directory / _NOTE)
    if found is None:
        sweep(directory)
        started = _start(directory, environment)
        if isinstance(started, str):
            return started
        found = started
    name = name_of(found)
    note_standing(directory, Standing(daemon=name))
    if problem := _first_client(directory, found, environment):
        return problem
    note_standing(directory, Standing(is_ready=True, daemon=name))
    log.info("clients compute by the daemon, process %d", found.pid)
    _wait(found)
    return f"its daemon has ended; see {_logs(directory)}"


def _start(directory: Path, environment: dict[str, str]) -> ProcessId | str:
    """Start the daemon; return why there is none."""
    program = shutil.which(DAEMON, path=environment["PATH"])
    if program is None:
        return f"there is no {DAEMON} on this machine; it comes with NVIDIA's driver"
    for folder in (pipe_of(directory), _logs(directory)):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
    try:
        found = spawn([program, "-f"], directory / LOG, directory, (), environment)
        write_identity(directory / _NOTE, found)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"its daemon cannot be started: {error}"
    return found


def _first_client(directory: Path, daemon: ProcessId, environment: dict[str, str]) -> str:
    """Have a client compute; return why none does."""
    until = monotonic() + _LISTENING_SECONDS
    while not (pipe_of(directory) / "control").exists():
        if not daemon.is_running:
            return f"its daemon ended at once; see {directory / LOG} and {_logs(directory)}"
        if monotonic() > until:
            return f"its daemon does not listen after {_LISTENING_SECONDS:.0f} s; see {_logs(directory)}"
        sleep(_LOOK_SECONDS)
    client = [sys.executable, "-m", mps_client.__name__]
    try:
        done = subprocess.run(
            client, env=environment, capture_output=True, text=True, timeout=_CLIENT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"a client of its daemon had not computed after {_CLIENT_SECONDS:.0f} s; see {_logs(directory)}"
    return done.stdout.strip() if done.returncode == 0 else f"a client of its daemon ended by {done.returncode}"


def _environment(directory: Path, config: DaemonConfig) -> dict[str, str]:
    """Return the environment of the daemon, and of the first client."""
    path = ":".join((os.environ.get("PATH", os.defpath), *_ALSO_SEARCHED))
    ours = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_MPS_")}
    named = {CLIENT[0]: str(pipe_of(directory)), "CUDA_MPS_LOG_DIRECTORY": str(_logs(directory))}
    return {**ours, **named, "PATH": path, "CUDA_VISIBLE_DEVICES": config.visible}


def _logs(directory: Path) -> Path:
    return directory / "l"


def _wait(process: ProcessId) -> None:
    """Return when the process has ended, which need not be a child of this one."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if process.is_running:
            select.select([descriptor], [], [])
    finally:
        os.close(descriptor)


def _stop(number: int, frame: object) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    main()
