"""An interrupt that strikes while an object ends: a remote one ends all the same, and the cell hears it.

Python runs signal handlers between any two instructions, those of ``__del__`` and of weak containers too, and only
prints what they raise: a cell that makes arrays in a loop would now and then not hear that it was interrupted, and the
array's memory would stay taken in the executor. Where nothing else is in the way, such an end has no line of Python at
all: `gpu_backend.transport.endings`.
"""

from __future__ import annotations

import _thread
import sys
from types import TracebackType
from typing import Any

from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.remote_object import RemoteObject

_ENDS = (ArrayCore.__del__, RemoteObject.__del__)
_previous: Any = None


def install() -> None:
    """Have interrupts that strike while something ends delivered again, from now on. Idempotent."""
    global _previous
    if sys.unraisablehook is not _deliver_again:
        _previous, sys.unraisablehook = sys.unraisablehook, _deliver_again


def _deliver_again(unraisable: sys.UnraisableHookArgs) -> None:
    is_interrupt = issubclass(unraisable.exc_type, KeyboardInterrupt)
    if is_interrupt and unraisable.object in _ENDS:
        if unraisable.exc_traceback is not None:
            _end_again(unraisable.exc_traceback)
    else:  # an end that is not ours stays undone, which is told as ever
        _previous(unraisable)
    if is_interrupt:
        # From a thread, so that it strikes later: here it would be raised in this function, and only be printed again.
        _thread.start_new_thread(_thread.interrupt_main, ())


def _end_again(interrupted: TracebackType) -> None:
    """End what was ending; if its handle was dropped already it is dropped twice, which is harmless."""
    ending = interrupted.tb_frame.f_locals.get("self")
    if isinstance(ending, ArrayCore | RemoteObject):
        ending.__del__()
