"""An interrupt that strikes while an object ends: a remote one ends all the same, and the cell hears it.

Python runs signal handlers between any two instructions, those of ``__del__`` and of weak containers too, and only
prints what they raise: a cell that makes arrays in a loop would now and then not hear that it was interrupted, and the
array's memory would stay taken in the executor. Where nothing else is in the way, such an end has no line of Python at
all: `gpu_backend.transport.endings`.
"""

from __future__ import annotations

import _thread
import inspect
import sys
from types import TracebackType
from typing import Any

from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.remote_object import RemoteObject

#: The code of our finalizers. From 3.14 on Python does not hand over the finalizer any more, but where it was struck.
_ENDS = frozenset(inspect.unwrap(one.__del__).__code__ for one in (ArrayCore, RemoteObject))
_previous: Any = None


def install() -> None:
    """Have interrupts that strike while something ends delivered again, from now on. Idempotent."""
    global _previous
    if sys.unraisablehook is not _deliver_again:
        _previous, sys.unraisablehook = sys.unraisablehook, _deliver_again


def _deliver_again(unraisable: sys.UnraisableHookArgs) -> None:
    is_interrupt = issubclass(unraisable.exc_type, KeyboardInterrupt)
    ending = _struck(unraisable.exc_traceback) if is_interrupt else None
    if ending is not None:
        ending.__del__()  # if its handle was dropped already it is dropped twice, which is harmless
    else:  # an end that is not ours stays undone, which is told as ever
        _previous(unraisable)
    if is_interrupt:
        # From a thread, so that it strikes later: here it would be raised in this function, and only be printed again.
        _thread.start_new_thread(_thread.interrupt_main, ())


def _struck(interrupted: TracebackType | None) -> ArrayCore | RemoteObject | None:
    """Return what was ending where an interrupt struck; None if that is none of ours."""
    if interrupted is None or interrupted.tb_frame.f_code not in _ENDS:
        return None
    ending = interrupted.tb_frame.f_locals.get("self")
    return ending if isinstance(ending, ArrayCore | RemoteObject) else None
