"""Products of distributed matrices: of blocks, each on a device that has both factors; and how a matrix is cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from kernelproxy.calls import dispatch
from kernelproxy.namespace.distributed.chunks import Chunk, ChunksMap, Distributed, made, on_this_device
from kernelproxy.namespace.distributed.indices import Index, IndexMap

#: Start and stop on one axis.
_Range = tuple[int, int]
#: Where the blocks of the matrices of one batch are: rows and columns, then the device, then the chunk.
_Blocks = dict[tuple[_Range, _Range], dict[int, Chunk]]
#: For each axis in front of the last two, what is selected.
_Batch = tuple[tuple[int, int, int], ...]


def chunks_of(a: Distributed, b: Distributed, options: dict[str, object]) -> tuple[ChunksMap, Any]:
    """Return the chunks whose sum is ``a @ b``, arrays of two dimensions or more, and their dtype.

    Raises
    ------
    ValueError
        If shapes do not match.
    RuntimeError
        If blocks do not match, or no device has both blocks of a product.
    """
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise ValueError("Shapes are incompatible")
    batches, others = _by_batch(a), _by_batch(b)
    if batches.keys() != others.keys():
        raise RuntimeError("Mismatched batch shapes")
    found: ChunksMap = {device: [] for device in a._chunks_map}
    dtype = None
    for batch, blocks in batches.items():
        rest = tuple(slice(*one) for one in batch)
        for rows, columns, device, left, right in _plan(blocks, others[batch]):
            with left.reading():
                product = dispatch.call("cupy.matmul", (left.array, on_this_device(right)), options)
                found[device].append(made(product, (*rest, slice(*rows, 1), slice(*columns, 1))))
                dtype = product.dtype
    return found, dtype


def _by_batch(array: Distributed) -> dict[_Batch, _Blocks]:
    found: dict[_Batch, _Blocks] = {}
    for device, chunks in array._chunks_map.items():
        for chunk in chunks:
            *batch, rows, columns = (one.indices(length) for one, length in zip(chunk.index, array.shape, strict=True))
            if rows[2] != 1 or columns[2] != 1:
                raise RuntimeError("Step other than 1 is not supported")
            blocks = found.setdefault(tuple(batch), {})
            blocks.setdefault((rows[:2], columns[:2]), {})[device] = chunk
    return found


def _plan(a: _Blocks, b: _Blocks) -> Iterable[tuple[_Range, _Range, int, Chunk, Chunk]]:
    """Yield the rows and columns of each product of blocks, and the device and the chunks that make it.

    Of several devices that could, the one with the least to do so far does.
    """
    inner = _cuts([columns for _, columns in a], [rows for rows, _ in b])
    work: dict[int, int] = {}
    for rows in _cuts([rows for rows, _ in a]):
        for columns in _cuts([columns for _, columns in b]):
            for cut in inner:
                left, right = a.get((rows, cut), {}), b.get((cut, columns), {})
                able = left.keys() & right.keys()
                if not able:
                    raise RuntimeError(
                        "There is no device that can perform multiplication between block "
                        f"{(rows, cut)} and {(cut, columns)}"
                    )
                device = min(able, key=lambda one: (work.get(one, 0), one))
                work[device] = work.get(device, 0) + (rows[1] - rows[0]) * (columns[1] - columns[0])
                yield rows, columns, device, left[device], right[device]


def _cuts(*ranges: Sequence[_Range]) -> list[_Range]:
    """Return the ranges in order, if they are the same pieces of the axis everywhere."""
    found = sorted({one for several in ranges for one in several})
    if any(before[1] > after[0] for before, after in pairwise(found)):
        raise RuntimeError("Inconsistent index mapping")
    return found


def make_2d_index_map(
    i_partitions: list[int], j_partitions: list[int], devices: list[list[set[int]]]
) -> dict[int, list[Index]]:
    """Return the index map of a matrix that is cut at these rows and columns, by the devices that have each block.

    Raises
    ------
    ValueError
        If cuts do not begin at 0 and grow, or ``devices`` has not one set for each block.
    """
    for cuts in (i_partitions, j_partitions):
        if cuts[0] != 0 or sorted(set(cuts)) != cuts:
            raise ValueError(f"A partition begins at 0 and grows; {cuts} does not.")
    if len(devices) != len(i_partitions) - 1 or any(len(row) != len(j_partitions) - 1 for row in devices):
        raise ValueError("devices must have one set for each block: a list for each row of blocks.")
    found: IndexMap = {}
    for rows, row in zip(pairwise(i_partitions), devices, strict=True):
        for columns, block in zip(pairwise(j_partitions), row, strict=True):
            for device in block:
                found.setdefault(device, []).append((slice(*rows), slice(*columns)))
    return found
