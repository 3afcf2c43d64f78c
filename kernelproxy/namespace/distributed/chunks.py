"""Chunks: arrays of one device each that hold a part of a distributed one, and what passes between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Protocol

from kernelproxy.array.remote_array import ndarray
from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import ArrayLike
from kernelproxy.namespace import creation
from kernelproxy.namespace.cuda import Device, Event, get_current_stream
from kernelproxy.namespace.distributed import indices
from kernelproxy.namespace.distributed.indices import Index, IndexMap
from kernelproxy.namespace.distributed.modes import Mode


class Chunk:
    """A part of a distributed array.

    Attributes
    ----------
    array
        Its elements.
    ready
        Happens once all that was given to write them is done, on whatever stream.
    index
        Which elements of the whole they are.
    """

    __module__ = "cupyx.distributed.array._chunk"
    __slots__ = ("array", "index", "ready")

    def __init__(self, array: ndarray, ready: Event, index: Index) -> None:
        self.array = array
        self.ready = ready
        self.index = index

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let the chunk's device be the current one, and its stream wait until the elements are there."""
        with self.array.device:
            get_current_stream().wait_event(self.ready)
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Likewise; who comes later waits for what is written in the block."""
        with self.reading():
            yield
            get_current_stream().record(self.ready)

    def copy(self) -> Chunk:
        """Return a chunk of the same elements in memory of its own."""
        with self.reading():
            return made(self.array.copy(), self.index)

    def fill(self, part: Index, shape: Sequence[int], value: ArrayLike) -> None:
        """Set what the chunk has of ``part`` of the whole, which is of ``shape``, to ``value``."""
        both = indices.intersection(self.index, part, shape)
        if both is not None:
            with self.writing():
                self.array[indices.inside(self.index, both, shape)] = value

    def bring_to(self, other: Chunk, mode: Mode, shape: Sequence[int]) -> None:
        """Bring into ``other`` what both have of the whole, which is of ``shape``: over what it has, or added to it.

        Where an element must not be counted twice, this chunk has none of it any more.
        """
        both = indices.intersection(self.index, other.index, shape)
        if both is None:
            return
        here, there = indices.inside(self.index, both, shape), indices.inside(other.index, both, shape)
        with self.reading():
            part = made(self.array[here], both)
        with other.writing():
            moved = on_this_device(part)
            if mode is None:
                other.array[there] = moved
            else:
                other.array[there] = mode.func(other.array[there], moved)
        if mode is not None and not mode.idempotent:
            with other.reading():
                read = get_current_stream().record()
            with self.writing():
                get_current_stream().wait_event(read)  # before it is over written, it has been read
                self.array[here] = mode.identity_of(self.array.dtype)


ChunksMap = dict[int, list[Chunk]]


class Distributed(Protocol):
    """An array that is put together from chunks; each device has some."""

    _chunks_map: ChunksMap

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def index_map(self) -> IndexMap: ...


def made(array: ndarray, index: Index) -> Chunk:
    """Return the chunk of an ``array`` of the current device that the current stream has just made."""
    return Chunk(array, get_current_stream().record(), index)


def on_this_device(part: Chunk) -> ndarray:
    """Return the elements of ``part`` as an array of the current device: a copy if they are on another."""
    here = Device()
    if part.array.device == here:
        get_current_stream().wait_event(part.ready)
        return part.array
    with part.reading():  # from device to device CuPy copies what has no gaps
        dense = made(dispatch.call("cupy.ascontiguousarray", (part.array,), {}), part.index)
    get_current_stream().wait_event(dense.ready)
    moved: ndarray = creation.array(dense.array).reshape(part.array.shape)
    return moved


def all_reduce(mode: Mode, shape: Sequence[int], chunks_map: ChunksMap) -> None:
    """Give overlapping elements of all chunks, which ``mode`` reads together, their one value.

    Each chunk brings what it has to the next that has it too; the last one then holds the values, and hands them back.
    """
    chunks = list(chain.from_iterable(chunks_map.values()))
    for place, chunk in enumerate(chunks):
        for later in chunks[place + 1 :]:
            chunk.bring_to(later, mode, shape)
    for place in reversed(range(len(chunks))):
        for earlier in chunks[:place]:
            chunks[place].bring_to(earlier, None, shape)
