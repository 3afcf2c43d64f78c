"""Kernels of the user's that are launched again on a GPU give the bits of CuPy's own launches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.executor.heap import Kind
from gpu_backend.executor.program.run import OpStream
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, Scalar, Tuple, Value, View
from tests.gpu.conftest import Sides
from tests.unit.executor.program.played import PlayedNotebook

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(200)]

RAW, ELEMENTWISE, REDUCTION, SCALED, X, Y = range(1, 7)
SIZE, ROUNDS = 10_000, 40
SOURCE = """
extern "C" __global__ void step(const double* x, double* y, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += by * x[i];
}
"""
_OFF = ("store", "reuse")
_ALL = ("store", "reuse", "replay", "segments", "products")
GRID, BLOCK = Tuple((40,)), Tuple((256,))


def _part(handle: int, first: int) -> View:
    return View(handle, 8 * first, (SIZE // 2,), (8,), "<f8", "")


def _by(value: float) -> Scalar:
    return Scalar("<f4", np.float32(value).tobytes())


CALLS: dict[str, tuple[int, tuple[Value, ...], dict[str, Value] | None]] = {
    "raw": (0, (Ref(RAW), GRID, BLOCK, Tuple((Ref(X), Ref(Y), SIZE, _by(0.5)))), None),
    "raw on windows": (0, (Ref(RAW), GRID, BLOCK, Tuple((_part(X, 3), _part(Y, 70), SIZE // 2, _by(3.0)))), None),
    "raw with shared memory": (
        0, (Ref(RAW), GRID, BLOCK, Tuple((Ref(X), Ref(Y), SIZE, _by(-1.0)))), {"shared_mem": 512},
    ),
    "raw in place": (0, (Ref(RAW), GRID, BLOCK, Tuple((Ref(Y), Ref(Y), SIZE, _by(0.25)))), None),
    "elementwise": (50, (Ref(ELEMENTWISE), Ref(X), Ref(Y), 2.5), None),
    "elementwise on windows": (50, (Ref(ELEMENTWISE), _part(X, 3), _part(Y, 70), 2), None),
    "reduction": (50, (Ref(REDUCTION), Ref(X)), None),
    "reduction of a window": (50, (Ref(REDUCTION), _part(X, 9)), None),
}  # fmt: skip


@pytest.fixture(scope="module")
def cuda() -> Any:
    from gpu_backend.devices.cuda import CudaDevice

    return CudaDevice()


def _played(device: Any, passes: tuple[str, ...], call: str) -> tuple[list[bytes], OpStream]:
    """Return what the call left behind each time."""
    on = PlayedNotebook(passes, device)
    kernels = {
        RAW: device.resolve("cupy.RawKernel")(SOURCE, "step"),
        ELEMENTWISE: device.resolve("cupy.ElementwiseKernel")("T x, T y, T k", "T z", "z = x * k - y", "scaled"),
        REDUCTION: device.resolve("cupy.ReductionKernel")("T x", "T y", "x * x", "a + b", "y = a", "0", "squares"),
    }
    for handle, kernel in kernels.items():
        on.stream.heap.put(handle, kernel, Kind.KERNEL)
    numbers, found = np.random.default_rng(1), []
    out, args, kwargs = CALLS[call]
    for handle in (X, Y):
        on.stream.heap.put(handle, device.upload(numbers.normal(size=SIZE)))
        on.stream.heap.ownership.own(handle)
    for _ in range(ROUNDS):
        on.run(Op("cupy.multiply", 0, (Ref(X), 1.25, Ref(X))))  # so that something is gathered before it
        errors = [one.error for one in on.run(Op(".call", out, args, kwargs=kwargs)) if one.error is not None]
        found.append(repr(errors).encode() + on.contents(Ref(out or Y)).tobytes())
        on.run(Op(".nothing", 0, (), (out,) if out else ()))
    return found, on.stream


@pytest.mark.parametrize("call", CALLS)
def test_a_kernel_leaves_the_same_bits(cuda: Any, call: str) -> None:
    assert _played(cuda, _ALL, call)[0] == _played(cuda, _OFF, call)[0]


@pytest.mark.parametrize("call", [call for call in CALLS if call != "raw in place"])
def test_a_kernel_is_launched_again(cuda: Any, call: str) -> None:
    _, stream = _played(cuda, _ALL, call)
    assert stream._direct is not None
    assert stream._direct.replayer is not None
    launched = {how: count for _, how, count in stream.ways()}.get("launched again", 0)  # by Python or without it
    assert launched > ROUNDS // 2, stream._direct.replayer.refused


GIVEN = """
extern "C" __global__ void given(
    double* y, int n, long long m, double a, float b, bool c, short d, unsigned e, char f
) {
    int i = threadIdx.x;
    y[i] = n + 3.0 * m + 5 * a + 7 * b + 11 * c + 13 * d + 17.0 * e + 19 * f + i;
}
"""


def _given(turn: int) -> tuple[Value, ...]:
    """Return another number of each type in each turn; what is handed over wider than the kernel reads it, too."""
    numbers = np.random.default_rng(turn)
    narrow, wide = (int(numbers.integers(-(1 << bits), 1 << bits)) for bits in (30, 40))
    return (
        narrow, Scalar("<i8", np.int64(-abs(wide)).tobytes()) if turn % 2 else abs(wide) % (1 << 32),
        float(numbers.normal()), _by(numbers.normal()), bool(turn % 3), int(numbers.integers(-30_000, 30_000)),
        Scalar("<u4", np.uint32(numbers.integers(0, 1 << 32)).tobytes()), Scalar("|i1", np.int8(turn - 20).tobytes()),
    )  # fmt: skip


def _left_by_numbers(device: Any, passes: tuple[str, ...]) -> tuple[list[bytes], OpStream]:
    on, found = PlayedNotebook(passes, device), []
    on.stream.heap.put(RAW, device.resolve("cupy.RawKernel")(GIVEN, "given"), Kind.KERNEL)
    line = device.resolve("cupy.ElementwiseKernel")("T x, float32 a, int16 b, U c", "T y", "y = x * a + b + c", "line")
    on.stream.heap.put(ELEMENTWISE, line, Kind.KERNEL)
    scaled = device.resolve("cupy.ElementwiseKernel")("T x, T k", "T y", "y = x * k - 1", "scaled_less_one")
    on.stream.heap.put(SCALED, scaled, Kind.KERNEL)
    on.stream.heap.put(Y, device.upload(np.zeros(64)))
    on.stream.heap.ownership.own(Y)
    for turn in range(ROUNDS):
        on.run(Op(".call", 0, (Ref(RAW), Tuple((1,)), Tuple((64,)), Tuple((Ref(Y), *_given(turn))))))
        found.append(on.contents(Ref(Y)).tobytes())
        for third in (0.5 - turn, turn, Scalar("<f8", np.float64(turn).tobytes())):  # whose type only CuPy knows
            errors = on.run(Op(".call", 50, (Ref(ELEMENTWISE), Ref(Y), turn / 7, 3 * turn, third)))
            found.append(repr(errors).encode() + (b"" if errors else on.contents(Ref(50)).tobytes()))
            on.run(Op(".nothing", 0, (), (50,)))
        on.run(Op(".call", 51, (Ref(SCALED), Ref(Y), turn / 3)), Op(".call", 52, (Ref(SCALED), Ref(Y), 1 << turn)))
        found += [on.contents(Ref(handle)).tobytes() for handle in (51, 52)]
        on.run(Op(".nothing", 0, (), (51, 52)))
    return found, on.stream


def test_a_kernel_is_launched_again_with_other_numbers(cuda: Any) -> None:
    found, stream = _left_by_numbers(cuda, _ALL)
    assert found == _left_by_numbers(cuda, _OFF)[0]
    assert stream._direct is not None
    assert stream._direct.replayer is not None
    past = stream._direct.recurring.launched if stream._direct.recurring is not None else 0
    # Three a turn, each way of them seven times by CuPy: the launch comes in four, two for its truth value, so a third
    # of it is left, and of the last one those whose number is no address.
    assert past + stream._direct.replayer.replayed > 1.5 * ROUNDS
    assert stream._direct._calls.by_bits == {ELEMENTWISE}


def test_with_more_numbers_than_a_capture_has_room_for_its_arrays_stay_its_own(cuda: Any) -> None:
    names = [f"a{number}" for number in range(34)]
    taken = ", ".join(f"float {name}" for name in names)
    source = f'extern "C" __global__ void many({taken}, double* y) {{ y[threadIdx.x] = {" + ".join(names)}; }}'
    on = PlayedNotebook(_ALL, cuda)
    on.stream.heap.put(RAW, cuda.resolve("cupy.RawKernel")(source, "many"), Kind.KERNEL)
    on.stream.heap.put(Y, cuda.upload(np.zeros(64)))
    on.stream.heap.ownership.own(Y)
    for turn in range(ROUNDS):
        numbers = tuple(_by(turn % 2 + number) for number in range(34))
        on.run(Op(".call", 0, (Ref(RAW), Tuple((1,)), Tuple((64,)), Tuple((*numbers, Ref(Y))))))
        assert on.contents(Ref(Y)).tolist() == [sum(range(34)) + 34.0 * (turn % 2)] * 64


JIT = """
import cupy as cp
from cupyx import jit


@jit.rawkernel()
def fill(y, number):
    y[jit.threadIdx.x] = number


y, found = cp.zeros(4), []
for number in [*range(12), 2**31 - 1, 2**31, 3_000_000_000, -(2**31) - 1, *[3_000_000_000] * 12, 0.5, True]:
    fill((1,), (4,), (y, number))
    found.append(float(y[0]))
results["jit"] = found
"""


def test_a_kernel_of_jit_computes_with_numbers_of_any_size(sides: Sides) -> None:
    found = sides.remote(JIT)["jit"]
    assert found == sides.native(JIT)["jit"]
    assert found[13:16] == [2.0**31, 3e9, -(2.0**31) - 1]
