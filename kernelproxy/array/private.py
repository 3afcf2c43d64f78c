"""Members of ``cupy.ndarray`` that its compiled class shows and its documentation does not; programs use them."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_backend.opstream.layout import Layout, strided
from gpu_backend.wire import values as wire
from kernelproxy.calls import array_core
from kernelproxy.calls.array_core import ArrayCore

#: CuPy's: MAX_NDIM of ``cupy/_core/_carray.pxd``.
_MOST_AXES = 25


class PrivateMembers(ArrayCore):
    """What stands below the public members."""

    __slots__ = ()

    @property
    def _c_contiguous(self) -> bool:
        return self._layout.c_contiguous

    @property
    def _f_contiguous(self) -> bool:
        return self._layout.f_contiguous

    def _set_shape_and_strides(
        self, shape: Sequence[int], strides: Sequence[int], update_c_contiguity: bool, update_f_contiguity: bool
    ) -> None:
        """Let this array show its memory by another shape and other strides, in bytes.

        CuPy asks whether to look anew how the array lies; here that is always known.

        Raises
        ------
        ValueError
            If they are not of one length, of too many axes, or lead out of the memory that the array shows.
        """
        if len(shape) != len(strides):
            raise ValueError("len(shape) != len(strides)")
        if len(shape) > _MOST_AXES:
            raise ValueError(f"maximum supported dimension for an ndarray is {_MOST_AXES}, found {len(shape)}")
        wanted = strided(tuple(map(int, shape)), tuple(map(int, strides)), self._layout.dtype)
        _require_within_root(self, wanted)
        array_core.relayout(self, wanted)


def _require_within_root(array: ArrayCore, wanted: Layout) -> None:
    reference = array._ref
    start = reference.offset if isinstance(reference, wire.View) else 0
    root = array if array._root is None else array._root
    first, end = _reach(root._layout)
    low, high = _reach(wanted)
    if wanted.size and not (first <= start + low and start + high <= end):
        raise ValueError(
            f"shape {wanted.shape} and strides {wanted.strides} lead out of the {end - first} bytes of its memory"
        )


def _reach(layout: Layout) -> tuple[int, int]:
    """Return where the first byte of an array lies and where its last one ends, from its first element."""
    if not layout.size:
        return 0, 0
    steps = [(extent - 1) * stride for extent, stride in zip(layout.shape, layout.strides, strict=True)]
    return sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps) + layout.itemsize
