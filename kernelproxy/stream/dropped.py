"""Handles whose objects the notebook has dropped, on their way to the executor."""

from __future__ import annotations

from collections import deque

from gpu_backend.opstream.layout import Layout

#: Filled at the right by finalizers, in whatever thread the collector chose; emptied at the left by whoever records an
#: op, once the op that carries them is noted. With each its layout, if its memory can serve for a result like it.
DroppedHandles = deque[tuple[int, Layout | None]]


def oldest(dropped: DroppedHandles, count: int, layout: Layout | None) -> tuple[tuple[int, ...] | None, int]:
    """Return the first ``count`` handles, and apart from them one whose memory fits ``layout``, or 0. Takes none out.

    An interrupt before they are taken out makes them be dropped twice, which is harmless; the other way they would
    never be dropped.
    """
    if count == 1:
        handle, spare = dropped[0]
        return (None, handle) if layout is not None and spare is layout else ((handle,), 0)
    # By place: a finalizer may append while we look, and iterating would break.
    handles = [dropped[place][0] for place in range(count)]
    reuse = handles.pop() if layout is not None and dropped[count - 1][1] is layout else 0
    return tuple(handles), reuse
