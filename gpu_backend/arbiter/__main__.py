"""``python -m gpu_backend.arbiter DIR``: how an agent starts the arbiter of a device."""

from __future__ import annotations

import fcntl
import gc
import logging
import os
import signal
import sys
from pathlib import Path

import msgspec

from gpu_backend.arbiter.policies.registry import UnknownPolicy
from gpu_backend.arbiter.service import Arbiter
from gpu_backend.engine import logs
from gpu_backend.engine.detached import ProcessId, write_identity
from gpu_backend.engine.limits import take_all_descriptors
from gpu_backend.gate import roster

log = logging.getLogger("arbiter")


def main() -> None:
    """Run the arbiter whose directory is the one command-line argument, until a signal says otherwise."""
    directory = Path(sys.argv[1])
    os.umask(0o077)
    logs.set_up()
    take_all_descriptors()  # it passes executors their pages
    try:
        lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # two arbiters would write the same pages
        write_identity(directory / roster.PROCESS, ProcessId.mine())  # whoever started it may be dead already
        config = roster.read_config(directory)
        arbiter = Arbiter(directory, config)
    except BlockingIOError:
        log.error("another arbiter runs for %s", directory)
        raise SystemExit(1) from None
    except (OSError, msgspec.DecodeError, UnknownPolicy) as error:
        log.error("cannot start: %s", error)
        raise SystemExit(2) from None

    def stop(number: int, frame: object) -> None:
        arbiter.is_stopped = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    gc.freeze()  # what was imported stays for good
    log.info("shares the device by %s", config.policy)
    arbiter.run()


main()
