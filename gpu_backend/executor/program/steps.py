"""What an elementwise op is as an instruction, for operands that lie in certain ways: pure geometry.

All but addresses and numbers is the same whenever the op comes again with operands that lie so, so it is worked out
once, as a template.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from gpu_backend.devices.segments import AXES, INSTRUCTION_BYTES, OPERANDS, WORDS, Routine
from gpu_backend.opstream.layout import Layout, Shape, contiguous

__all__ = ["Step", "make_step", "result_shape"]

_LARGEST_STRIDE = (1 << 31) - 1


class Step:
    """One way in which an op comes, as an instruction."""

    __slots__ = ("code", "elements", "has_numbers", "made", "mixes_nans", "numbers", "template")

    def __init__(self, routine: Routine, template: bytes, elements: int, made: Layout | None) -> None:
        self.code = routine.code
        #: The instruction without addresses and numbers.
        self.template = template
        self.elements = elements
        #: How the result lies, which is new; None if the op writes into its last operand.
        self.made = made
        #: The types in which its numbers are handed over, by operand.
        self.numbers = routine.inputs
        self.has_numbers = False
        #: Whether it shows which of two NaNs among its operands lasts.
        self.mixes_nans = False


def result_shape(operands: Sequence[Layout | None], into: Layout | None) -> Shape | None:
    """Return the shape of an op's result: that of ``into`` if it is given, and all fits; None if it does not.

    Raises
    ------
    ValueError
        If the operands do not fit each other.
    """
    shapes = {one.shape for one in operands if one is not None}
    shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
    if into is None or into.shape == shape:
        return shape
    return into.shape if np.broadcast_shapes(shape, into.shape) == into.shape else None


def make_step(
    routine: Routine, operands: Sequence[Layout | None], into: Layout | None, most_elements: int
) -> Step | None:
    """Return the op as an instruction; None if it is none.

    Parameters
    ----------
    operands
        How each of them lies; None for a number.
    into
        How the array lies that it writes into; None for a new one.
    """
    try:
        shape = result_shape(operands, into)
    except ValueError:  # CuPy says why
        return None
    if shape is None or not 0 < prod(shape) <= most_elements:
        return None
    made = contiguous(shape, routine.output) if into is None else None
    last = into if into is not None else made
    assert last is not None
    if into is not None and not _is_injective(into):
        return None
    extents, strides = _collapsed(shape, [_strides_in(shape, one) for one in (*operands, last)])
    if len(extents) > AXES or any(abs(step) > _LARGEST_STRIDE for steps in strides for step in steps):
        return None
    table = [0] * (AXES * OPERANDS)
    for number, steps in enumerate(strides):
        table[number * AXES : number * AXES + len(steps)] = steps
    padded = (*extents, *(1,) * (AXES - len(extents)))
    widths = [0 if one is None else one.itemsize for one in (*operands, last)] + [0] * (OPERANDS - len(strides))
    words = WORDS.pack(routine.code, prod(shape), len(extents), 0, *widths, *padded, *(0,) * OPERANDS, *table)
    step = Step(routine, words.ljust(INSTRUCTION_BYTES, b"\0"), prod(shape), made)
    step.has_numbers = None in operands
    return step


def _strides_in(shape: Shape, layout: Layout | None) -> Shape:
    """Return how an operand is walked through along the axes of the result."""
    if layout is None:
        return (0,) * len(shape)
    offset = len(shape) - layout.ndim
    steps = [0] * len(shape)
    for axis, (extent, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
        if extent != 1:
            steps[axis + offset] = stride
    return tuple(steps)


def _collapsed(shape: Shape, strides: Sequence[Shape]) -> tuple[list[int], list[list[int]]]:
    """Return the extents and each operand's strides with axes joined that all of them walk as if they were one."""
    extents: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        if extents and all(mine[-1] == given[axis] * extent for mine, given in zip(steps, strides, strict=True)):
            extents[-1] *= extent
            for mine, given in zip(steps, strides, strict=True):
                mine[-1] = given[axis]
            continue
        extents.append(extent)
        for mine, given in zip(steps, strides, strict=True):
            mine.append(given[axis])
    if not extents:
        return [1], [[0] for _ in strides]
    return extents, steps


def _is_injective(layout: Layout) -> bool:
    """Tell whether no two elements surely lie in one place: only then it does not matter which is written first."""
    span = layout.itemsize
    for stride, extent in sorted((abs(one), extent) for one, extent in zip(layout.strides, layout.shape, strict=True)):
        if extent != 1:
            if stride < span:
                return False
            span = stride * (extent - 1) + span
    return True
