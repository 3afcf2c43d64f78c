"""Copying bytes from memory to memory: much of it by several processors at once, where that is compiled.

One processor moves some 10 GB/s, and where the memory is new half of that, as each page costs it a fault; the memory
itself has a multiple.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from gpu_backend import sources
from gpu_backend.transport.processors import has_spare

__all__ = ["address_of", "copy", "fault_in"]

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

#: What is less is copied by one: to wake another takes as long.
_LEAST_BYTES = 512 << 10
#: As much memory is new whenever it is asked for (glibc's largest threshold), and what is less mostly is not.
_NEW_BYTES = 32 << 20
#: Processors that copy at most, the caller's among them. Four come close to what the memory of a host can do.
_MOST = 4

_compiled = sources.in_c("gpu_backend.transport._copying")


def address_of(memory: Bytes) -> int:
    """Return where ``memory`` begins."""
    address: int = memory.__array_interface__["data"][0]  # by `ctypes` it takes five times as long
    return address


def copy(into: Bytes, source: Bytes) -> None:
    """Copy ``source`` to ``into``, of the same length and contiguous both; done when this returns.

    An interrupt is heard once nobody copies any more: the memory may be the user's, who has it back then.
    """
    if _compiled is not None and len(source) >= _LEAST_BYTES and has_spare():
        _compiled.copy(into, source, _MOST)
    else:
        into[:] = source


def fault_in(memory: Bytes) -> None:
    """Have the system put pages behind new ``memory``, of which nothing is used yet, if it is so large that it is new.

    Pages may be large, and are cleared as a whole: where several copy into one at a time, each clears it. So each of
    several processors gets whole ones for itself here.
    """
    if _compiled is not None and len(memory) >= _NEW_BYTES and has_spare():
        _compiled.fault_in(memory, _MOST)
