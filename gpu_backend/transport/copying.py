"""Copying bytes from memory to memory: much of it by several processors at once.

One processor moves some 10 GB/s, and where the memory is new half of that, as each page costs it a fault; the memory
itself has a multiple. NumPy lets go of the interpreter while it copies.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np

from gpu_backend.transport.processors import has_spare

__all__ = ["copy"]

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

#: What is less is copied by one: to wake another takes as long.
_LEAST_BYTES = 2 << 20
#: Processors that copy at most, the caller's among them. Four come close to what the memory of a host can do.
_MOST = 4
_PAGE_BYTES = 4096


def copy(into: Bytes, source: Bytes) -> None:
    """Copy ``source`` to ``into``, of the same length and contiguous both; done when this returns.

    If an interrupt strikes, others may go on with their parts for a moment: both memories stay until they are done.
    """
    size = len(source)
    if size < _LEAST_BYTES or not has_spare():
        into[:] = source
        return
    part = -(-size // _MOST // _PAGE_BYTES) * _PAGE_BYTES
    done: SimpleQueue[None] = SimpleQueue()
    tasks = _others()
    starts = range(part, size, part)
    for start in starts:
        tasks.put((into[start : start + part], source[start : start + part], done))
    into[:part] = source[:part]
    for _ in starts:
        done.get()


_Task = tuple[Bytes, Bytes, "SimpleQueue[None]"]


@cache
def _others() -> SimpleQueue[_Task]:
    """Return the queue of those who copy beside the caller; they sleep while it is empty."""
    tasks: SimpleQueue[_Task] = SimpleQueue()
    for number in range(1, _MOST):
        threading.Thread(target=_work, args=(tasks,), name=f"copying {number}", daemon=True).start()
    return tasks


def _work(tasks: SimpleQueue[_Task]) -> None:
    while True:
        into, source, done = tasks.get()
        into[:] = source
        del into, source  # memory is used again when nobody looks into it any more
        done.put(None)
        del done


# A process that was forked has the queue and none of the threads.
os.register_at_fork(after_in_child=_others.cache_clear)
