"""Where the elements of an array lie, in exact integers: what a notebook asks for may overflow a machine's words."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_backend.opstream.layout import DType

#: What array libraries count in: signed words of 64 bits.
_LARGEST = (1 << 63) - 1
#: NumPy's limit; CuPy's own is lower, and it says so itself.
_MOST_AXES = 64


def reach(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Return the first byte and the one after the last of an array, relative to its first element.

    Parameters
    ----------
    shape
        Its extents; none of them is 0.
    strides
        Bytes from each element to the next, by axis.
    itemsize
        Bytes of one element.
    """
    low, high = 0, itemsize
    for extent, stride in zip(shape, strides, strict=True):
        if stride < 0:
            low += stride * (extent - 1)
        else:
            high += stride * (extent - 1)
    return low, high


def require_within(
    offset: int, shape: Sequence[int], strides: Sequence[int], dtype: DType, memory: tuple[int, int]
) -> None:
    """Refuse a view any of whose elements lies outside ``memory``: from its first byte to the one after its last.

    Raises
    ------
    ValueError
        If one does, if the extents or the dtype cannot be those of an array, or if they overflow.
    """
    itemsize = dtype.itemsize
    if dtype.kind in "VOSUT" and (not itemsize or dtype.hasobject or dtype.subdtype is not None):
        raise ValueError(f"no array can have elements of the dtype {dtype}")
    if len(shape) > _MOST_AXES or len(shape) != len(strides):
        raise ValueError(f"{len(shape)} extents and {len(strides)} strides are not those of an array")
    low, high, size, is_empty = 0, itemsize, itemsize, False
    for extent, stride in zip(shape, strides, strict=True):  # one pass: views are made by the thousand
        if extent > 1:
            size *= extent  # of an array without elements too: libraries multiply in any order
            if stride < 0:
                low += stride * (extent - 1)
            else:
                high += stride * (extent - 1)
        elif extent < 0:
            raise ValueError(f"the extent {extent} is negative")
        elif not extent:
            is_empty = True
    if size > _LARGEST:
        raise ValueError(f"the shape {shape} overflows 64 bits")
    if is_empty:
        low = high = 0
    if offset + low < memory[0] or offset + high > memory[1]:
        raise ValueError(
            f"the view of shape {shape}, strides {strides} and dtype {dtype} at byte {offset} reaches beyond the "
            f"{memory[1] - memory[0]} bytes of its root array"
        )
