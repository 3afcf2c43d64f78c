"""An interrupt that strikes in the moment in which an array ends is delivered again.

Python runs signal handlers between any two instructions, those of ``__del__`` too, and only prints what they raise:
a cell that makes arrays in a loop would now and then not hear that it was interrupted.
"""

from __future__ import annotations

import _thread
import sys
from typing import Any

from kernelproxy.array_core import ArrayCore

_previous: Any = None


def install() -> None:
    """Have interrupts that strike while an array ends delivered again, from now on. Idempotent."""
    global _previous
    if sys.unraisablehook is not _deliver_again:
        _previous, sys.unraisablehook = sys.unraisablehook, _deliver_again


def _deliver_again(unraisable: sys.UnraisableHookArgs) -> None:
    if issubclass(unraisable.exc_type, KeyboardInterrupt) and unraisable.object is ArrayCore.__del__:
        _thread.interrupt_main()
    else:
        _previous(unraisable)
