"""What is done when an object ends, without a line of Python: an interrupt strikes between two of those.

Python only prints what a finalizer raises. A ``KeyboardInterrupt`` that strikes in one, or in the code of
`weakref.finalize` around it, would be lost, and what the finalizer had to do would be left undone.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import Any

__all__ = ["at_end", "ending"]


def at_end(one: Any, action: Callable[..., object], *args: object) -> weakref.ref[Any]:
    """Return a reference that calls ``action(*args)`` when ``one`` ends; keep it for as long.

    No interrupt strikes in it if ``action`` is written in C, as methods of containers are.
    """
    return weakref.ref(one, ending(action, *args))


def ending(action: Callable[..., object], *args: object) -> Callable[[object], object]:
    """Return what a `weakref.ref` can be given to call, for any number of objects that end; else as `at_end`."""
    # Called with the reference, which ``next`` takes for what to return at the end of an iterator: there is none.
    return partial(next, map(action, *map(repeat, args)))
