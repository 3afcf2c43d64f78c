"""Kernels of the user's that come again are launched without CuPy, and nobody can tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.devices.replays import Number as AnyNumber
from gpu_backend.devices.replays import Replay, Unrepeatable
from gpu_backend.executor.heap import Kind
from gpu_backend.executor.program import direct, kernel_calls
from gpu_backend.executor.program.operands import Number
from gpu_backend.executor.program.replay import Replayer
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Complex, Ref, Scalar, Tuple, Value, View
from tests.unit.executor.program.numpy_replays import ReplayingCpu
from tests.unit.executor.program.played import PlayedNotebook

SCALE, RAW, X, Y = 1, 2, 3, 4
HOST = np.arange(12.0)
SOURCE = """
extern "C" __global__ void f(const double* x, double* y, long long n) { int i = threadIdx.x; y[i] = x[i] + n; }
"""


@pytest.fixture(autouse=True)
def wanted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Capture what comes for the second time."""
    monkeypatch.setattr(direct, "_WANTED", 2)


@pytest.fixture
def on() -> PlayedNotebook:
    """Return a notebook with two kernels and two arrays."""
    notebook = PlayedNotebook(device=ReplayingCpu())
    device: Any = notebook.device
    heap = notebook.stream.heap
    heap.put(SCALE, device.resolve("cupy.ElementwiseKernel")("T x, T k", "T y", "y = x * k", "scale"), Kind.KERNEL)
    heap.put(RAW, device.resolve("cupy.RawKernel")(SOURCE, "f"), Kind.KERNEL)
    for handle in (X, Y):
        heap.put(handle, device.upload(HOST.copy()))
        heap.ownership.own(handle)
    return notebook


def replayer(on: PlayedNotebook) -> Replayer:
    assert on.stream._direct is not None
    assert on.stream._direct.replayer is not None
    return on.stream._direct.replayer


def scaled(into: int, value: Value, by: float) -> Op:
    return Op(".call", into, (Ref(SCALE), value, by))


def launched(value: Value, into: Value, number: int) -> Op:
    return Op(".call", 0, (Ref(RAW), Tuple((1,)), Tuple((6,)), Tuple((value, into, number))))


def half(handle: int, first: int) -> View:
    return View(handle, 8 * first, (6,), (8,), "<f8", "")


def test_a_call_is_captured_when_it_has_come_often(on: PlayedNotebook) -> None:
    on.run(*(scaled(20 + one, half(X, one), 2.0) for one in range(5)))
    assert replayer(on).replayed == 4
    for one in range(5):
        np.testing.assert_array_equal(on.contents(Ref(20 + one)), HOST[one : one + 6] * 2)


def test_a_kernel_that_writes_its_arguments_does(on: PlayedNotebook) -> None:
    for one in range(5):
        on.run(launched(half(X, one), half(Y, one), 3))
    assert replayer(on).replayed == 4
    np.testing.assert_array_equal(on.contents(Ref(Y)), [*(HOST[:10] + 3), 10, 11])


def test_numbers_are_told_apart_by_their_bits(on: PlayedNotebook) -> None:
    for value in (2.0, 2, True, 0.0, -0.0):
        for into in range(30, 33):
            on.run(Op(".call", into, (Ref(SCALE), Ref(X), value), (into,)))
        on.run(scaled(40, Ref(X), value))
        expected = HOST * value
        assert on.contents(Ref(40)).tobytes() == expected.tobytes()
        on.run(Op(".nothing", 0, (), (40,)))


def test_a_kernel_may_be_given_another_number_each_time(on: PlayedNotebook) -> None:
    for number in range(12):
        on.run(launched(half(X, 0), half(Y, 6), number))
        assert on.contents(half(Y, 6))[5] == HOST[5] + number
    assert replayer(on).replayed == 11


def test_so_may_one_that_goes_element_by_element(on: PlayedNotebook) -> None:
    for number in range(12):
        on.run(scaled(20, Ref(X), number + 0.5), scaled(21, Ref(X), number))
        np.testing.assert_array_equal(on.contents(Ref(20)), HOST * (number + 0.5))
        np.testing.assert_array_equal(on.contents(Ref(21)), HOST * number)
        on.run(Op(".nothing", 0, (), (20, 21)))
    assert replayer(on).replayed == 22


@pytest.mark.parametrize("number", [Scalar("<f4", np.float32(0.1).tobytes()), Complex(1.0, 2.0), True])
def test_what_another_type_is_made_of_is_known_by_its_bits(on: PlayedNotebook, number: Value) -> None:
    device: Any = on.device
    kernel = device.resolve("cupy.ElementwiseKernel")("T x, T k", "T y", "y = x * k", "scale")
    given = number if type(number) is bool else np.float32(0.1) if type(number) is Scalar else 1 + 2j
    for _ in range(4):
        errors = [one.error for one in on.run(scaled(20, Ref(X), number)) if one.error is not None]  # type: ignore[arg-type]
        if errors:
            with pytest.raises(TypeError):
                kernel(HOST, given)
        else:
            assert on.contents(Ref(20)).tobytes() == kernel(HOST, given).tobytes()
        on.run(Op(".nothing", 0, (), (20,)))
    calls = on.stream._direct._calls  # type: ignore[union-attr]
    assert calls.by_bits == (set() if type(number) is bool else {SCALE})
    assert bool(errors) or replayer(on).replayed == (3 if type(number) is bool else 1)


def test_numbers_that_do_not_fit_again_and_again_are_known_by_their_bits(on: PlayedNotebook) -> None:
    device: Any = on.device
    made = device.resolve("cupy.ElementwiseKernel")("float64 x, float32 k", "float64 y", "y = x * k", "narrow")
    on.stream.heap.put(9, made, Kind.KERNEL)
    for number in (1, 1, *[(1 << 24) + 1] * 12):  # which float32 cannot hold
        on.run(Op(".call", 20, (Ref(9), Ref(X), number)))
        np.testing.assert_array_equal(on.contents(Ref(20)), HOST * np.float32(number))
        on.run(Op(".nothing", 0, (), (20,)))
    assert on.stream._direct._calls.by_bits == {9}  # type: ignore[union-attr]
    assert replayer(on).replayed == 1 + 12 - 8 - 1


def test_numbers_that_do_not_fit_now_and_then_end_nothing(on: PlayedNotebook) -> None:
    device: Any = on.device
    made = device.resolve("cupy.ElementwiseKernel")("float64 x, float32 k", "float64 y", "y = x * k", "narrow")
    on.stream.heap.put(9, made, Kind.KERNEL)
    for number in (1, 1, *[one for turn in range(12) for one in ((1 << 24) + 1 + 2 * turn, turn)]):
        on.run(Op(".call", 20, (Ref(9), Ref(X), number)))
        np.testing.assert_array_equal(on.contents(Ref(20)), HOST * np.float32(number))
        on.run(Op(".nothing", 0, (), (20,)))
    assert not on.stream._direct._calls.by_bits  # type: ignore[union-attr]
    assert replayer(on).replayed == 1 + 12


def test_an_array_of_nothing_ends_nothing(on: PlayedNotebook) -> None:
    device: Any = on.device
    on.stream.heap.put(50, device.upload(np.zeros(0)))
    on.stream.heap.ownership.own(50)
    for number in range(12):
        on.run(scaled(20, Ref(50), number + 0.5), scaled(21, Ref(X), number + 0.5))
        assert on.contents(Ref(20)).shape == (0,)
        np.testing.assert_array_equal(on.contents(Ref(21)), HOST * (number + 0.5))
        on.run(Op(".nothing", 0, (), (20, 21)))
    assert not on.stream._direct._calls.by_bits  # type: ignore[union-attr]
    assert replayer(on).replayed == 11


def test_a_kernel_that_is_compiled_by_its_numbers_tells_no_types() -> None:
    class JitRawKernel:
        pass

    op, places = launched(Ref(X), Ref(Y), 3), [Number(3, int)]
    plain = Op(".call", 0, (*op.args[:3], Tuple((3,))))
    assert kernel_calls.types_handed_over(plain, JitRawKernel(), places) is None
    raw = ReplayingCpu().resolve("cupy.RawKernel")(SOURCE, "f")
    assert kernel_calls.types_handed_over(plain, raw, places) == (np.dtype(np.int64),)


def test_a_kernel_whose_numbers_vary_otherwise_is_soon_left_to_cupy(
    on: PlayedNotebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_calls, "_MOST_WAYS", 4)
    for number in range(12):
        wide = Scalar("<i8", ((1 << 33) + number).to_bytes(8, "little"))
        on.run(Op(".call", 0, (Ref(RAW), Tuple((1,)), Tuple((6,)), Tuple((half(X, 0), half(Y, 6), wide)))))
        assert on.contents(half(Y, 6))[5] == HOST[5] + (1 << 33) + number
    assert on.stream._direct is not None
    assert len([way for way in on.stream._direct._courses if way[0] == ".call"]) == 5
    assert replayer(on).replayed == 0


def test_where_a_number_decides_more_each_is_known_by_its_bits(
    on: PlayedNotebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    device: Any = on.device
    capture = device.replays.capture

    def refuse(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Replay:
        if any(type(one) is AnyNumber for one in args[-1]):
            raise Unrepeatable("launches that differ")
        found: Replay = capture(function, args, kwargs)
        return found

    monkeypatch.setattr(device.replays, "capture", refuse)
    for number in (1, 1, 1, 1, 1, 2, 2, 2, 2):
        on.run(launched(half(X, 0), half(Y, 6), number))
        assert on.contents(half(Y, 6))[5] == HOST[5] + number
    assert replayer(on).replayed == 2 + 3


@pytest.mark.parametrize("wide", [1 << 32, (1 << 63) - 1, Scalar("<u8", (1 << 40).to_bytes(8, "little"))])
def test_what_may_be_an_address_is_known_by_its_bits(on: PlayedNotebook, wide: Value) -> None:
    assert not kernel_calls.is_parameter(wide)
    for _ in range(3):
        on.run(Op(".call", 0, (Ref(RAW), Tuple((1,)), Tuple((6,)), Tuple((half(X, 0), half(Y, 6), wide)))))
    assert replayer(on).replayed == 2
    (way,) = [way for way in on.stream._direct._courses if way[0] == ".call"]  # type: ignore[union-attr]
    assert kernel_calls.encoded(wide) in way


@pytest.mark.parametrize(
    "value",
    [0, -1, (1 << 32) - 1, 1e300, Complex(1.0, 2.0), Scalar("<i8", b"\xff" * 8), Scalar("<f8", b"\1" * 8)],
)
def test_what_is_no_address_is_a_parameter(value: Value) -> None:
    assert kernel_calls.is_parameter(value)


@pytest.mark.parametrize(
    "value", [None, True, "word", Tuple((1,)), Scalar("|b1", b"\1"), Scalar("|V8", bytes(8)), Scalar("<M8", bytes(8))]
)
def test_what_is_no_number_is_none(value: Value) -> None:
    assert not kernel_calls.is_parameter(value)


def test_one_kernel_is_not_taken_for_another(on: PlayedNotebook) -> None:
    device: Any = on.device
    on.stream.heap.put(9, device.resolve("cupy.ElementwiseKernel")("T x, T k", "T y", "y = x - k", "less"), Kind.KERNEL)
    for into in range(20, 26, 2):
        on.run(scaled(into, Ref(X), 2.0), Op(".call", into + 1, (Ref(9), Ref(X), 2.0)))
        np.testing.assert_array_equal(on.contents(Ref(into)), HOST * 2)
        np.testing.assert_array_equal(on.contents(Ref(into + 1)), HOST - 2)


def test_what_is_no_kernel_goes_its_own_way(on: PlayedNotebook) -> None:
    answers = on.run(*(Op(".call", 20, (Ref(X), Ref(Y))) for _ in range(3)))
    assert len(answers) <= 3
    assert replayer(on).replayed == 0
