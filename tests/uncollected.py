"""Moments without garbage collection: it may begin at any allocation, and run what others hang on it in the middle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect nothing meanwhile: neither finalizers of what other tests left nor a library's callbacks are run."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
