"""What a process gives up besides: the powers of root, and files without end."""

from __future__ import annotations

import os
import resource
import struct
from contextlib import suppress

from gpu_backend.executor.sandbox.kernel_calls import NoSandbox, prctl, syscall
from gpu_backend.executor.sandbox.syscalls import machine, numbers

__all__ = ["MAX_FILES", "MAX_FILE_BYTES", "drop"]

#: Largest file that is written, log and compiled kernels included.
MAX_FILE_BYTES = 1 << 30
#: Most open files, but no more than half of what the pool's own processes may have: see `gpu_backend.engine.limits`.
MAX_FILES = 4096
_DROP_BOUNDING, _LAST_POSSIBLE = 24, 63
_VERSION_3 = 0x20080522


def drop() -> None:
    """Give up every capability, dump no core, write no file without end, and make no file for others to read."""
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard // 2, MAX_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with suppress(NoSandbox):  # only root has a bounding set to give up
        for capability in range(_LAST_POSSIBLE):
            prctl(_DROP_BOUNDING, capability)
    syscall(numbers(machine())["capset"], struct.pack("<Ii", _VERSION_3, 0), bytes(24))
