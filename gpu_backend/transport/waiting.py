"""Waiting awake for a number in shared memory to change, with a rest between two looks where that is compiled.

Who waits so waits for somebody else to compute, often on the other half of the same core, or on a processor that the
same host shares out. Python looks as fast as it can and takes a good part of that; ``csrc/waiting.c`` hardly any.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from gpu_backend import sources

__all__ = ["changes"]

Changes = Callable[[memoryview, int, int, float], bool]


def _looked_for(words: memoryview, place: int, seen: int, until: float) -> bool:
    while words[place] == seen:
        if monotonic() >= until:
            return False
    return True


_compiled = sources.in_c("gpu_backend.transport._waiting")

#: Tells whether the word at a place of these, which are of 64 bits, is another number than was seen: now, or before the
#: time that comes last, of `time.monotonic`, which `time.perf_counter` is here as well. It keeps the interpreter, so
#: whoever calls waits for moments at a time.
changes: Changes = _looked_for if _compiled is None else _compiled.changes
