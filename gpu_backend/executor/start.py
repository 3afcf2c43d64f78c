"""How an executor begins: it reads what it was told, shuts itself in, and then loads what may be turned against it.

Nothing that starts a thread may be imported before the walls stand: NumPy and ZeroMQ do.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import msgspec

from gpu_backend.engine import logs
from gpu_backend.executor import config as configuration
from gpu_backend.executor import sandbox
from gpu_backend.executor.config import ExecutorConfig
from gpu_backend.executor.sandbox import Place, landlock

log = logging.getLogger("executor")

EXIT_CANNOT_START = 2


def main() -> None:
    """Run the executor whose directory is the one command-line argument."""
    logs.set_up()
    directory = Path(sys.argv[1])
    try:
        config = begin(directory)
        from gpu_backend.devices import open_device
        from gpu_backend.executor.process import serve

        prepared = Path(config.prepared) if config.prepared else None
        device = open_device(config.device_kind, config.ordinal, prepared, config.devices)
        if config.group and config.device_kind == "cuda":
            from gpu_backend.devices.cuda_mps import require_client

            require_client(config.ordinal)
        if config.walls is not None:
            sandbox.seal(config.walls.is_mps_client)  # before anything is heard from anybody
    except (OSError, msgspec.DecodeError, RuntimeError, ImportError) as error:
        log.error("cannot start: %s", error)
        raise SystemExit(EXIT_CANNOT_START) from None
    raise SystemExit(serve(config, device))


def begin(directory: Path) -> ExecutorConfig:
    """Note that this process is the executor of ``directory``, and shut it in; return what it was told.

    Raises
    ------
    msgspec.DecodeError
        If what it was told makes no sense.
    OSError
        If the walls that it was told of cannot be had; it must not run without.
    """
    configuration.note_process(directory)
    config = configuration.read(directory)
    lead_session()
    for descriptor in config.descriptors.numbers:
        os.set_inheritable(descriptor, False)  # a compiler has no use for them
    if config.walls is None:
        log.warning("not shut in: the system has no sandbox, or the pool's settings do without")
    else:
        prepared = [Place(config.prepared, landlock.READ)] if config.prepared else []
        log.info("shut in: %s", sandbox.enter(config.own, config.walls, prepared))
    return config


def lead_session() -> None:
    """Lead a session of its own, which nothing that is started here can leave: so the agent finds it all at the end."""
    if os.getsid(0) != os.getpid():
        os.setsid()
