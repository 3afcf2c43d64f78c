"""What something costs, in calls: the same on every machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.uncollected import uncollected


def calls_of(act: Callable[[], object]) -> int:
    """Return how many functions are called while ``act`` runs, in Python and in C."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    former = sys.getprofile()
    with uncollected():
        sys.setprofile(note)
        try:
            act()
        finally:
            sys.setprofile(former)
    return count - 1  # to set the former one is a call too
