"""Whether the quick ways of recording are compiled: the one place that knows.

Each is a Python function, which is the reference, and may have a compiled way that goes first (``csrc/core.c``): that
knows the plain case only, of ops that have been recorded before and of trips, and hands everything else to the Python
function. Without a compiled core, which an install without a compiler lacks, the Python function is all there is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

#: Says whether the compiled core is used: "on", "off", or "auto" (the default) for where there is one.
CORE_VARIABLE = "GPU_WORKBENCH_COMPILED_CORE"

Way = TypeVar("Way")


def _core() -> Any:
    """Return the compiled core, or None.

    Raises
    ------
    ImportError
        If it is asked for and is not there.
    ValueError
        If the environment says something else than "on", "off" or "auto".
    """
    said = os.environ.get(CORE_VARIABLE) or "auto"
    if said not in ("on", "off", "auto"):
        raise ValueError(f"{CORE_VARIABLE} is {said!r}. It may be on, off or auto.")
    if said == "off":
        return None
    try:
        return import_module("kernelproxy._core")
    except ImportError as error:
        if said == "auto":
            return None
        raise ImportError(
            f"{CORE_VARIABLE} is on, and this install has no compiled core for this Python ({error}). Install a wheel "
            "that has it, or install again where there is a C compiler; see docs/how-to/build-wheels.md."
        ) from error


_found = _core()

#: Whether recording is compiled in this process.
is_compiled = _found is not None


def quick(kind: str, pure: Way, *of: object) -> Way:
    """Return the compiled way of ``kind`` that stands before ``pure``; ``pure`` itself where nothing is compiled."""
    made: Way = pure if _found is None else _found.quick(kind, pure, *of)
    return made


def lock() -> Any:
    """Return a lock as of `threading.RLock`, which is taken and given back for each op."""
    return threading.RLock() if _found is None else _found.Lock()


@contextmanager
def used(are_used: bool) -> Iterator[None]:
    """Return a context in which compiled ways are taken, or none of them: for tests that go both ways."""
    if _found is None:
        yield
        return
    were_used = _found.use(are_used)
    try:
        yield
    finally:
        _found.use(were_used)


def learn(**parts: object) -> None:
    """Hand the compiled ways what they deal with: classes, tables and functions, by their names."""
    if _found is not None:
        _found.learn(**parts)
