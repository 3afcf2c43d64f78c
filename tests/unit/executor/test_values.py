"""Values over the wire: what a notebook sends is what the device gets, and what the device gives is what comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device
from gpu_backend.executor.described_objects import DescribedObjects
from gpu_backend.executor.heap import Heap
from gpu_backend.executor.values import MissingHandle, OutOfOrder, Reader, Writer
from gpu_backend.wire import values as wire
from gpu_backend.wire.errors import ProtocolError
from kernelproxy.calls.decoding import Decoder
from kernelproxy.calls.dispatch import stands_for
from kernelproxy.calls.encoding import Encoder, Unsendable

_through_bytes: Callable[[Any], Any] = msgspec.msgpack.Decoder(wire.Value).decode


@pytest.fixture(scope="module")
def device() -> Device:
    return open_device("cpu")


numbers = st.one_of(
    st.integers(-(1 << 80), 1 << 80), st.floats(), st.booleans(), st.complex_numbers(allow_nan=False), st.none()
)
dtypes = st.one_of(
    hnp.boolean_dtypes(), hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes(sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(sizes=(64, 128)),
)  # fmt: skip
scalars = dtypes.flatmap(hnp.from_dtype).filter(lambda value: isinstance(value, np.generic))
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=40))
plain = st.one_of(numbers, scalars, st.text(st.characters(codec="utf-8")), st.binary(), dtypes, st.just(...), arrays)
indices = st.one_of(st.none(), st.integers(-99, 99))
values = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=3),
        st.builds(slice, indices, indices, indices),
    ),
    max_leaves=8,
)


def same(left: Any, right: Any) -> bool:
    """Tell whether two values are the same in type and content; NaN is the same as NaN."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return (
            isinstance(left, np.ndarray)
            and isinstance(right, np.ndarray)
            and (left.dtype, left.shape) == (right.dtype, right.shape)
            and left.tobytes() == right.tobytes()
        )
    if type(left) is not type(right):
        return False
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, np.generic):
        return left.dtype == right.dtype and left.tobytes() == right.tobytes()
    return bool(left == right) or (left != left and right != right)


@settings(deadline=None, max_examples=60)
@given(values)
def test_arguments_reach_the_executor_as_they_are(device: Device, value: Any) -> None:
    encoder = Encoder(stands_for)
    sent = msgspec.msgpack.encode(encoder.encode(value))
    reader = Reader(Heap(), device, str, DescribedObjects(device))
    reader.with_frames(encoder.buffers)
    assert same(reader.read(_through_bytes(sent)), value)


def test_nan_is_the_nan_that_cupy_knows(device: Device) -> None:
    nan = float("nan")
    sent: Any = _through_bytes(
        msgspec.msgpack.encode(Encoder(stands_for).encode([nan, (np.nan,), {"cval": nan}, -nan]))
    )
    read = Reader(Heap(), device, str, DescribedObjects(device)).read(sent)
    assert read[0] is read[1][0] is read[2]["cval"] is np.nan
    assert np.signbit(read[3])


@settings(deadline=None, max_examples=60)
@given(values)
def test_results_by_value_reach_the_notebook_as_they_are(device: Device, value: Any) -> None:
    buffers: list[np.ndarray[Any, Any]] = []
    writer = Writer(Heap(), device, DescribedObjects(device))
    sent = msgspec.msgpack.encode(writer.contents(value, buffers))
    frames = [buffer.tobytes() for buffer in buffers]
    decoder = Decoder(frames, {}, lambda info: info, lambda info: info)  # type: ignore[arg-type, return-value]
    assert same(decoder.decode(_through_bytes(sent)), value)


def test_results_that_stay_get_handles_in_order_and_arguments_keep_theirs(device: Device) -> None:
    heap = Heap()
    writer = Writer(heap, device, DescribedObjects(device))
    known = device.upload(np.arange(3))
    fresh, thing = device.upload(np.arange(4.0)), device.resolve("cupy.poly1d")([1, 2])
    told = writer.describe((fresh, thing, known, 7), 100, {id(known): 5}, [(5, known)])
    assert isinstance(told, wire.Tuple)
    assert told.items[0] == wire.ArrayInfo(100, (4,), (8,), "<f8")
    assert told.items[1:] == (wire.ObjectInfo(101, "cupy.poly1d"), wire.Ref(5), 7)
    assert heap.objects[100] is fresh
    assert heap.objects[101] is thing


def test_a_host_array_is_told_by_value(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    """A GPU's arrays are no NumPy arrays; some of CuPy's functions give one if they are given nothing else."""
    monkeypatch.setattr(device, "is_array", lambda value: False)
    monkeypatch.setattr(device, "class_name", lambda kind: None)
    host = np.arange(6, dtype="<i2").reshape(2, 3).T
    told: Any = Writer(Heap(), device, DescribedObjects(device)).describe([host], 9, {}, [])
    decoder = Decoder([], {}, lambda info: info, lambda info: info)  # type: ignore[arg-type, return-value]
    assert same(decoder.decode(_through_bytes(msgspec.msgpack.encode(told)))[0], host)


def test_a_result_that_shares_an_arguments_memory_says_so(device: Device) -> None:
    root = device.upload(np.arange(6.0))
    part = device.view(root, 16, (2,), (8,), np.dtype("f8"))
    told = Writer(Heap(), device, DescribedObjects(device)).describe(part, 9, {}, [(5, root)])
    assert told == wire.ArrayInfo(9, (2,), (8,), "<f8", 5, 16)


def test_it_says_how_that_array_lies(device: Device) -> None:
    root = device.upload(np.arange(6.0).reshape(2, 3)).T
    part = device.view(root, 8, (3,), (8,), np.dtype("f8"))
    told = Writer(Heap(), device, lambda result: None).describe(part, 9, {}, [(5, root)])
    assert told == wire.ArrayInfo(9, (3,), (8,), "<f8", 5, 8, "F")


def test_a_view_shows_its_roots_memory(device: Device) -> None:
    heap = Heap()
    heap.objects[1] = device.upload(np.arange(6).reshape(2, 3))
    view = Reader(heap, device, str, DescribedObjects(device)).read(wire.View(1, 8, (2,), (24,), "<i8", "C"))
    assert device.download(view).tolist() == [1, 4]


def test_a_root_that_lies_otherwise_than_its_view_believes_is_laid_out_so(device: Device) -> None:
    heap, believed = Heap(), wire.View(1, 8, (3,), (16,), "<i8", "F")
    heap.put(1, device.upload(np.arange(6).reshape(2, 3)))
    reader = Reader(heap, device, device.resolve, DescribedObjects(device))
    for _ in range(2):
        with pytest.raises(OutOfOrder, match="memory order"):
            reader.read(believed)
        with pytest.raises(OutOfOrder, match="memory order"):
            reader.lay_out(believed)  # nobody has said that nothing else holds it
    heap.ownership.own(1)
    reader.lay_out(believed)
    assert device.download(reader.read(believed)).tolist() == [3, 4, 5]
    assert device.memory_order(heap.objects[1]) == "F"


def test_a_belief_in_gaps_holds_for_those_gaps_alone(device: Device) -> None:
    heap = Heap()
    memory = device.upload(np.arange(12.0))
    heap.objects[1] = device.view(memory, 0, (2, 3), (48, 16), np.dtype("f8"))
    reader = Reader(heap, device, device.resolve, DescribedObjects(device))
    told = device.memory_order(heap.objects[1])
    assert device.download(reader.read(wire.View(1, 16, (2,), (48,), "<f8", told))).tolist() == [2, 8]
    for believed in ("?48,8", "?", ""):
        with pytest.raises(OutOfOrder, match="memory order"):
            reader.read(wire.View(1, 0, (2,), (16,), "<f8", believed))


def test_a_belief_in_gaps_where_there_are_none_is_found_out(device: Device) -> None:
    heap = Heap()
    heap.objects[1] = device.upload(np.arange(6.0))
    with pytest.raises(OutOfOrder, match="memory order"):
        Reader(heap, device, device.resolve, DescribedObjects(device)).read(wire.View(1, 0, (3,), (16,), "<f8", "?16"))


def test_lies_are_found_out(device: Device) -> None:
    heap = Heap()
    heap.objects[1] = heap.objects[7] = heap.objects[8] = heap.objects[9] = device.upload(np.arange(6).reshape(2, 3))
    reader = Reader(heap, device, device.resolve, DescribedObjects(device))
    with pytest.raises(MissingHandle):
        reader.read(wire.Ref(2))
    with pytest.raises(MissingHandle):
        reader.read(wire.List((wire.Tuple((wire.View(2, 0, (1,), (8,), "<i8", "C"),)),)))
    with pytest.raises(OutOfOrder, match="memory order"):
        reader.read(wire.View(1, 0, (3, 2), (8, 24), "<i8", "F"))
    with pytest.raises(ValueError, match="reaches beyond"):
        reader.read(wire.View(1, 40, (2,), (8,), "<i8", "C"))
    with pytest.raises(ProtocolError, match="does not hold"):
        reader.read(wire.Buffer(-1, "<f8", (3,), b"1234"))
    with pytest.raises(ProtocolError, match="is missing"):
        reader.read(wire.Buffer(0, "<f8", (3,)))
    with pytest.raises(ProtocolError, match="has 8 bytes, not 4"):
        reader.read(wire.Scalar("<f8", b"1234"))
    with pytest.raises(ProtocolError, match="may not send"):
        reader.read(wire.ObjectInfo(1, "x"))


@pytest.mark.parametrize("value", [object(), set(), np.array([object()]), iter(())])
def test_what_means_something_in_one_process_only_is_not_sent(value: Any) -> None:
    with pytest.raises((Unsendable, ValueError)):
        Encoder(stands_for).encode(value)


def test_an_array_too_large_for_a_message_is_told_the_way_that_works() -> None:
    with pytest.raises(Unsendable, match=r"cupy\.asarray"):
        Encoder(stands_for).encode(np.empty(65 << 20, np.uint8))


@pytest.mark.parametrize("offset", range(9))
def test_host_arrays_begin_at_whole_words(device: Device, offset: int) -> None:
    """Compiled functions refuse others, and a frame begins anywhere."""
    reader = Reader(Heap(), device, str, DescribedObjects(device))
    reader.with_frames([memoryview(bytes(offset) + np.arange(4.0).tobytes())[offset:]])
    found = reader.read(wire.Buffer(0, "<f8", (4,)))
    assert found.flags.aligned
    assert found.tolist() == [0, 1, 2, 3]
