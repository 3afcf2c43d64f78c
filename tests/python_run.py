"""Which functions of Python a call runs: an interrupt may strike in each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from tests.uncollected import uncollected


def python_run(action: Callable[[], object]) -> list[str]:
    """Call ``action``, which is written in C, and return the names of the functions of Python that ran."""
    seen: list[str] = []

    def look(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            seen.append(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)

    before = sys.getprofile()
    with uncollected():
        sys.setprofile(look)
        try:
            action()
        finally:
            sys.setprofile(before)
    return seen
