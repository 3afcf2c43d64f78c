"""The sandbox that an executor enters before it loads anything: what is hostile in it stays in it.

Unprivileged, for good, and for everything that the process starts: Landlock for files, and for signals where the kernel
can; a filter of system calls for what Landlock does not look at. It must be entered while there is one thread, for
threads that are there already would stay outside and share memory with what is inside.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from gpu_backend.executor.sandbox import landlock, privileges, seccomp
from gpu_backend.executor.sandbox.kernel_calls import NoSandbox
from gpu_backend.executor.sandbox.places import Place, places
from gpu_backend.executor.sandbox.seccomp import seal
from gpu_backend.executor.sandbox.syscalls import machine
from gpu_backend.executor.sandbox.walls import Walls

__all__ = ["NoSandbox", "Place", "Walls", "enter", "level", "seal"]


def level() -> str:
    """Return in words how far this system can shut an executor in; empty if it cannot.

    Any version of Landlock will do (Linux 5.13): what the first ones do not keep, the filter of system calls does.
    """
    version = landlock.version() if machine() and seccomp.is_there() else 0
    return _words(version) if version else ""


def enter(own: str, walls: Walls, also: Iterable[Place] = (), kept: int = 0) -> str:
    """Shut this process in; return in words how far.

    Parameters
    ----------
    own
        The executor's own directory.
    walls
        What the launcher decided.
    also
        Further places.
    kept
        Version of Landlock to make do with, for tests; 0 for this system's.

    Raises
    ------
    NoSandbox
        If it cannot be done, or other threads run already.
    """
    tasks = len(os.listdir("/proc/self/task"))
    if tasks != 1:
        raise NoSandbox(f"{tasks} threads run already")
    version = landlock.version()
    if not version:
        raise NoSandbox("this system has no Landlock")
    version = min(version, kept or version)
    rules = landlock.Ruleset(version)
    for path, rights in (*places(own, walls), *also):
        rules.allow(path, rights)
    privileges.drop()
    rules.enforce()
    seccomp.enter(version, bool(walls.devices), walls.has_several_gpus, walls.is_mps_client)
    return _words(version)


def _words(version: int) -> str:
    return f"Landlock {version}, seccomp"
