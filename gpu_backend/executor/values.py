"""Wire values to device objects and back."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.executor.described_objects import DescribedObjects, undescribed
from gpu_backend.executor.heap import Heap, Kind
from gpu_backend.executor.heap.entries import kind_named
from gpu_backend.executor.laying_out import LayingOut
from gpu_backend.executor.tasks import NotebookFunction
from gpu_backend.opstream.devices import OF_DEVICE
from gpu_backend.wire import values as wire
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.dtypes import dtype_to_text, text_to_dtype
from gpu_backend.wire.errors import ProtocolError
from gpu_backend.wire.memory_order import holds

#: NumPy's own are of 4 words, and mixing them takes the square of it.
_MOST_POOL_WORDS: Final = 1024

#: Types that mean the same on the wire and in Python.
PLAIN: Final = frozenset({type(None), bool, int, float, str})
#: CuPy's functions ask `cval is numpy.nan`, and compile anew for every other nan that they meet. An object and no
#: number, from the first on: compiled code hands on another of the same value.
_THE_NAN: object = vars(np)["nan"]


class MissingHandle(LookupError):
    """An op refers to a handle that holds nothing."""

    def __init__(self, handle: int) -> None:
        super().__init__(handle)
        self.handle = handle


class OutOfOrder(Exception):
    """The root of ``view`` lies otherwise than the view believes.

    If nothing else has hold of it, reading all arguments again after `Reader.lay_out` helps.
    """

    def __init__(self, view: wire.View, root_order: str) -> None:
        super().__init__(
            f"The array {view.root} lies in memory order {root_order!r}, but its view was made for {view.order!r}. "
            "This is a defect of gpu-workbench; please report the cell that led to it."
        )
        self.view = view


class Reader:
    """Turns what came over the wire into what the device's functions take."""

    def __init__(self, heap: Heap, device: Device, resolve: Callable[[str], Any], objects: DescribedObjects) -> None:
        self._heap = heap
        self._device = device
        self._resolve = resolve
        self._laying_out = LayingOut(device, resolve)
        self._frames: Sequence[Frame] = ()
        self._by_type: dict[type, Callable[[Any], Any]] = {
            wire.Ref: self._ref,
            wire.View: self._view,
            wire.Scalar: _scalar,
            wire.Complex: lambda v: complex(v.real, v.imag),
            wire.BigInt: lambda v: int(v.digits, 16),
            wire.Tuple: lambda v: tuple(self._items(v.items)),
            wire.List: lambda v: self._items(v.items),
            wire.Dict: lambda v: {self.read(key): self.read(item) for key, item in v.items},
            wire.Slice: lambda v: slice(self.read(v.start), self.read(v.stop), self.read(v.step)),
            wire.Ellipsis: lambda v: Ellipsis,
            wire.DType: lambda v: text_to_dtype(v.descr),
            wire.Buffer: self._buffer,
            wire.Name: lambda v: self._resolve(v.qualname),
            wire.Bytes: lambda v: v.data,
            wire.Method: lambda v: objects.method(self._ref(v), v.name),
            wire.Callback: lambda v: NotebookFunction(v.number),
            wire.SeedSequence: _seed_sequence,
        }

    def with_frames(self, frames: Sequence[Frame]) -> Callable[[Any], Any]:
        """Take the buffers of the message whose values come next; return `read`."""
        self._frames = frames
        return self.read

    def read(self, value: Any) -> Any:
        """Return the object that ``value`` stands for.

        Raises
        ------
        MissingHandle
            If a handle holds nothing.
        ProtocolError
            If ``value`` is of a kind that only the executor may send, or lies about its buffer or root.
        OutOfOrder
            If it is a view of an array that lies otherwise.
        """
        reader = self._by_type.get(type(value))
        if reader is not None:
            return reader(value)
        if type(value) in PLAIN:
            return _THE_NAN if value != value and math.copysign(1.0, value) > 0 else value
        raise ProtocolError(f"A notebook may not send a {type(value).__name__}.")

    def _items(self, items: Sequence[Any]) -> list[Any]:
        read = self.read
        return [item if type(item) is int else read(item) for item in items]

    def _ref(self, value: wire.Ref) -> Any:
        try:
            return self._heap.objects[value.handle]
        except KeyError:
            raise MissingHandle(value.handle) from None

    def _view(self, value: wire.View) -> Any:
        known = self._heap.view(value)
        if known is not None:
            return known
        try:
            root = self._heap.objects[value.root]
        except KeyError:
            raise MissingHandle(value.root) from None
        if not self._device.is_array(root):
            raise ProtocolError(f"A view shows the memory of an array, and no {type(root).__name__}.")
        order = self._device.memory_order(root)
        if value.order != order and not holds(value.order, order):
            raise OutOfOrder(value, order)
        made = self._device.view(root, value.offset, value.shape, value.strides, text_to_dtype(value.dtype))
        self._heap.keep_view(value, made)
        return made

    def lay_out(self, value: wire.View) -> None:
        """Lay the root of ``value`` out as its view believes: the array under that handle from now on.

        What was read before is the old array: read it again.

        Raises
        ------
        OutOfOrder
            If something else has hold of it, or its view knows of no order in which it could lie.
        """
        root = self._heap.objects[value.root]
        order = self._device.memory_order(root)
        if order == value.order:
            return
        self._heap.forget_views(value.root)
        if value.order[:1] in ("", "?") or value.root not in self._heap.ownership.alone:
            raise OutOfOrder(value, order)
        self._heap.objects[value.root] = self._laying_out.array(root, value.order)

    def bytes_of(self, value: wire.Buffer) -> np.ndarray[Any, Any]:
        """Return the frame that ``value``, an array of bytes with one axis, tells of. Raises as `read`."""
        content: Frame = self._frames[value.frame] if 0 <= value.frame < len(self._frames) else b""
        return np.frombuffer(content, np.uint8) if len(content) == value.shape[0] > 0 else self._buffer(value)

    def _buffer(self, value: wire.Buffer) -> np.ndarray[Any, Any]:
        if not -1 <= value.frame < len(self._frames):
            raise ProtocolError(f"Buffer {value.frame} is missing from its message.")
        dtype = text_to_dtype(value.dtype)
        content = value.data if value.frame < 0 else self._frames[value.frame]
        try:
            found = np.frombuffer(content, dtype=np.uint8).view(dtype).reshape(value.shape)
        except ValueError as error:
            raise ProtocolError(f"Buffer {value.frame} does not hold {value.shape} of {dtype}: {error}") from None
        # A frame begins anywhere in the memory of its message, and compiled functions want whole words.
        return found if found.flags.aligned else found.copy()


def _scalar(value: wire.Scalar) -> np.generic[Any]:
    dtype = text_to_dtype(value.dtype)
    if len(value.data) != dtype.itemsize:
        raise ProtocolError(f"A {dtype} scalar has {dtype.itemsize} bytes, not {len(value.data)}.")
    scalar: np.generic[Any] = np.frombuffer(value.data, dtype=dtype)[0]
    return scalar


def _seed_sequence(value: wire.SeedSequence) -> np.random.SeedSequence:
    if not 4 <= value.pool_size <= _MOST_POOL_WORDS:
        raise ProtocolError(f"A pool of {value.pool_size} words is none of a SeedSequence.")
    entropy = [int(word, 16) for word in value.entropy]
    return np.random.SeedSequence(entropy, spawn_key=value.spawn_key, pool_size=value.pool_size)


class Writer:
    """Turns results into wire values. Arrays and objects that stay get the handles ``out``, ``out + 1``, ..."""

    def __init__(self, heap: Heap, device: Device, objects: DescribedObjects) -> None:
        self._heap = heap
        self._device = device
        self._objects = objects

    def describe(self, result: Any, out: int, known: dict[int, int], roots: Sequence[tuple[int, Any]]) -> wire.Value:
        """Return the description of ``result``, whose arrays and objects stay here.

        Parameters
        ----------
        out
            The first handle to give.
        known
            Handles of the op's own arguments, by ``id`` of the object: a result that is an argument keeps its handle.
        roots
            The op's array arguments with their handles: a result may share their memory.

        Raises
        ------
        TypeError
            If it holds an object of a class that nobody has described; then nothing of it stays.
        """
        description = _Description(self._heap, self._device, self._objects, out, known, roots)
        try:
            return description.of(result)
        except Exception:  # whatever part of it cannot be told: the notebook will not know the others' handles
            description.forget()
            raise

    def contents(self, result: Any, buffers: list[np.ndarray[Any, Any]]) -> wire.Value:
        """Return ``result`` by value; arrays are appended to ``buffers``.

        Raises
        ------
        TypeError
            If it holds an object that has no value outside the device.
        """
        if self._device.is_array(result):
            return _buffer_of(self._device.download(result), buffers)
        if isinstance(result, np.ndarray):
            return _buffer_of(np.ascontiguousarray(result).reshape(result.shape), buffers)
        return encode_plain(result, lambda item: self.contents(item, buffers))


def _buffer_of(host: np.ndarray[Any, Any], buffers: list[np.ndarray[Any, Any]]) -> wire.Buffer:
    _require_plain(host.dtype)
    if host.nbytes <= wire.SMALL_BYTES:
        return wire.Buffer(-1, dtype_to_text(host.dtype), host.shape, host.tobytes())
    buffers.append(host)
    return wire.Buffer(len(buffers) - 1, dtype_to_text(host.dtype), host.shape)


def _require_plain(dtype: np.dtype[Any]) -> None:
    """Refuse arrays of Python objects: as bytes they are addresses."""
    if dtype.hasobject:
        raise TypeError("An array of Python objects cannot stay in the executor or leave it.")


class _Description:
    """One result being described: hands out its handles."""

    def __init__(
        self,
        heap: Heap,
        device: Device,
        objects: DescribedObjects,
        out: int,
        known: dict[int, int],
        roots: Sequence[tuple[int, Any]],
    ) -> None:
        self._heap, self._device, self._objects = heap, device, objects
        self._next = out
        self._handles: list[int] = []
        self._known, self._roots = known, roots

    def of(self, result: Any) -> wire.Value:
        handle = self._known.get(id(result))
        if handle is not None:
            return wire.Ref(handle)
        if self._device.is_array(result):
            return self._array(result)
        described = self._objects.describe(result)
        if described is not None:
            facts = {name: self.of(value) for name, value in self._objects.facts(described, result).items()}
            return wire.ObjectInfo(self._keep(result, kind_named(described.name)), described.name, facts)
        if isinstance(result, np.ndarray):  # what some of CuPy's functions make of nothing but host arrays
            _require_plain(result.dtype)
            return wire.Buffer(-1, dtype_to_text(result.dtype), result.shape, result.tobytes())
        return encode_plain(result, self.of)

    def _array(self, array: Any) -> wire.ArrayInfo:
        base, offset, order = 0, 0, ""
        for handle, root in self._roots:
            shared = self._device.shares_base(array, root)
            if shared is not None:
                base, offset, order = handle, shared, self._device.memory_order(root)
                break
        layout = self._device.layout(array)
        _require_plain(layout.dtype)
        return wire.ArrayInfo(
            self._keep(array, on=base), layout.shape, layout.strides, dtype_to_text(layout.dtype), base, offset, order
        )

    def _keep(self, result: Any, kind: Kind = Kind.ARRAY, on: int = 0) -> int:
        """Keep a result under the next handle: on the device of the op, or on that of ``on``, whose memory it shows."""
        handle = self._next if not on else self._next & ~OF_DEVICE | on & OF_DEVICE
        self._next += 1
        self._handles.append(handle)
        self._heap.put(handle, result, kind)
        self._known[id(result)] = handle
        return handle

    def forget(self) -> None:
        """Drop what was kept."""
        for handle in self._handles:
            self._heap.drop(handle)


def encode_plain(result: Any, item: Callable[[Any], wire.Value]) -> wire.Value:
    """Return the wire value of a host object; ``item`` encodes what a container holds.

    Raises
    ------
    TypeError
        If ``result`` cannot cross the wire by value.
    """
    kind = type(result)
    if kind in PLAIN:
        if kind is int and not -(1 << 63) <= result < 1 << 64:
            return wire.BigInt(hex(result))
        return result  # type: ignore[no-any-return]
    if isinstance(result, np.generic):
        return wire.Scalar(dtype_to_text(result.dtype), result.tobytes())
    if isinstance(result, complex):
        return wire.Complex(result.real, result.imag)
    if isinstance(result, tuple):
        return wire.Tuple(tuple(item(one) for one in result))
    if isinstance(result, list):
        return wire.List(tuple(item(one) for one in result))
    if isinstance(result, dict):
        return wire.Dict(tuple((item(key), item(one)) for key, one in result.items()))
    if isinstance(result, np.dtype):
        return wire.DType(dtype_to_text(result))
    if isinstance(result, type) and issubclass(result, np.generic):
        return wire.DType(dtype_to_text(np.dtype(result)))
    return _encode_rare(result, item)


def _encode_rare(result: Any, item: Callable[[Any], wire.Value]) -> wire.Value:
    if isinstance(result, slice):
        return wire.Slice(item(result.start), item(result.stop), item(result.step))
    if result is NotImplemented:  # of an operator: the notebook's Python tries the other operand
        return wire.Name("builtins.NotImplemented")
    if result is Ellipsis:
        return wire.Ellipsis()
    if isinstance(result, (bytes, bytearray, memoryview)):
        return wire.Bytes(bytes(result))
    if isinstance(result, (bool, int, float, str)):  # subclasses such as enum members
        return item(next(base for base in (bool, int, float, str) if isinstance(result, base))(result))
    if isinstance(result, types.GeneratorType):
        return wire.List(tuple(item(one) for one in result))
    raise TypeError(undescribed(result))
