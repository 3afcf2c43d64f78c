"""The current stream of each thread, by the handle that ops carry."""

from __future__ import annotations

import threading
from typing import Any


class _Current(threading.local):
    stream: Any = None


_current = _Current()
#: False until some thread leaves the default stream: until then nobody pays for looking.
_used = False


def current_handle() -> int:
    """Return the handle of this thread's current stream; 0 for the default one."""
    return _current_handle() if _used else 0


def is_used() -> bool:
    """Tell whether any thread has ever left the default stream."""
    return _used


def _current_handle() -> int:
    stream = _current.stream
    return 0 if stream is None else stream._handle


def current() -> Any:
    """Return this thread's current stream, or None for the default one."""
    return _current.stream


def set_current(stream: Any) -> Any:
    """Make ``stream`` this thread's current stream and return the one before; None is the default one."""
    global _used
    _used = True
    before = _current.stream
    _current.stream = stream
    return before
