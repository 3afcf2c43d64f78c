"""The nest of loops that goes over the elements of several arrays of one shape.

Axes that all arrays can pass through as one are joined, axes of length 1 dropped; what is left is described by numbers
that the compiled code takes at run time (lengths and strides) and by a few that it is compiled for (how many axes, and
how each array moves along the innermost one).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

#: How an array moves along the innermost axis: to the next element, not at all, or by a stride known at run time.
Step = Literal["unit", "none", "any"]


class LoopNest(NamedTuple):
    """Loops over ``shape``; ``strides[a]`` are those of array ``a``, in bytes."""

    shape: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    def steps(self, itemsizes: Sequence[int]) -> tuple[Step, ...]:
        """Return how each array moves along the innermost axis."""
        return tuple(_step(strides[-1], size) for strides, size in zip(self.strides, itemsizes, strict=True))

    @property
    def numbers(self) -> list[int]:
        """Lengths, then each array's strides, as the compiled code reads them."""
        return [*self.shape, *(stride for strides in self.strides for stride in strides)]


def _step(stride: int, itemsize: int) -> Step:
    return "unit" if stride == itemsize else "none" if stride == 0 else "any"


def joined(shape: Sequence[int], strides: Sequence[Sequence[int]], *, any_order: bool = False) -> LoopNest:
    """Return the fewest loops that visit every element once.

    Parameters
    ----------
    shape
        Lengths of the axes; none is 0.
    strides
        For each array its strides, in bytes; 0 along an axis that it is repeated over.
    any_order
        Visit the elements in the order of memory, outputs (the last arrays) first, instead of in C order.
    """
    axes = [axis for axis, length in enumerate(shape) if length != 1]
    if any_order:
        axes.sort(key=lambda axis: tuple(-abs(array[axis]) for array in reversed(strides)))
    lengths: list[int] = []
    moves: list[list[int]] = [[] for _ in strides]
    for axis in axes:
        if lengths and all(move[-1] == array[axis] * shape[axis] for move, array in zip(moves, strides, strict=True)):
            lengths[-1] *= shape[axis]
            for move, array in zip(moves, strides, strict=True):
                move[-1] = array[axis]
        else:
            lengths.append(shape[axis])
            for move, array in zip(moves, strides, strict=True):
                move.append(array[axis])
    if not lengths:
        return LoopNest((1,), tuple((0,) for _ in strides))
    return LoopNest(tuple(lengths), tuple(tuple(move) for move in moves))


def kernel_shape(
    shape: tuple[int, ...], strides: Sequence[Sequence[int]], contiguous: Sequence[bool], *, alone: bool
) -> tuple[int, ...]:
    """Return the shape that a kernel of CuPy with ``reduce_dims`` sees: that of ``_ind`` and of the arrays in its loop.

    Parameters
    ----------
    shape
        Of the loop; no length is 0.
    strides
        Of each array that the loop goes over, in bytes, broadcast to ``shape``.
    contiguous
        Which of these arrays lie in C order.
    alone
        Whether the kernel has no other argument than the one array.
    """
    if len(shape) < 2 or not strides:
        return shape
    if all(contiguous):
        return (math.prod(shape),)
    if len(shape) == 2 and not alone:  # CuPy does not look closer
        return shape
    strided = [array for array, flat in zip(strides, contiguous, strict=True) if not flat]
    return joined(shape, strided).shape
