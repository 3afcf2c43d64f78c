"""Arrays joined by copies that are gathered with other ops.

CuPy makes an array of each of them first, and has a kernel find many of them by addresses that it copies to the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gpu_backend.executor.heap import Place, Places
from gpu_backend.executor.program.operands import Operands
from gpu_backend.executor.program.segment import Segment
from gpu_backend.executor.program.steps import Step
from gpu_backend.executor.verbs import STORE
from gpu_backend.opstream.layout import Layout, Shape, contiguous, strided
from gpu_backend.wire import values as wire
from gpu_backend.wire.messages import Op

__all__ = ["Join", "Joins"]

_STACK, _CONCATENATE = "cupy.stack", "cupy.concatenate"
#: The most memory that a result may take: a larger one keeps the device busy by itself; and the most arrays.
_MOST_BYTES, _MOST_PARTS = 64 << 20, 1024


class Part(NamedTuple):
    """Where one of the arrays goes: what copies it, from which byte of the result on, and how it lies there."""

    step: Step
    offset: int
    lies: Layout


class Joins:
    """Joins arrays past CuPy."""

    def __init__(self, operands: Operands, places: Places, segment: Segment) -> None:
        self.operands, self.places, self.segment = operands, places, segment

    def way(self, op: Op, layouts: Sequence[Layout]) -> Join | None:
        """Return what joins arrays of these ``layouts`` as ``op`` does; None if it joins none, or otherwise."""
        axis = _axis(op)
        if axis is None or not 0 < len(layouts) <= _MOST_PARTS or not _are_alike(layouts):
            return None
        shapes = [_with_axis(one.shape, axis) if op.name == _STACK else one.shape for one in layouts]
        made = _joined(shapes, axis, layouts[0])
        if made is None or made.nbytes > _MOST_BYTES:
            return None
        parts: list[Part] = []
        steps: dict[tuple[Layout, Layout], Step | None] = {}
        place, at = 0, axis % made.ndim
        for lies, shape in zip(layouts, shapes, strict=True):
            window = _window(made, shape, at, op.name == _STACK)
            if (lies, window) not in steps:
                steps[lies, window] = self.segment.step(STORE, 1, [lies, window])
            if (step := steps[lies, window]) is None:
                return None
            parts.append(Part(step, place * made.strides[at], window))
            place += shape[at]
        return Join(self, made, tuple(parts))


class Join:
    """Joins arrays that lie in certain ways."""

    def __init__(self, joins: Joins, made: Layout, parts: tuple[Part, ...]) -> None:
        self._joins, self._made, self._parts = joins, made, parts

    def run(self, op: Op, places: Sequence[Place]) -> bool:
        """Gather the copies for ``op``; return whether that was possible."""
        operands, segment = self._joins.operands, self._joins.segment
        if not op.out or op.orders is not None or not operands.is_free(op.out):
            return False
        result = operands.new(self._made, self._made.nbytes)
        if result is None:
            return False
        done = 0
        for part, place in zip(self._parts, places, strict=True):
            into = Place(result.address + part.offset, part.lies, None, result.block)
            if not segment.put(op, part.step, [place, into]):
                break
            done += 1
        is_done = done == len(self._parts)
        segment.table.gathered -= done - is_done  # it counts ops, of which these are one
        if is_done:
            self._joins.places.add(op.out, result)
        else:
            self._joins.places.spare_again(result)  # what was gathered by then does no harm
        return is_done


def _axis(op: Op) -> int | None:
    """Return along which axis ``op`` joins; None if it joins nothing, or says more than that."""
    if op.name not in (_STACK, _CONCATENATE) or not op.args or type(op.args[0]) not in (wire.List, wire.Tuple):
        return None
    said = [*op.args[1:], *(op.kwargs or {}).values()]
    if not said:
        return 0
    is_axis = len(said) == 1 and type(said[0]) is int and (op.kwargs is None or "axis" in op.kwargs)
    return said[0] if is_axis else None  # type: ignore[return-value]


def _are_alike(layouts: Sequence[Layout]) -> bool:
    """Tell whether all are of one type, and none is empty: then they are copied as they are."""
    dtype, ndim = layouts[0].dtype, layouts[0].ndim
    return all(one.dtype == dtype and one.ndim == ndim and one.size for one in layouts)


def _with_axis(shape: Shape, axis: int) -> Shape:
    """Return ``shape`` with an axis of one at ``axis``, wherever it would be if it is out of bounds."""
    at = axis if axis >= 0 else axis + len(shape) + 1
    return (*shape[: max(at, 0)], 1, *shape[max(at, 0) :])


def _joined(shapes: Sequence[Shape], axis: int, like: Layout) -> Layout | None:
    """Return how arrays of these ``shapes`` lie when they are joined; None if they do not fit, which CuPy says."""
    first = shapes[0]
    if not -len(first) <= axis < len(first):
        return None
    at = axis % len(first)
    if any(one[:at] != first[:at] or one[at + 1 :] != first[at + 1 :] for one in shapes):
        return None
    return contiguous((*first[:at], sum([one[at] for one in shapes]), *first[at + 1 :]), like.dtype)


def _window(made: Layout, shape: Shape, at: int, is_stacked: bool) -> Layout:
    """Return how one of ``shape`` lies within the result, without the axis that stacking adds."""
    if not is_stacked:
        return strided(shape, made.strides, made.dtype)
    return strided((*shape[:at], *shape[at + 1 :]), (*made.strides[:at], *made.strides[at + 1 :]), made.dtype)
