"""Single numbers that are read, put and computed with by themselves: the outcome is that of whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import nan
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.opstream.layout import Layout, contiguous, strided
from gpu_backend.wire import values as wire
from gpu_backend.wire.values import Ref, View
from kernelproxy.mirror import elementwise, numbers
from kernelproxy.mirror.entries import Number
from kernelproxy.mirror.host_mirror import HostMirror
from kernelproxy.mirror.memory import Memory
from kernelproxy.mirror.worth import GRANT

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "V4", ">i4"]
SHAPES = [(), (1,), (5,), (3, 2), (1, 4), (0,), (2, 3, 2)]
#: Where integers and floats end, where floats hold integers no more, and what is equal and not the same.
NUMBERS: list[Any] = [
    True, False, 0, 1, -1, 2, 127, 128, -128, 255, 256, -32768, 65535, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 32,
    1 << 53, (1 << 53) + 1, -(1 << 53) - 1, (1 << 63) - 1, -(1 << 63), 0.0, -0.0, 0.5, -1.5, 2049.0, 1e-308, 5e-324,
    1e-160, 1e160, 1e308, -1e308, 3.4e38, float("inf"), float("-inf"), nan, wire.Scalar("<i4", b"\1\0\0\0"),
    wire.Scalar("<f8", b"\0" * 7 + b"\x80"), None,
]  # fmt: skip
OPS = [*sorted(numbers.NAMES), "cupy.power", "cupy.logical_and", "cupy.floor_divide", "cupy.left_shift"]
STORES = [".store", "cupy.ndarray.__setitem__", "cupy.ndarray.fill", "cupy.copyto"]


@contextmanager
def arrays_only() -> Iterator[None]:
    """Return a context in which nothing is done by single numbers."""
    with (
        mock.patch.object(numbers, "computed", return_value=None),
        mock.patch.object(numbers, "fitting", return_value=None),
        mock.patch.object(Memory, "place", return_value=-1),
    ):
        yield


def filled(layout: Layout, seeds: list[Any]) -> bytes:
    """Return the bytes of an array of ``layout`` that holds ``seeds`` over and over, as far as they fit."""
    values = np.zeros(layout.size, layout.dtype)
    for place in range(layout.size):
        seed = seeds[place % len(seeds)]
        with np.errstate(all="ignore"):
            try:
                values[place] = seed
            except (OverflowError, ValueError, TypeError):
                values[place] = 3 if layout.dtype.kind != "V" else b"abcd"
    return values.tobytes()


MEMORIES = st.tuples(
    st.sampled_from(SHAPES), st.sampled_from(DTYPES), st.sampled_from("CF"),
    st.lists(st.sampled_from([one for one in NUMBERS if isinstance(one, (int, float))]), min_size=1, max_size=4),
)  # fmt: skip


def elements(layouts: list[Layout]) -> st.SearchStrategy[Any]:
    """Return windows on single elements, most plain: also of others' dtypes and orders, or out of the memory."""

    def windows(place: int, element: int, gap: int, dtype: str | None, order: str | None) -> View:
        layout = layouts[place]
        text = layout.dtype_text if dtype is None else np.dtype(dtype).str
        order = layout.memory_order if order is None else order
        return View(place + 1, element * layout.itemsize + gap, (), (), text, order)

    return st.builds(
        windows, st.integers(0, len(layouts) - 1), st.integers(-1, 6), st.sampled_from([0] * 9 + [1]),
        st.sampled_from([None] * 9 + ["i4", "f8"]), st.sampled_from([None] * 9 + ["C", "F", ""]),
    )  # fmt: skip


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[tuple[Layout, bytes]], list[tuple[Any, ...]]]:
    """Draw memories, by handles from 1, and what is done with them."""
    memories = []
    for shape, dtype, order, seeds in draw(st.lists(MEMORIES, min_size=1, max_size=3)):
        layout = contiguous(shape, np.dtype(dtype), order)
        memories.append((layout, filled(layout, seeds)))
    element = elements([layout for layout, _ in memories])
    refs = st.builds(Ref, st.integers(1, len(memories) + 4))
    operand = st.one_of(element, element, st.sampled_from(NUMBERS), refs)
    made = st.builds(lambda dtype: contiguous((), np.dtype(dtype)), st.sampled_from(DTYPES[:12]))
    steps = st.one_of(
        st.tuples(st.just("read"), st.one_of(element, refs), made),
        st.tuples(st.just("store"), st.sampled_from(STORES), st.one_of(element, element, refs), operand),
        st.tuples(st.just("compute"), st.sampled_from(OPS), operand, operand, made),
    )
    return memories, draw(st.lists(steps, max_size=12))


class Side:
    """One mirror, and all that it has told."""

    def __init__(self, memories: list[tuple[Layout, bytes]]) -> None:
        self.mirror = HostMirror()
        self.mirror.worth.budget = GRANT
        self.told: list[Any] = []
        for place, (layout, data) in enumerate(memories):
            self.mirror.keep(place + 1, layout, data)
            self.mirror.get(place + 1)
        self.layouts = [layout for layout, _ in memories]
        self.next = len(memories) + 1

    def do(self, step: tuple[Any, ...]) -> None:
        """Take a step, as the recorder does."""
        kind, *given = step
        getattr(self, kind)(*given)
        worth = self.mirror.worth
        self.told.append((kind, *map(self.shown, self.mirror.known), worth.budget, worth._in_vain))
        self.told.append(set(self.mirror.barred))

    def read(self, shown: Ref | View, other: Layout) -> None:
        layout = strided((), (), np.dtype(shown.dtype)) if type(shown) is View else other
        found = self.mirror.number(shown, layout)
        self.told.append((type(found), np.asarray(found).tobytes() if found is not None and found == found else 0))

    def store(self, name: str, target: Ref | View, value: Any) -> None:
        args = (target, wire.Ellipsis(), value) if name == "cupy.ndarray.__setitem__" else (target, value)
        self.publish(self.mirror.note(name, args, None, 0, 0, None, 1))

    def compute(self, name: str, one: Any, other: Any, made: Layout) -> None:
        kinds = [self.kind(one), self.kind(other)]
        plan = None if None in kinds else elementwise.planned(name, tuple(kinds))
        layout = made if plan is None else contiguous((), plan.output)
        self.publish(self.mirror.note(name, (one, other), None, 1, self.next, layout, 1))
        self.next += 1

    def kind(self, value: Any) -> Any:
        dtype = None
        if type(value) is View:
            dtype = np.dtype(value.dtype)
        elif type(value) is Ref and (entry := self.mirror.known.get(value.handle)) is not None:
            dtype = entry.layout.dtype
        if dtype is not None:
            return dtype if dtype.kind != "V" and dtype.isnative else None
        return elementwise.WEAK.get(type(value))

    def publish(self, known: Any) -> None:
        if known is not None:
            self.mirror.publish(*known)

    def shown(self, handle: int) -> Any:
        entry: Any = self.mirror.known[handle]
        memory = entry.as_memory() if type(entry) is Number else entry
        return handle, memory.layout, memory.array.tobytes("A"), memory.may_be_nan, memory.is_computed


def in_both_ways(take: Callable[[], list[Any]]) -> tuple[list[Any], list[Any]]:
    """Return what ``take`` gives by single numbers, and by arrays."""
    by_numbers = take()
    with arrays_only():
        return by_numbers, take()


def held(dtype: str, with_nan: bool = False, order: str = "C") -> tuple[Layout, bytes]:
    """Return a column of what a dtype holds that is worth to be looked at."""
    values: list[Any] = []
    for one in NUMBERS:
        with np.errstate(all="ignore"), suppress(OverflowError, ValueError, TypeError):
            made = np.asarray(one, dtype)
            if one is not None and (with_nan or one == one) and made.tobytes() not in [one.tobytes() for one in values]:
                values.append(made)
    column = np.array(values, dtype)[-7:]
    return contiguous((len(column), 1), column.dtype, order), column.tobytes()


def places(handle: int, layout: Layout) -> list[View]:
    return [
        View(handle, place * layout.itemsize, (), (), layout.dtype_text, layout.memory_order)
        for place in range(layout.size)
    ]


@pytest.mark.parametrize(("dtype", "with_nan"), [*((one, False) for one in DTYPES[:12]), ("f4", True), ("f8", True)])
def test_ops_come_out_as_of_arrays(dtype: str, with_nan: bool) -> None:
    memories = [held(dtype, with_nan), held("i4"), held("f8")]
    elements = [places(handle, layout) for handle, (layout, _) in enumerate(memories, 1)]
    others = [*NUMBERS, *elements[0], *elements[1][:3], *elements[2][:3]]
    pairs = [pair for one in elements[0] for other in others for pair in ((one, other), (other, one))]

    def take() -> list[Any]:
        side, found = Side(memories), []
        for name in OPS:
            for one, other in pairs:
                side.mirror.worth.budget, handle = GRANT, side.next
                side.compute(name, one, other, contiguous((), np.dtype(dtype)))
                made = side.shown(handle)[1:] if handle in side.mirror.known else None
                number = None if made is None else side.mirror.number(Ref(handle), made[0])
                side.mirror.drop(handle)
                found.append((name, one, other, side.mirror.worth.budget, made, type(number), number))
                side.next = handle
        return found

    by_numbers, by_arrays = in_both_ways(take)
    assert repr(by_numbers) == repr(by_arrays)


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("dtype", [one for one in DTYPES if one != "V4"])
def test_what_is_put_comes_out_as_in_arrays(dtype: str, name: str) -> None:
    memories = [held(dtype, order="F"), held("i4"), held("f8", with_nan=True), held("?"), held("u4")]
    values = [*NUMBERS, *(view for handle, (layout, _) in enumerate(memories, 1) for view in places(handle, layout))]

    def take() -> list[Any]:
        found = []
        for value in values:
            side = Side(memories)
            side.do(("store", name, places(1, memories[0][0])[-1], value))
            found.append((value, side.told))
        return found

    by_numbers, by_arrays = in_both_ways(take)
    assert repr(by_numbers) == repr(by_arrays)


@pytest.mark.parametrize("believed", ["C", "F", ""])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_read_comes_out_as_of_arrays(dtype: str, order: str, believed: str) -> None:
    layout = contiguous((2, 3), np.dtype(dtype), order)
    data = bytes(range(40, 40 + layout.nbytes))

    def take() -> list[Any]:
        found = []
        for shown in (dtype, "i4", "f8"):
            for offset in range(-layout.itemsize - 1, layout.nbytes + 2):
                side = Side([(layout, data)])
                view = View(1, offset, (), (), np.dtype(shown).str, believed)
                for kind in (shown, dtype, "i2"):
                    side.told.append(side.mirror.number(view, contiguous((), np.dtype(kind))))
                found.append((shown, offset, side.told, list(side.mirror.known)))
        return found

    by_numbers, by_arrays = in_both_ways(take)
    assert repr(by_numbers) == repr(by_arrays)


@settings(max_examples=150)
@given(programs())
def test_single_numbers_come_out_as_arrays_do(program: tuple[list[tuple[Layout, bytes]], list[Any]]) -> None:
    memories, steps = program
    short, general = Side(memories), Side(memories)
    for step in steps:
        short.do(step)
        with arrays_only():
            general.do(step)
        assert short.told == general.told


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES[:12])
def test_each_element_is_read_and_put_where_it_lies(dtype: str, order: str) -> None:
    layout, number = contiguous((3, 4), np.dtype(dtype), order), contiguous((), np.dtype(dtype))
    values = np.arange(12).reshape(3, 4).astype(dtype)
    mirror = HostMirror()
    mirror.worth.budget = GRANT
    data = values.tobytes(order)
    mirror.keep(1, layout, data)
    mirror.get(1)
    for place in np.ndindex(3, 4):
        offset = sum(one * stride for one, stride in zip(place, layout.strides, strict=True))
        view = View(1, offset, (), (), layout.dtype_text, layout.memory_order)
        found, expected = mirror.number(view, number), values[place].item()
        assert (found, type(found)) == (expected, type(expected))
        known = mirror.note(".store", (view, True), None, 0, 0, None, 1)
        assert known is not None
        assert 1 not in mirror.known, "nothing is known of it until the op is recorded"
        mirror.publish(*known)
        assert mirror.number(view, number) == 1
    assert data == values.tobytes(order), "what was uploaded belongs to its message"
    memory = mirror.get(1)
    assert memory is not None
    assert (memory.array == 1).all()


def test_most_of_dynamic_programming_is_done_by_single_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror, number = HostMirror(), contiguous((), np.dtype("i4"))
    mirror.worth.budget = GRANT
    mirror.keep(1, contiguous((4,), np.dtype("i4")), bytes(16))
    mirror.get(1)
    for name in ("window", "part", "write"):
        monkeypatch.setattr(Memory, name, lambda *_: pytest.fail("an array was made"))
    view = View(1, 4, (), (), "<i4", "")
    for handle, one in enumerate((view, Ref(2), Ref(3)), 2):
        made = mirror.note("cupy.add", (one, 3), None, 1, handle, number, 1)
        assert made is not None
        mirror.publish(*made)
    assert mirror.number(Ref(4), number) == 9
    known = mirror.note("cupy.ndarray.__setitem__", (view, wire.Ellipsis(), Ref(4)), None, 0, 0, None, 1)
    assert known is not None
    mirror.publish(*known)
    assert mirror.number(view, number) == 9
