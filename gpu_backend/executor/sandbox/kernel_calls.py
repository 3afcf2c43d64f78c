"""Calls to the kernel that Python has no function for. Nothing here starts a thread."""

from __future__ import annotations

import ctypes
import os

__all__ = ["NoSandbox", "prctl", "syscall"]

_libc = ctypes.CDLL(None, use_errno=True)


class NoSandbox(OSError):
    """This system cannot shut a process in as far as was asked."""


def syscall(number: int, *arguments: object) -> int:
    """Make the system call ``number`` and return what it returns.

    Raises
    ------
    NoSandbox
        If it fails.
    """
    done = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if done < 0:
        raise _refused(f"system call {number}")
    return done


def prctl(option: int, *arguments: int | bytes) -> None:
    """Change how the kernel treats this process.

    Raises
    ------
    NoSandbox
        If it does not.
    """
    padded = [ctypes.c_ulong(one) if isinstance(one, int) else ctypes.c_char_p(one) for one in (*arguments, 0, 0, 0, 0)]
    if _libc.prctl(ctypes.c_int(option), *padded[:4]):
        raise _refused(f"prctl {option}")


def _refused(what: str) -> NoSandbox:
    number = ctypes.get_errno()
    return NoSandbox(number, f"{what}: {os.strerror(number)}")
