"""Ufuncs and elementwise kernels of distributed arrays: each chunk by itself, or part by part where chunks differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from kernelproxy.array.remote_array import ndarray
from kernelproxy.calls import dispatch
from kernelproxy.namespace.cuda import Device, get_current_stream
from kernelproxy.namespace.distributed import indices
from kernelproxy.namespace.distributed.chunks import Chunk, ChunksMap, Distributed, made, on_this_device
from kernelproxy.namespace.distributed.indices import Index
from kernelproxy.public_names import make

_Kernel = Callable[..., object]


def chunks_of(
    kernel: _Kernel, args: tuple[Distributed, ...], kwargs: Mapping[str, Distributed]
) -> tuple[ChunksMap, Any]:
    """Return the chunks of what ``kernel`` gives for arrays in the replica mode, and their dtype.

    Raises
    ------
    RuntimeError
        If the kernel gives no single array, or arrays differ in their chunks and are not two.
    ValueError
        If they differ in shape: nothing is broadcast.
    """
    first, *others = (*args, *kwargs.values())
    if any(one.shape != first.shape for one in others):
        shapes = ", ".join(str(one.shape) for one in (first, *others))
        raise ValueError(f"Distributed arrays are not broadcast, and these have different shapes: {shapes}")
    if all(one.index_map == first.index_map for one in others):
        return _chunk_by_chunk(kernel, args, kwargs)
    if len(args) > 2 or kwargs:
        raise RuntimeError(
            "Element-wise operation over more than two distributed arrays, or by keywords, is not supported unless "
            "they share the same index_map."
        )
    return _part_by_part(kernel, *args)


def _chunk_by_chunk(
    kernel: _Kernel, args: tuple[Distributed, ...], kwargs: Mapping[str, Distributed]
) -> tuple[ChunksMap, Any]:
    found: ChunksMap = {}
    dtype = None
    for device, chunks in (*args, *kwargs.values())[0]._chunks_map.items():
        found[device] = []
        for place, chunk in enumerate(chunks):
            with chunk.reading():
                given = [on_this_device(one._chunks_map[device][place]) for one in args]
                named = {name: on_this_device(one._chunks_map[device][place]) for name, one in kwargs.items()}
                result = _single(kernel(*given, **named))
                found[device].append(_chunk_of(result, [one._chunks_map[device][place] for one in args], chunk.index))
                dtype = result.dtype
    return found, dtype


def _chunk_of(result: ndarray, given: list[Chunk], index: Index) -> Chunk:
    """Return the chunk of a new ``result``; or the given one that was written, which others may share."""
    for chunk in given:
        if chunk.array is result:
            get_current_stream().record(chunk.ready)
            return chunk
    return made(result, index)


def _part_by_part(kernel: _Kernel, left: Distributed, right: Distributed) -> tuple[ChunksMap, Any]:
    """Compute on the devices of ``left``, which read what they lack of ``right``, or have it brought."""
    found: ChunksMap = {}
    dtype = None
    shape = left.shape
    for device, chunks in left._chunks_map.items():
        found[device] = []
        for chunk in chunks:
            with chunk.reading():
                nothing = [dispatch.call("cupy.empty", (0, one.dtype), {}) for one in (left, right)]
                dtype = _single(kernel(*nothing)).dtype
                result = dispatch.call("cupy.empty", (chunk.array.shape, dtype), {})
            for other in chain.from_iterable(right._chunks_map.values()):
                both = indices.intersection(chunk.index, other.index, shape)
                if both is None:
                    continue
                with other.reading():
                    part = made(other.array[indices.inside(other.index, both, shape)], both)
                with chunk.reading():
                    here = indices.inside(chunk.index, both, shape)
                    result[here] = kernel(chunk.array[here], _readable(part))
            with chunk.reading():
                found[device].append(made(result, chunk.index))
    return found, dtype


def _readable(part: Chunk) -> ndarray:
    """Return the elements of ``part`` for an op on the current device: where they lie, if it may read them there.

    CuPy reads them there too, and warns of it.
    """
    here, there = Device().id, part.array.device.id
    if here == there or not make("cupy.cuda.runtime.deviceCanAccessPeer")(here, there):
        return on_this_device(part)
    get_current_stream().wait_event(part.ready)
    return part.array


def _single(result: object) -> ndarray:
    if not isinstance(result, ndarray):
        raise RuntimeError("Kernels returning other than single array are not supported")
    return result
