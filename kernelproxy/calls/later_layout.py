"""Layouts that are known later: of arrays whose shape depends on values, asked for when somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import ref

from gpu_backend.opstream.layout import Layout, SomeRows, strided
from gpu_backend.wire import values as wire
from gpu_backend.wire.messages import Want
from kernelproxy import compiled
from kernelproxy.calls.decoding import told_layout
from kernelproxy.client import Client
from kernelproxy.mirror import counts
from kernelproxy.mirror.entries import Counted

__all__ = ["LaterLayout", "Rows", "known_layout", "most_bytes"]


class Rows(NamedTuple):
    """What says how many rows an array has: one object for what was chosen and all that is made of it row by row.

    Attributes
    ----------
    of
        The mask that has as many true elements; None if no mask has chosen them.
    op
        The number of the op that chose them; 0 if another op came between, or if ``counted`` says more.
    told
        How many, once somebody has asked; empty until then.
    counted
        Where to say how many rows there are, if that is of use.
    known_count
        How many, if that was known when they were chosen.
    """

    of: wire.Ref | wire.View | None
    op: int
    told: list[int]  # of its own each: no default
    counted: Counted | None = None
    known_count: int | None = None


#: What of a layout does not depend on how many rows there are.
_OF_ROWS: dict[str, Callable[[SomeRows], object]] = {
    "dtype": lambda kind: kind.dtype,
    "itemsize": lambda kind: kind.dtype.itemsize,
    "ndim": lambda kind: 1 + len(kind.rest),
}


def _layout_of(client: Client, handle: int) -> Layout:
    """Return how the array ``handle`` lies. Waits for all that computes it."""
    stream = client.streams.current_handle()
    return told_layout(client.pipeline.call(".layout", (wire.Ref(handle),), Want.DESCRIPTION, None, None, stream).value)


class LaterLayout(Layout):
    """The layout of an array whose shape depends on values: asked for when somebody looks at any of it.

    Attributes
    ----------
    most_bytes
        How much memory the array holds at most.
    is_known
        Whether it has been asked for.
    kind
        What is known of it, if all but the number of its rows is, and as long as that is not: ops on such arrays are
        known by it, as others are by layouts.
    rows
        What says how many rows there are, if ``kind`` says the rest.

    Parameters
    ----------
    array
        The array that lies so, and is told when it is known how: one that owns the memory of ``handle``.
    """

    __slots__ = ("_array", "_client", "_handle", "is_known", "kind", "most_bytes", "rows")

    def __init__(
        self, array: Any, handle: int, most_bytes: int, kind: SomeRows | None = None, rows: Rows | None = None
    ) -> None:
        self._array, self._client, self._handle = ref(array), array._client, handle
        self.most_bytes = most_bytes
        self.is_known = False
        self.kind, self.rows = kind, rows

    def __getattr__(self, name: str) -> Any:
        # Python looks here for what is nowhere else: every slot of a layout, until it is known.
        if self.is_known or name not in Layout.__slots__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        kind = self.kind
        if kind is not None and name in _OF_ROWS:
            return _OF_ROWS[name](kind)
        return getattr(self._learn(kind, self.rows), name)

    def _learn(self, kind: SomeRows | None, rows: Rows | None) -> Layout:
        """Return the layout, which is known from now on. Waits for all that computes it, unless the length is known."""
        known = _counted(kind, rows) or _layout_of(self._client, self._handle)
        for slot in Layout.__slots__:
            setattr(self, slot, getattr(known, slot))
        self.is_known, self.kind = True, None
        if rows is not None and not rows.told:
            rows.told.append(known.shape[0])
        if rows is not None and rows.of is not None and rows.counted is not None:
            pipeline = self._client.pipeline
            with pipeline.recording:
                counts.note(pipeline.mirror, rows.of, rows.counted, known.shape[0])
        array = self._array()
        if array is not None and array._layout is self:
            array._layout = known  # the one with these properties, by which proofs are found again
        memory = self._client.memory
        if self.most_bytes > memory.small_bytes:
            memory.note(self._handle, known.held_bytes)
        return known


def known_layout(array: Any) -> Layout:
    """Return the layout by which proofs about ``array`` are found again. Waits for all that computes it, if it must.

    A layout that was known later is another object for each array: what is remembered of it is never found again.
    """
    layout: Layout = array._layout
    if type(layout) is LaterLayout:
        layout = array._layout = strided(layout.shape, layout.strides, layout.dtype)
    return layout


def most_bytes(layout: Layout) -> int:
    """Return how many bytes an array of ``layout`` has; at most, where to ask for it would wait."""
    return layout.most_bytes if type(layout) is LaterLayout and not layout.is_known else layout.nbytes


def _counted(kind: SomeRows | None, rows: Rows | None) -> Layout | None:
    """Return the layout if the mask was known, or something else that it selected was asked how much that is."""
    if kind is None or rows is None:
        return None
    count = rows.told[0] if rows.told else rows.known_count
    if count is None and rows.of is not None and rows.counted is not None:
        count = rows.counted.counts.get(rows.of)
    return None if count is None else kind.with_count(count)


compiled.learn(LaterLayout=LaterLayout, Rows=Rows, SomeRows=SomeRows, Counted=Counted)
