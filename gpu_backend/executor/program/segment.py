"""Small elementwise ops, gathered and given to the device in one launch, in their order (see `devices/segments.py`).

An op that is gathered has not run: its result is a place in memory, under its handle, and nothing is computed before
the segment is launched. That happens before anything else is asked of the device, so nobody can tell. An array is made
of a place when another op is given it; most are dropped before.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from struct import Struct
from typing import Any

from gpu_backend.devices.base import Device
from gpu_backend.devices.extents import require_within
from gpu_backend.devices.segments import (
    HEADER_BYTES,
    INSTRUCTION_BYTES,
    OPERANDS,
    PLACES_AT,
    VALUE_BYTES,
    VALUES,
    VALUES_AT,
    Kind,
    Segments,
)  # fmt: skip
from gpu_backend.executor.heap import Heap, Place
from gpu_backend.executor.program.effects import handles_in
from gpu_backend.executor.program.plan import Plan
from gpu_backend.executor.program.steps import Step, make_step
from gpu_backend.executor.values import Reader
from gpu_backend.executor.verbs import STORE
from gpu_backend.opstream.layout import DType, Layout, strided
from gpu_backend.wire.dtypes import text_to_dtype
from gpu_backend.wire.memory_order import holds
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Complex, Ref, Scalar, View

__all__ = ["Segment"]

#: Ways in which ops come that are remembered, and windows of an array.
_MOST_STEPS, _MOST_WINDOWS = 4096, 64
#: Memory that is kept for results to come: loops on ever new sizes use none of it again.
_MOST_SPARE_BYTES = 64 << 20
_PLACES = tuple(Struct(f"<{count}Q").pack_into for count in range(OPERANDS + 1))
#: How many operands most ops have, with the result.
_USUAL = 3
#: How a number of a type is written.
_FORMATS = {code: Struct(f"<{code}") for code in "bBhHiIqQefd"} | {"l": Struct("<q"), "L": Struct("<Q")}
#: The largest int of which each floating type has all below: what is larger is rounded, and by everybody differently.
_EXACT = {"e": 1 << 11, "f": 1 << 24, "d": 1 << 53}
#: What a complex type is made of.
_PARTS = {"F": "f", "D": "d"}
#: Functions that choose element by element, and are no ufuncs: how many operands they have.
_OTHERS = {"cupy.where": 3, STORE: 1}


class _Number:
    """A number among an op's operands: it stands in the instruction itself."""

    __slots__ = ("address", "layout", "value")

    def __init__(self, value: Any, kind: Any) -> None:
        self.address = 0
        #: What distinguishes ways of an op, as the layout of an array: a type, or the text of a dtype.
        self.layout = kind
        self.value = value


class Segment:
    """The ops that are gathered, and where they write.

    Parameters
    ----------
    runs
        What carries them out: the segments of ``device``.
    """

    def __init__(self, device: Device, runs: Segments, heap: Heap, reader: Reader, plan: Plan) -> None:
        self._device, self._runs, self._reader = device, runs, reader
        self._heap = heap
        self._objects, self._places = heap.objects, heap.places
        self._known = heap.places.known
        self._alone = heap.ownership.alone
        self._plan = plan
        self._most_ops, self._ready = runs.most_ops, runs.ready
        self._table = bytearray(HEADER_BYTES + runs.most_ops * INSTRUCTION_BYTES)
        #: How many ops are gathered, and how many elements the largest of them has.
        self.ops = 0
        self._elements = 0
        #: How many were ever gathered.
        self.gathered = 0
        #: Ways in which ops came, by name and operands: None for what cannot be gathered.
        self._steps: dict[tuple[object, ...], Step | None] = {}
        #: Names of ops that never can.
        self._never: set[str] = set()

    def take(self, op: Op) -> bool:
        """Gather ``op``, which wants no answer and is for the current stream, if that can be; return whether it was.

        Raises what reading its windows does. This is the hot path of small ops.
        """
        name = op.name
        if name in self._never or op.kwargs is not None or op.orders is not None or op.stream:
            return False
        known = self._known
        places: list[Any] = []
        for arg in op.args:
            if type(arg) is Ref:
                place: Any = known.get(arg.handle) or self._find(arg.handle)
            elif type(arg) is View:
                place = self._window(arg)
            else:
                place = _number(arg)
            if place is None:
                return False
            places.append(place)
        if name == STORE:
            places.reverse()
        way = (name, *[place.layout for place in places])
        step = self._steps[way] if way in self._steps else self._learn(way)
        if step is None or (step.code not in self._ready and not self._is_ready(step)):
            return False
        if (step.made is None) == bool(op.out) or (step.spans and not _is_apart(step, places)):
            return False
        if not self._put(op, step, places):
            return False
        if op.reuse:
            self._heap.drop(op.reuse)  # behind the op that may read it
        return True

    def launch(self) -> None:
        """Have the device carry out what is gathered."""
        ops, self.ops, elements, self._elements = self.ops, 0, self._elements, 0
        self.gathered += ops
        try:
            if ops:
                self._runs.launch(self._table, ops, elements)
        finally:
            self._places.kept.clear()
            self._runs.renew()

    def settle(self, op: Op) -> None:
        """Launch, and make the arrays that ``op`` is given, which is not gathered."""
        if self.ops:
            self.launch()
        if self._places.unmade:
            for handle in handles_in((*op.args, *(op.kwargs or {}).values())):
                place = self._known.get(handle)
                if place is not None and place.array is None:
                    self._make(handle, place)
        if self._places.spare:
            self._places.give_back()  # so that whoever counts memory finds what CuPy alone would hold
        if self._places.kept:
            self._places.kept.clear()

    def _put(self, op: Op, step: Step, places: list[Any]) -> bool:
        """Write the instruction; return whether that was possible."""
        if self.ops >= self._most_ops:
            self.launch()
        if self._places.spare_bytes > _MOST_SPARE_BYTES:
            self.launch()
            self._places.give_back()
        if step.code not in self._ready:  # any more: what was compiled meanwhile has others
            return False
        table, at = self._table, HEADER_BYTES + self.ops * INSTRUCTION_BYTES
        table[at : at + INSTRUCTION_BYTES] = step.template
        if step.has_numbers and not self._write_numbers(at, step, places):
            return False
        if step.made is not None:
            result = self._result(op.out, step)
            if result is None:
                return False
            places.append(result)
        if len(places) == _USUAL:
            first, second, last = places
            _PLACES[_USUAL](table, at + PLACES_AT, first.address, second.address, last.address)
        else:
            _PLACES[len(places)](table, at + PLACES_AT, *[place.address for place in places])
        if step.elements > self._elements:
            self._elements = step.elements
        self.ops += 1
        return True

    def _is_ready(self, step: Step) -> bool:
        if not self.ops:
            self._runs.renew()
        return self._runs.is_ready(step.code)

    # --- one op -------------------------------------------------------------------------------------------------------

    def _result(self, out: int, step: Step) -> Place | None:
        """Return where the result ``out`` will lie; None if there is no memory, or something stands there."""
        if out in self._objects or out in self._known:
            return None
        assert step.made is not None
        place = self._places.take_spare(step.block_bytes)
        if place is not None:
            place.layout = step.made
        else:
            try:
                block = self._runs.block(step.block_bytes)
            except MemoryError:  # CuPy will try again, when all that is spare is free, and say how much is missing
                return None
            place = Place(block.address, step.made, None, block)
        self._known[out] = place
        self._places.unmade += 1
        return place

    def _write_numbers(self, at: int, step: Step, places: Sequence[Place | _Number]) -> bool:
        slot = 0
        for place, dtype in zip(places, step.numbers, strict=False):
            if type(place) is _Number:
                if slot == VALUES or not _write(self._table, at + VALUES_AT + slot * VALUE_BYTES, place.value, dtype):
                    return False
                place.address = slot
                slot += 1
        return True

    def _learn(self, way: tuple[Any, ...]) -> Step | None:
        if len(self._steps) >= _MOST_STEPS:
            self._steps.clear()
        step = self._steps[way] = self._step(*way)
        return step

    def _step(self, name: str, *operands: Any) -> Step | None:
        if name not in self._plan.operands:
            self._plan.learn(name)
        takes = _OTHERS.get(name, self._plan.operands[name])
        if takes < 1 or takes >= OPERANDS:
            self._never.add(name)
            return None
        layouts = [one if type(one) is Layout else None for one in operands]
        kinds = tuple(map(_kind, operands))
        into = layouts[takes] if len(operands) == takes + 1 else None
        if len(operands) != takes and into is None:
            return None
        if not any(layouts[:takes]) and into is None:
            return None
        if any(not _is_served(kind) for kind in kinds):
            return None
        if name == STORE:
            routine = self._runs.copy(kinds[0], into.dtype) if into is not None else None
        else:
            routine = self._runs.routine(name, kinds[:takes], into.dtype if into is not None else None)
        return make_step(routine, layouts[:takes], into, self._runs.most_elements) if routine is not None else None

    # --- places -------------------------------------------------------------------------------------------------------

    def _find(self, handle: int) -> Place | None:
        """Return the place of an array of which none is known; None if it is no array, or one for others."""
        array = self._objects.get(handle)
        place = self._place_of(array) if type(array) is self._device.array_type else None
        if place is not None:
            self._known[handle] = place
        return place

    def _window(self, view: View) -> Place | None:
        root = self._known.get(view.root) or self._find(view.root)
        if root is None:
            return None
        windows = root.windows
        if windows is None:
            windows = root.windows = {}
        known = windows.get(view)
        if known is None:
            known = self._place_of(self._reader.read(view)) if root.array is not None else _within(root, view)
            if known is not None:
                if len(windows) >= _MOST_WINDOWS:
                    windows.clear()
                windows[view] = known
        return known

    def _place_of(self, array: Any) -> Place | None:
        layout = strided(*self._device.layout(array))
        address = self._runs.address(array)
        return Place(address, layout, array) if _is_aligned(address, layout) else None

    def _make(self, handle: int, place: Place) -> None:
        assert place.block is not None
        place.array = self._runs.array(place.block, place.layout.shape, place.layout.dtype)
        place.block = None
        self._places.unmade -= 1
        self._objects[handle] = place.array
        self._alone[handle] = None


def _number(arg: Any) -> Any:
    """Return the operand that a number is; None for what is no number."""
    kind = type(arg)
    if kind is float or kind is int or kind is bool or kind is Complex:
        return _Number(arg, kind)
    return _Number(arg, arg.dtype) if kind is Scalar else None


def _is_apart(step: Step, places: Sequence[Place | _Number]) -> bool:
    """Tell whether an op writes over no operand but one that is just what it writes: CuPy copies others first."""
    into = places[-1]
    low, high = into.address + step.spans[-1][0], into.address + step.spans[-1][1]
    for place, (first, end) in zip(places, step.spans[:-1], strict=False):
        if type(place) is _Number:
            continue
        is_same = place.address == into.address and place.layout is into.layout
        if not is_same and place.address + first < high and low < place.address + end:
            return False
    return True


def _within(root: Place, view: View) -> Place | None:
    """Return the place of a window of an array that is not made; None if there is anything to say against it."""
    layout = strided(view.shape, view.strides, text_to_dtype(view.dtype))
    if not holds(view.order, root.layout.memory_order):
        return None
    try:
        require_within(view.offset, view.shape, view.strides, layout.dtype, (0, root.layout.nbytes))
    except ValueError:
        return None
    address = root.address + view.offset
    return Place(address, layout, None, root.block) if _is_aligned(address, layout) else None


def _is_aligned(address: int, layout: Layout) -> bool:
    """Tell whether every element lies where the device can read it at once."""
    size = layout.itemsize
    return bool(size) and not address % size and not any(stride % size for stride in layout.strides)


def _kind(operand: Any) -> Kind:
    if type(operand) is Layout:
        return operand.dtype
    if type(operand) is str:  # a number that has a type of its own counts as an array of it
        return text_to_dtype(operand)
    return complex if operand is Complex else operand


def _is_served(kind: Kind) -> bool:
    return isinstance(kind, type) or (kind.kind in "biufc" and kind.isnative and kind.char not in "gG")


def _write(table: bytearray, at: int, number: Any, dtype: DType) -> bool:
    """Write ``number`` as an op that reads it as ``dtype`` is to find it; return whether it is sure how CuPy would."""
    kind, code = type(number), dtype.char
    if kind is Scalar:
        if text_to_dtype(number.dtype) != dtype or len(number.data) != dtype.itemsize:
            return False
        table[at : at + dtype.itemsize] = number.data
        return True
    if code == "?":
        table[at] = number is True
        return kind is bool
    parts = (number.real, number.imag) if kind is Complex else (number, 0.0)
    form = _FORMATS.get(_PARTS.get(code, code))
    if form is None or (kind is Complex and code not in _PARTS) or (kind is float and dtype.kind in "iu"):
        return False
    if kind is int and abs(number) > _EXACT.get(_PARTS.get(code, code), abs(number)):
        return False
    try:
        form.pack_into(table, at, parts[0])
        if code in _PARTS:
            form.pack_into(table, at + form.size, parts[1])
    except (struct.error, OverflowError):
        return False
    return True
