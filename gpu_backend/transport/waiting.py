"""Waiting awake for a number in shared memory to change, with a rest between two looks where that is compiled.

Who waits so waits for somebody else to compute, often on the other half of the same core, or on a processor that the
same host shares out. Python looks as fast as it can and takes a good part of that; ``csrc/waiting.c`` hardly any.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from time import monotonic
from typing import Any

from gpu_backend import sources

__all__ = ["changes"]

Changes = Callable[[memoryview, int, int, float], bool]


def _looked_for(words: memoryview, place: int, seen: int, until: float) -> bool:
    while words[place] == seen:
        if monotonic() >= until:
            return False
    return True


def _changes() -> Changes:
    if sources.are_asked_for():
        return _looked_for
    try:
        core: Any = import_module("gpu_backend.transport._waiting")
    except ImportError:
        return _looked_for
    found: Changes = core.changes
    return found


#: Tells whether the word at a place of these, which are of 64 bits, is another number than was seen: now, or before the
#: time that comes last, of `time.monotonic`, which `time.perf_counter` is here as well. It keeps the interpreter, so
#: whoever calls waits for moments at a time.
changes: Changes = _changes()
