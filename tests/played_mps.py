"""NVIDIA's MPS daemon as a script that listens and does no more, and the driver as its first client calls it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpu_backend.engine.detached import ProcessId
from gpu_backend.node.mps_processes import DAEMON

__all__ = ["install_mps", "process_called", "use"]

#: It stays as long as nobody ends it, and is known by its own name as the real one is.
_SCRIPT = """#!/bin/sh
[ "$1" = -f ] || exit 2
[ -e "$(dirname "$0")/refused" ] && { echo "no such GPU"; exit 3; }
echo "$CUDA_VISIBLE_DEVICES" > "$CUDA_MPS_LOG_DIRECTORY/visible"
mkfifo "$CUDA_MPS_PIPE_DIRECTORY/never"
: > "$CUDA_MPS_PIPE_DIRECTORY/control"
read -r never < "$CUDA_MPS_PIPE_DIRECTORY/never"
"""

_DRIVER = r"""
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>
int cuInit(unsigned f) { return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { return STATUS; }
int cuCtxSetCurrent(void *c) { return 0; }
int cuMemAlloc_v2(unsigned long long *p, size_t n) { *p = 1; return 0; }
int cuMemsetD8_v2(unsigned long long p, unsigned char v, size_t n) { return 0; }
int cuMemcpyDtoH_v2(void *to, unsigned long long p, size_t n) { memset(to, VALUE, n); return 0; }
int cuDeviceGetAttribute(int *v, int what, int d) {
  char path[4096];
  snprintf(path, sizeof path, "%s/control", getenv("CUDA_MPS_PIPE_DIRECTORY"));
  *v = what == 133 && IS_CLIENT && access(path, F_OK) == 0;
  return 0;
}
"""


def install_mps(directory: Path, status: int = 0, value: int = 7, is_client: bool = True) -> Path:
    """Make daemon and driver in ``directory``; a file ``refused`` there has the daemon end at once."""
    daemon = directory / DAEMON
    daemon.write_text(_SCRIPT)
    daemon.chmod(0o700)
    source = directory / "mps.c"
    source.write_text(_DRIVER)
    options = [f"-DSTATUS={status}", f"-DVALUE={value}", f"-DIS_CLIENT={int(is_client)}"]
    subprocess.run(["cc", *options, "-shared", "-fPIC", "-o", directory / "libcuda.so.1", source], check=True)
    return directory


def use(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Have processes that are started from now on find what is in ``directory``."""
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(directory))


def process_called(name: str) -> ProcessId | None:
    """Return the daemon of that name if it runs."""
    pid, start_time = map(int, name.split("-"))
    found = ProcessId(pid, start_time)
    return found if found.is_running else None
