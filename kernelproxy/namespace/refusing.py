"""Names that are there as CuPy's are, and say why they cannot be had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def refusing(name: str, why: str) -> Callable[..., Any]:
    """Return a function called ``name`` that raises RuntimeError, with ``why`` as its message."""

    def refuse(*args: object, **kwargs: object) -> Any:
        raise RuntimeError(why)

    refuse.__name__ = refuse.__qualname__ = name
    return refuse
