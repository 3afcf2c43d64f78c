"""How long the journal keeps what is done: as long as somebody could ask for it again."""

from __future__ import annotations

from collections.abc import Callable

from gpu_backend.opstream.marks import Marks

#: Returns the last op that is durable, of those that are done.
Retention = Callable[[Marks], int]


def until_done(marks: Marks) -> int:
    """Keep nothing that is done: no executor goes on from where another one has died."""
    return marks.done
