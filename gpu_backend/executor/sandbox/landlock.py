"""Landlock: which files a process may reach, for good, by rules that it gives itself."""

from __future__ import annotations

import ctypes
import os
import struct

from gpu_backend.executor.sandbox.kernel_calls import NoSandbox, prctl, syscall

__all__ = ["DEVICE", "LIST", "OWN", "READ", "READ_WRITE", "RUN", "Ruleset", "version"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_SET_NO_NEW_PRIVILEGES = 38

_EXECUTE, _WRITE, _READ, _LIST, _REMOVE_DIR, _REMOVE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_REG = 1 << 7, 1 << 8
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
#: What each version added to the rights that can be kept.
_ADDED = {1: (1 << 13) - 1, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL}
#: Since versions 4 and 6: TCP (bind, connect), and what reaches out of the sandbox (abstract sockets, signals).
_NETWORK, _SCOPES = 0b11, 0b11
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL

LIST = _LIST
READ = _READ | _LIST
RUN = READ | _EXECUTE
READ_WRITE = _READ | _WRITE
DEVICE = READ_WRITE | _IOCTL
#: No links, sockets, pipes or devices are made, and nothing that was written is started.
OWN = READ | _WRITE | _REMOVE_DIR | _REMOVE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE


def version() -> int:
    """Return the version of Landlock of this system, 0 for none."""
    try:
        return syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    except NoSandbox:
        return 0


class Ruleset:
    """What may be reached; nothing else may, once it is enforced.

    ``kept`` is the version of Landlock to make use of; one that this system has.
    """

    def __init__(self, kept: int) -> None:
        self._handled = sum(rights for since, rights in _ADDED.items() if since <= kept)
        attributes = struct.pack("<QQQ", self._handled, _NETWORK if kept >= 4 else 0, _SCOPES if kept >= 6 else 0)
        size = 24 if kept >= 6 else 16 if kept >= 4 else 8
        self._descriptor = syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))

    def allow(self, path: str, rights: int) -> bool:
        """Allow ``rights`` on ``path`` and all below it; tell whether there is such a path."""
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            rights &= self._handled if os.path.isdir(path) else self._handled & _OF_FILES
            if rights:
                rule = struct.pack("<Qi", rights, descriptor)
                syscall(_ADD_RULE, self._descriptor, _PATH_BENEATH, rule, ctypes.c_uint32(0))
        finally:
            os.close(descriptor)
        return True

    def enforce(self) -> None:
        """Have it hold for this thread and all that it starts, for good."""
        prctl(_SET_NO_NEW_PRIVILEGES, 1)
        syscall(_RESTRICT_SELF, self._descriptor, ctypes.c_uint32(0))
        os.close(self._descriptor)
