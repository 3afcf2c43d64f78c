"""The operands of ops that go past CuPy: places in memory instead of arrays, and numbers.

The result of such an op is a place, too, under its handle. An array is made of it when another op is given it that goes
CuPy's way; most are dropped before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any, cast

import msgspec
import numpy as np

from gpu_backend.devices.arrays import Array
from gpu_backend.devices.base import Device
from gpu_backend.devices.blocks import Blocks
from gpu_backend.devices.extents import reach, require_within
from gpu_backend.executor.answer import Answer
from gpu_backend.executor.heap import Heap, Place
from gpu_backend.executor.values import PLAIN, Reader
from gpu_backend.opstream.layout import DType, Layout, contiguous, strided
from gpu_backend.wire import values as wire
from gpu_backend.wire.dtypes import text_to_dtype
from gpu_backend.wire.memory_order import holds
from gpu_backend.wire.messages import CHUNK_BYTES, Op
from gpu_backend.wire.values import Buffer, Complex, Ref, Scalar, Value, View

__all__ = [
    "BLOCK_BYTES",
    "Number",
    "Operands",
    "bytes_of",
    "encoded",
    "fills_otherwise",
    "is_apart",
    "is_fill",
    "is_whole",
    "number",
    "write_number",
]

#: Windows of an array that are remembered.
_MOST_WINDOWS = 1024
#: Blocks are of whole multiples of this, as CuPy's pool hands them out.
BLOCK_BYTES = 512
_BYTES: DType = np.dtype(np.uint8)
#: How a number of a type is written.
_FORMATS = {code: Struct(f"<{code}") for code in "bBhHiIqQefd"} | {"l": Struct("<q"), "L": Struct("<Q")}
#: The largest int of which each floating type has all below: what is larger is rounded, and by everybody differently.
_EXACT = {"e": 1 << 11, "f": 1 << 24, "d": 1 << 53}
#: What is larger is no zero in any type.
_SURELY_SOME = 1e-7
#: A number as it travels.
Numeral = bool | int | float | Complex | Scalar
_PLAIN = (float, int, Complex)  # bool among them
#: What a complex type is made of.
_PARTS = {"F": "f", "D": "d"}


#: Types of arguments that are all there is to them.
_WHOLE = frozenset((*PLAIN, Scalar, Complex, wire.BigInt, wire.Ellipsis, wire.DType))
#: Gives what tells arguments apart that are whole: 1, 1.0 and True are equal, and not the same to CuPy.
encoded = msgspec.msgpack.Encoder().encode


#: So many arguments has what writes bytes.
_WRITTEN = 3


class Number:
    """A number among an op's operands."""

    __slots__ = ("address", "layout", "value")

    def __init__(self, value: Numeral, kind: type | str) -> None:
        self.address = 0
        #: What distinguishes ways of an op, as the layout of an array: a type, or the text of a dtype.
        self.layout = kind
        self.value = value


class Operands:
    """Finds where arrays lie, and memory for results."""

    def __init__(self, device: Device, blocks: Blocks, heap: Heap, reader: Reader) -> None:
        self._device, self._blocks, self._reader = device, blocks, reader
        self._objects, self._places = heap.objects, heap.places
        self._known = heap.places.known
        self._alone = heap.ownership.alone

    def find(self, handle: int) -> Place | None:
        """Return the place of an array of which none is known; None if it is no array, or one for others."""
        array = self._objects.get(handle)
        place = self._place_of(cast("Array", array)) if type(array) is self._device.array_type else None
        if place is not None:
            self._known[handle] = place
        return place

    def window(self, view: View) -> Place | None:
        """Return the place of a view; None if there is none."""
        root = self._known.get(view.root) or self.find(view.root)
        if root is None:
            return None
        windows = root.windows
        if windows is None:
            windows = root.windows = {}
        known = windows.get(view)
        if known is None:
            known = _within(root, view)
            if known is not None:
                if len(windows) >= _MOST_WINDOWS:
                    windows.clear()
                windows[view] = known
        return known

    def place(self, arg: Value) -> Place | None:
        """Return the place of what an argument names; None if that is no array, or there is no place for it."""
        if type(arg) is Ref:
            return self._known.get(arg.handle) or self.find(arg.handle)
        return self.window(arg) if type(arg) is View else None

    def read(self, arg: Value) -> Answer | None:
        """Return what is in the contiguous array that ``arg`` names, of no more than a chunk; None if it is no such.

        What is large goes to where the notebook sees it; None as well if there is no room there.
        """
        place = self.place(arg)
        if place is None or not place.layout.c_contiguous or not 0 < place.layout.nbytes <= CHUNK_BYTES:
            return None
        lies, has_waited = place.layout, not self._device.is_spread  # on others, for which a read does not wait
        if lies.nbytes <= wire.SMALL_BYTES:
            data = self._blocks.read(place.address, lies.nbytes)
            return Answer(Buffer(-1, lies.dtype_text, lies.shape, data), (), None, False, None, has_waited)
        memory = self._device.landing(lies.nbytes)
        if memory is None:
            return None
        self._blocks.read_into(memory, place.address)
        # by place: quickly
        return Answer(Buffer(0, lies.dtype_text, lies.shape), (memory,), None, False, None, has_waited)

    def layout(self, arg: Value) -> Answer | None:
        """Tell how the array lies that ``arg`` names; None if there is no place for it."""
        place = self.place(arg)
        if place is None:
            return None
        lies = place.layout
        return Answer(wire.Tuple((wire.Tuple(lies.shape), wire.Tuple(lies.strides), wire.DType(lies.dtype_text))))

    def write(self, args: Sequence[Value]) -> bool:
        """Put bytes into an array that fills its memory; return whether that could be: CuPy's way says why not.

        ``args`` are the array, from which byte on, and the bytes. Raises as `Reader.read` of what is none of these.
        """
        target, offset, content = args if len(args) == _WRITTEN else (None, None, None)
        if type(target) is not Ref or type(offset) is not int or type(content) is not Buffer or content.dtype != "|u1":
            return False
        place, size = self.place(target), content.shape[0] if len(content.shape) == 1 else 0
        if place is None or size <= 0:
            return False
        lies = place.layout
        if not (lies.c_contiguous or lies.f_contiguous) or offset < 0 or offset + size > lies.nbytes:
            return False
        if content.frame >= 0:
            self._blocks.write_from(self._reader.bytes_of(content), place.address + offset)
        elif size == len(content.data) <= wire.SMALL_BYTES:
            self._blocks.write(place.address + offset, content.data)
        else:
            return False
        return True

    def add_other(self, arg: Any, places: list[Any], way: list[Any]) -> bool:
        """Add an argument that is no array and may be no number; return whether it can stand in a way."""
        kind = type(arg)
        if (kind is wire.List or kind is wire.Tuple) and arg.items and type(arg.items[0]) in (Ref, View):
            way += kind, len(arg.items)  # a list of indices is another index than a tuple of them
            return all(self._add_item(one, places, way) for one in arg.items)
        if not is_whole(arg):
            return False
        way.append(encoded(arg))
        return True

    def _add_item(self, item: Any, places: list[Any], way: list[Any]) -> bool:
        """Add an array that stands in a list; return whether it is one."""
        place = self.place(item)
        if place is None:
            return False
        places.append(place)
        way.append(place.layout)
        return True

    def is_free(self, handle: int) -> bool:
        """Tell whether a result may get this handle."""
        return handle not in self._objects and handle not in self._known

    def new(self, layout: Layout, size_bytes: int) -> Place | None:
        """Return new memory for an array that will lie so; None if there is none.

        CuPy will try again, when all that is spare is free, and say how much is missing.
        """
        size_bytes = -(-size_bytes // BLOCK_BYTES) * BLOCK_BYTES
        place = self._places.take_spare(size_bytes)
        if place is not None:
            place.layout = layout
            return place
        try:
            block = self._blocks.block(size_bytes)
        except MemoryError:
            return None
        return Place(block.address, layout, None, block)

    def scratch(self, size_bytes: int, temporary: list[Place]) -> int | None:
        """Return where memory is for a library's call itself, 0 if it takes none; None if there is none.

        It is added to ``temporary``, which is spare again behind the call.
        """
        if not size_bytes:
            return 0
        found = self.new(bytes_of(size_bytes), size_bytes)
        if found is None:
            return None
        temporary.append(found)
        return found.address

    def make(self, handles: Iterable[int]) -> None:
        """Make the arrays that are places only."""
        for handle in handles:
            place = self._known.get(handle)
            if place is not None and place.array is None:
                assert place.block is not None
                place.array = self._blocks.array(place.block, place.layout)
                place.block = None
                self._places.unmade -= 1
                self._objects[handle] = place.array
                self._alone[handle] = None

    def _place_of(self, array: Array) -> Place | None:
        layout = strided(*self._device.layout(array))
        address = self._blocks.address(array)
        return Place(address, layout, array) if _is_aligned(address, layout) else None


def is_fill(op: Op) -> bool:
    """Tell whether an op that sets items sets all of them."""
    return len(op.args) == 3 and type(op.args[1]) is wire.Ellipsis and not op.out and not op.stream and not op.kwargs


def is_whole(value: Any) -> bool:
    """Tell whether an argument is all there is to it: no handle stands in it, and no data of a message."""
    kind = type(value)
    if kind is wire.Tuple or kind is wire.List:
        return all(map(is_whole, value.items))
    if kind is wire.Slice:
        return is_whole(value.start) and is_whole(value.stop) and is_whole(value.step)
    return kind in _WHOLE


def number(arg: Value) -> Number | None:
    """Return the operand that a number is; None for what is no number."""
    if isinstance(arg, _PLAIN):
        return Number(arg, type(arg))
    return Number(arg, arg.dtype) if isinstance(arg, Scalar) else None


def bytes_of(size_bytes: int) -> Layout:
    """Return how memory lies of which nothing is known."""
    return contiguous((size_bytes,), _BYTES)


def is_apart(
    places: Sequence[Place | Number], spans: Sequence[tuple[int, int]], into: int, may_coincide: bool = False,
    may_be_given_twice: bool = False,
) -> bool:  # fmt: skip
    """Tell whether operand ``into`` lies apart from each other: CuPy copies others first.

    Parameters
    ----------
    spans
        How far each reaches from its first element, in bytes.
    may_coincide
        Whether another may lie just where it does.
    may_be_given_twice
        Whether another may be the very same.
    """
    target = places[into]
    low, high = target.address + spans[into][0], target.address + spans[into][1]
    for at, (place, (first, end)) in enumerate(zip(places, spans, strict=False)):
        if type(place) is Number or at == into or (may_be_given_twice and place is target):
            continue
        is_same = may_coincide and place.address == target.address and place.layout is target.layout
        if not is_same and place.address + first < high and low < place.address + end:
            return False
    return True


def fills_otherwise(value: Numeral, dtype: DType) -> bool:
    """Tell whether CuPy fills an array of ``dtype`` with something else than a kernel makes of ``value``.

    A zero with a sign has none in most arrays that it fills. And a NumPy scalar of another type becomes one of
    ``dtype`` on the host: out of what ``dtype`` can hold, that is another number than the device's.
    """
    if isinstance(value, Scalar) and (own := text_to_dtype(value.dtype)) != dtype:
        if len(value.data) != own.itemsize or own.kind != "f" or dtype.char not in "fd":
            return True
        with np.errstate(all="ignore"):  # both round to the nearest, and to infinity what is too large
            found = np.frombuffer(value.data, own).astype(dtype)[0]
        return bool(np.isnan(found) or (found == 0 and np.signbit(found)))
    if type(value) is int or type(value) is bool or (type(value) is float and abs(value) > _SURELY_SOME):
        return False
    table = bytearray(dtype.itemsize)
    return write_number(table, 0, value, dtype) and any(table) and not np.frombuffer(table, dtype).any()


def is_nan(value: Numeral) -> bool:
    """Tell whether a number, or a part of it, is NaN."""
    kind = type(value)
    if isinstance(value, Scalar):
        dtype = text_to_dtype(value.dtype)
        is_whole_one = len(value.data) == dtype.itemsize  # else it is refused by name further on
        return dtype.kind in "fc" and is_whole_one and bool(np.isnan(np.frombuffer(value.data, dtype)).any())
    if kind is Complex:
        return bool(value.real != value.real or value.imag != value.imag)
    return bool(value != value)


def write_number(table: bytearray, at: int, value: Numeral, dtype: DType) -> bool:
    """Write ``value`` as an op that reads it as ``dtype`` is to find it; return whether it is sure how CuPy would."""
    kind, code = type(value), dtype.char
    if isinstance(value, Scalar):
        if text_to_dtype(value.dtype) != dtype or len(value.data) != dtype.itemsize:
            return False
        table[at : at + dtype.itemsize] = value.data
        return True
    if code == "?":
        table[at] = value is True
        return kind is bool
    parts = (value.real, value.imag) if kind is Complex else (value, 0.0)
    form = _FORMATS.get(_PARTS.get(code, code))
    if form is None or (kind is Complex and code not in _PARTS) or (kind is float and dtype.kind in "iu"):
        return False
    if type(value) is int and abs(value) > _EXACT.get(_PARTS.get(code, code), abs(value)):
        return False
    try:
        form.pack_into(table, at, parts[0])
        if code in _PARTS:
            form.pack_into(table, at + form.size, parts[1])
    except (struct.error, OverflowError):
        return False
    return True


def _within(root: Place, view: View) -> Place | None:
    """Return the place of a window of an array; None if there is anything to say against it: CuPy's way says it."""
    lies = root.layout
    if not lies.size or not holds(view.order, lies.memory_order):
        return None
    layout = strided(view.shape, view.strides, text_to_dtype(view.dtype))
    try:
        memory = reach(lies.shape, lies.strides, lies.itemsize)
        require_within(view.offset, view.shape, view.strides, layout.dtype, memory)
    except ValueError:
        return None
    address = root.address + view.offset
    return Place(address, layout, None, root.block) if _is_aligned(address, layout) else None


def _is_aligned(address: int, layout: Layout) -> bool:
    """Tell whether every element lies where the device can read it at once."""
    size = layout.itemsize
    return bool(size) and not address % size and not any(stride % size for stride in layout.strides)
