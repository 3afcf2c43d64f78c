"""Arguments that carry out a kernel themselves, as CuPy lets them: distributed arrays do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

__all__ = ["elementwise"]


def elementwise(kernel: object, operands: Iterable[object]) -> Callable[..., Any] | None:
    """Return what carries out ``kernel``, a ufunc or an elementwise kernel, if one of its ``operands`` does.

    It is called with all that the kernel was given.
    """
    for one in operands:
        if hasattr(type(one), "__cupy_override_elementwise_kernel__"):
            hook: Callable[..., Any] = one.__cupy_override_elementwise_kernel__  # type: ignore[attr-defined]
            return partial(hook, kernel)
    return None
