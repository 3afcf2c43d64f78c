"""Things that nobody touches who stays inside: a file, a folder, a stretch of memory, and the interpreter's own doors.

Paths, words and addresses of them are given to whatever takes an argument. Whoever opens, compiles, imports or
dereferences them is noticed, in Python by its audit events, below it by the system (inotify), in memory by comparing.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import select
import struct
import sys
from pathlib import Path
from typing import Any

import gpu_backend.executor

_EXECUTOR = os.path.dirname(gpu_backend.executor.__file__) + os.sep
_DEVICES = os.path.join(_EXECUTOR, "devices") + os.sep
_LIBC = ctypes.CDLL(None, use_errno=True)
#: inotify: opened, made, moved here, written and closed.
_OPENED, _MADE, _MOVED, _WRITTEN = 0x20, 0x100, 0x80, 0x8
#: inotify: it is a folder that was opened.
_FOLDER = 0x40000000
_NONBLOCK = 0o4000
#: So long, seconds, is waited for whoever walks through this machine's files to come by the other folder as well.
_WALK_SECONDS = 5.0
#: What no op does, whoever asks: not with the canaries' names only.
_NEVER = (
    "os.system",
    "os.fork",
    "os.exec",
    "os.kill",
    "os.posix_spawn",
    "pty.",
    "socket.",
    "pickle.find_class",
    "urllib.",
)
_BYTES = 4096


class Canaries:
    """They sit in ``directory``, which is made. Use `watch` around what must not touch them."""

    def __init__(self, directory: Path) -> None:
        self.word = f"canary_{secrets.token_hex(4)}"
        self.directory = directory / self.word
        self.directory.mkdir()
        self.secret = secrets.token_bytes(32)
        self.file = self.directory / "secret"
        self.file.write_bytes(self.secret)
        self._memory = ctypes.create_string_buffer(self.secret * (_BYTES // 32), _BYTES)
        self._kept = self._memory.raw
        self._touched: list[str] = []
        #: A folder that nobody is told of: who opens both walks through all there are, and is none of an op's doing.
        self._beside = directory / f"beside_{secrets.token_hex(4)}"
        self._beside.mkdir()
        self._notify = _LIBC.inotify_init1(_NONBLOCK)
        for path in (self.directory, self.file):
            _LIBC.inotify_add_watch(self._notify, os.fsencode(path), _OPENED | _MADE | _MOVED | _WRITTEN)
        self._watch_beside = _LIBC.inotify_add_watch(self._notify, os.fsencode(self._beside), _OPENED)
        #: How much oftener our folder was opened than the other.
        self._opened_more = 0
        self._is_watching = False
        sys.addaudithook(self._hear)

    @property
    def address(self) -> int:
        """Where the stretch of memory begins."""
        return ctypes.addressof(self._memory)

    def holds(self, address: int) -> bool:
        """Tell whether ``address`` lies in the stretch of memory."""
        return self.address <= address < self.address + _BYTES

    def begin(self) -> None:
        """Watch from now on."""
        self._is_watching = True

    def end(self) -> list[str]:
        """Stop watching; return what was touched since `begin`."""
        self._is_watching = False
        touched, self._touched = self._touched, []
        touched += sorted(set(self._notified()))
        if self._memory.raw != self._kept:
            self._memory.raw = self._kept
            touched.append("memory of the process was written at an address that the client gave")
        return touched

    def close(self) -> None:
        """Stop for good; the hook stays, as Python's hooks do, and does nothing."""
        self._is_watching = False
        os.close(self._notify)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_watching:
            return
        self._is_watching = False  # to look at frames is an event as well
        self._note(event, arguments)
        self._is_watching = True

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "object.__getattr__":
            if _asked_for_a_client():
                self._touched.append(f"{event} {arguments[1]!r} of a {type(arguments[0]).__name__}")
        elif event.startswith(_NEVER) or self._names_us(arguments):
            self._touched.append(f"{event} of the canary")

    def _names_us(self, arguments: tuple[Any, ...]) -> bool:
        word, data = self.word, self.word.encode()
        for one in arguments:
            if isinstance(one, str) and word in one:
                return True
            if isinstance(one, (bytes, bytearray)) and data in one:
                return True
            if isinstance(one, (list, tuple)) and any(isinstance(item, str) and word in item for item in one):
                return True
        return False

    def _notified(self) -> list[str]:
        found = self._read()
        while self._opened_more > 0 and select.select([self._notify], [], [], _WALK_SECONDS)[0]:
            found += self._read()
        if self._opened_more > 0:
            found.append("a folder of the canary opened")
        self._opened_more = min(0, self._opened_more)
        return found

    def _read(self) -> list[str]:
        found = []
        try:
            content = os.read(self._notify, 1 << 16)
        except BlockingIOError:
            return []
        while content:
            watch, mask, _, length = struct.unpack_from("iIII", content)
            if mask & _OPENED and mask & _FOLDER:
                self._opened_more += -1 if watch == self._watch_beside else 1
            else:
                found.append(f"a file of the canary {'opened' if mask & _OPENED else 'made or written'}")
            content = content[16 + length :]
        return found


def _asked_for_a_client() -> bool:
    """Tell whether the executor's own code reads an attribute; a device's code, or a traceback's, has its reasons."""
    caller = sys._getframe(3).f_code.co_filename
    return caller.startswith(_EXECUTOR) and not caller.startswith(_DEVICES)
