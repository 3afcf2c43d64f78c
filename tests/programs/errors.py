"""What an error keeps alive ends with it, so that memory is there again when it was handled."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import cupy as cp

gc.disable()


class Kept:
    """What a user's frame holds."""


def kept_alive_by(call: Callable[[], object]) -> tuple[str, bool]:
    kept = Kept()
    reference = weakref.ref(kept)
    name = ""

    def frame(holds: Kept) -> None:
        call()

    try:
        frame(kept)
    except Exception as error:
        name = type(error).__name__
    del kept
    return name, reference() is not None


def failing(row: cp.ndarray) -> cp.ndarray:
    raise KeyError


x = cp.zeros(3)
bad = cp.ElementwiseKernel("T x", "T y", "y = nothing_of_that_name", "bad")
assert kept_alive_by(lambda: cp.zeros(10**14)) == ("OutOfMemoryError", False)
assert kept_alive_by(lambda: x[7]) == ("IndexError", False)
assert kept_alive_by(lambda: x + cp.zeros(4)) == ("ValueError", False)
assert kept_alive_by(lambda: cp.add(x, "a")) == ("TypeError", False)
assert kept_alive_by(lambda: cp.linalg.inv(cp.zeros(3))) == ("LinAlgError", False)
assert kept_alive_by(lambda: cp.apply_along_axis(failing, 0, x)) == ("KeyError", False)
assert kept_alive_by(lambda: bad(x)) == ("CompileException", False)
