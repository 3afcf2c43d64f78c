"""Memory that two processes share and neither can take away from the other: its size is sealed for good.

A mapped file that somebody makes shorter kills whoever looks at it, so memory is shared by memfds whose size nobody can
change, and whoever is given one checks that before it looks.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import stat

__all__ = ["NotSealed", "make", "open_of_process", "refuse_writers", "require"]

#: As the kernel has it since 5.1; Python names it only since 3.13.
_FUTURE_WRITE = 0x0010
_SIZE_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


class NotSealed(OSError):
    """A descriptor that is not one of memory of a certain size for good."""


def make(name: str, size: int, is_sealed: bool = True) -> int:
    """Return a descriptor of fresh memory of ``size`` bytes, all zero; ``is_sealed`` says that no seal can be added.

    It is not inherited by other programs.
    """
    descriptor = os.memfd_create(f"gpu-workbench-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    seals = _SIZE_SEALS | (fcntl.F_SEAL_SEAL if is_sealed else 0)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def refuse_writers(descriptor: int) -> None:
    """Refuse, from now on and for good, every other way to write to the memory than the maps that there are."""
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _FUTURE_WRITE | fcntl.F_SEAL_SEAL)


def require(descriptor: int, size: int) -> None:
    """Check that ``descriptor`` is one of memory of ``size`` bytes for good.

    Raises
    ------
    NotSealed
        If it is not.
    """
    try:
        status, seals = os.fstat(descriptor), fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
    except OSError as error:
        raise NotSealed(f"It is no memory that can be shared: {error.strerror}.") from None
    if not stat.S_ISREG(status.st_mode) or status.st_size != size:
        raise NotSealed(f"It is no memory of {size} bytes.")
    if seals & _SIZE_SEALS != _SIZE_SEALS:
        raise NotSealed("Its size could change.")


def open_of_process(pid: int, number: int, size: int) -> mmap.mmap:
    """Map, to read only, the memory that process ``pid`` has as descriptor ``number``.

    The process may be hostile: nothing it has in that place is waited for, and nothing that it does later to its
    descriptor or its memory's size reaches this map.

    Raises
    ------
    OSError
        If there is no such memory.
    """
    # First only as a place, which neither waits nor acts, whatever it may be: a pipe, a device, a file with a lease.
    place = os.open(f"/proc/{pid}/fd/{number}", os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise NotSealed(f"Descriptor {number} of process {pid} is no memory.")
        descriptor = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    finally:
        os.close(place)
    try:
        require(descriptor, size)
        return mmap.mmap(descriptor, size, prot=mmap.PROT_READ)
    finally:
        os.close(descriptor)
