"""Copying bytes from memory to memory: much of it by several processors at once.

One processor moves some 10 GB/s, and where the memory is new half of that, as each page costs it a fault; the memory
itself has a multiple. NumPy lets go of the interpreter while it copies.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from functools import cache
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np

from gpu_backend.transport.interrupts import heard_at_end
from gpu_backend.transport.processors import has_spare

__all__ = ["address_of", "copy", "fault_in"]

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

#: What is less is copied by one: to wake another takes as long.
_LEAST_BYTES = 2 << 20
#: As much memory is new whenever it is asked for (glibc's largest threshold), and what is less mostly is not.
_NEW_BYTES = 32 << 20
#: Processors that copy at most, the caller's among them. Four come close to what the memory of a host can do.
_MOST = 4
_PAGE_BYTES, _LARGE_PAGE_BYTES = 4096, 2 << 20
_NOTHING = np.zeros(1, np.uint8)


def address_of(memory: Bytes) -> int:
    """Return where ``memory`` begins."""
    address: int = memory.__array_interface__["data"][0]  # by `ctypes` it takes five times as long
    return address


def copy(into: Bytes, source: Bytes) -> None:
    """Copy ``source`` to ``into``, of the same length and contiguous both; done when this returns.

    An interrupt is heard once nobody copies any more: the memory may be the user's, who has it back then.
    """
    size = len(source)
    if size < _LEAST_BYTES or not has_spare():
        into[:] = source
        return
    part = -(-size // _MOST // _PAGE_BYTES) * _PAGE_BYTES
    _do_all([(into[start : start + part], source[start : start + part]) for start in range(0, size, part)])


def fault_in(memory: Bytes) -> None:
    """Have the system put pages behind new ``memory``, of which nothing is used yet, if it is so large that it is new.

    Pages may be large, and are cleared as a whole: where several copy into one at a time, each clears it. So each of
    several processors gets a stretch for itself here.
    """
    size = len(memory)
    if size < _NEW_BYTES or not has_spare():
        return
    part = -(-size // _MOST // _LARGE_PAGE_BYTES) * _LARGE_PAGE_BYTES
    _do_all([(memory[start : start + part : _PAGE_BYTES], _NOTHING) for start in range(0, size, part)])


def _do_all(copies: list[tuple[Bytes, Bytes]]) -> None:
    """Make ``copies``, one here and the others beside it."""
    first, *others = copies
    _Job(others).do(*first)


class _Job:
    """Copies that helpers make, each once, while the caller makes another. To do it again, as after an interrupt, is
    harmless."""

    def __init__(self, copies: list[tuple[Bytes, Bytes]]) -> None:
        self._count, self._left = len(copies), deque(copies)
        self._made: list[None] = []
        self._news: SimpleQueue[None] = SimpleQueue()

    @heard_at_end
    def do(self, into: Bytes, source: Bytes) -> None:
        """Have all copies made, and make this one; done when this returns."""
        jobs = _jobs()
        for _ in range(self._count):
            jobs.put(self)  # more often than there are copies: who finds none left has nothing to do
        into[:] = source
        while len(self._made) < self._count:
            self._news.get()

    def help(self) -> None:
        """Make one of the copies, if one is left."""
        try:
            into, source = self._left.popleft()
        except IndexError:
            return
        into[:] = source
        del into, source  # memory is used again when nobody looks into it any more
        self._made.append(None)
        self._news.put(None)


@cache
def _jobs() -> SimpleQueue[_Job]:
    """Return the queue of those who copy beside the caller; they sleep while it is empty."""
    jobs: SimpleQueue[_Job] = SimpleQueue()
    for number in range(1, _MOST):
        threading.Thread(target=_work, args=(jobs,), name=f"copying {number}", daemon=True).start()
    return jobs


def _work(jobs: SimpleQueue[_Job]) -> None:
    while True:
        jobs.get().help()


# A process that was forked has the queue and none of the threads.
os.register_at_fork(after_in_child=_jobs.cache_clear)
