"""What a thread launches on a GPU is launched in its turn: the same bits as where each op is carried out by itself."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from time import monotonic
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices.launching import Kernel
from gpu_backend.executor.heap import Kind
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, Tuple, Value
from tests.gpu.test_segments_on_gpu import await_compiler
from tests.unit.executor.program.played import PlayedNotebook

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

_ALL, _OFF = ("store", "reuse", "replay", "segments", "products"), ("store", "reuse")
#: What is there: two square matrices, a vector, and a kernel of the user's.
LEFT, RIGHT, VECTOR, KERNEL = range(1, 5)
_SIDE = 64
_ROUNDS, _MESSAGE_OPS = 12, 400
#: So many launches are left to the thread at least, within so many seconds.
_LEFT, _SECONDS = 200, 120
_SCALE = r"""extern "C" __global__ void scale(const double* x, double* y, double by) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < 4096) y[at] = x[at] * by;
}"""


@pytest.fixture(scope="module")
def cuda() -> Any:
    from gpu_backend.devices.cuda import CudaDevice

    return CudaDevice()


def _notebook(device: Any, passes: tuple[str, ...]) -> PlayedNotebook:
    on, numbers = PlayedNotebook(passes, device), np.random.default_rng(3)
    for handle, shape in ((LEFT, (_SIDE, _SIDE)), (RIGHT, (_SIDE, _SIDE)), (VECTOR, (_SIDE,))):
        on.stream.heap.put(handle, device.upload(numbers.normal(size=shape) / _SIDE))
        on.stream.heap.ownership.own(handle)
    on.stream.heap.put(KERNEL, device.resolve("cupy.RawKernel")(_SCALE, "scale"), Kind.KERNEL)
    return on


def _program(seed: int) -> list[Op]:
    """Return ops that each need what those before them made; their own results have handles from 100 on."""
    drawn, ops, last = random.Random(seed), [], LEFT
    for out in range(100, 100 + _MESSAGE_OPS):
        name, args, kwargs = drawn.choice([
            ("cupy.add", (Ref(last), Ref(RIGHT)), None),
            ("cupy.multiply", (Ref(last), 0.5), None),
            ("cupy.matmul", (Ref(last), Ref(RIGHT)), None),
            ("cupy.matmul", (Ref(RIGHT), Ref(last)), None),
            ("cupy.subtract", (Ref(last), Ref(VECTOR)), None),
            ("cupy.cumsum", (Ref(last),), {"axis": 1}),
            ("cupy.roll", (Ref(last), 3), None),
            ("cupy.tanh", (Ref(last),), None),
        ])  # fmt: skip
        given: tuple[Value, ...] = args
        ops.append(Op(name, out, given, (out - 2,) if out >= 102 else None, kwargs=kwargs))
        last = out
    ends = Op("cupy.ndarray.sum", 90, (Ref(last),)), Op("cupy.ndarray.copy", 91, (Ref(last),))
    return [*ops, *ends, Op(".nothing", 0, (), (last - 1, last))]


def _bits(device: Any, passes: tuple[str, ...]) -> list[bytes]:
    on, found = _notebook(device, passes), []
    for number in range(_ROUNDS):
        on.run(*_program(number % 2), bundles=[64] * 20)
        if on.stream._direct is not None and on.stream._direct.segment is not None:
            await_compiler(device)
        found += [on.contents(Ref(90)).tobytes(), on.contents(Ref(91)).tobytes()]
        on.run(Op(".nothing", 0, (), (90, 91)))
    return found


def test_what_is_left_to_a_thread_gives_the_same_bits(cuda: Any) -> None:
    want, before, seconds = _bits(cuda, _OFF), cuda.launcher.together, monotonic() + _SECONDS
    while cuda.launcher.together < before + _LEFT:  # as soon as the thread finds a processor
        assert monotonic() < seconds, f"{cuda.launcher.together - before} were launched together"
        assert _bits(cuda, _ALL) == want


def test_a_marker_stands_behind_what_was_left(cuda: Any) -> None:
    on = _notebook(cuda, _ALL)
    into = Ref(LEFT)
    for _ in range(30):
        on.run(*(Op("cupy.ndarray.sort", 0, (into,)), *[Op("cupy.add", 0, (into, 1.0, into))] * 100))
        start = cuda.marker()
        on.run(*[Op("cupy.cumsum", 60, (into,), (60,) if at else None) for at in range(100)])
        end = cuda.marker()
        cuda.synchronize()
        assert end.is_done()
        assert end.seconds_since(start) > 50e-6, "a hundred sums take longer than that"
        on.run(Op(".nothing", 0, (), (60,)))


def test_kernels_of_the_users_are_left_with_their_numbers(cuda: Any) -> None:
    on, by = _notebook(cuda, _ALL), 0.0
    on.stream.heap.put(70, cuda.upload(np.ones(4096)))
    on.stream.heap.ownership.own(70)
    on.stream.heap.put(71, cuda.upload(np.zeros(4096)))
    on.stream.heap.ownership.own(71)
    before, seconds = cuda.launcher.together, monotonic() + _SECONDS
    while cuda.launcher.together < before + _LEFT:
        assert monotonic() < seconds, f"{cuda.launcher.together - before} were launched together"
        ops = []
        for _ in range(1_000):
            by += 1
            ops.append(Op(".call", 0, (Ref(KERNEL), Tuple((16,)), Tuple((256,)), Tuple((Ref(70), Ref(71), by)))))
        assert not on.run(*ops)
        assert (on.contents(Ref(71)) == by).all()


def _kernel(cuda: Any, number: int, counters: Any, content: bytearray) -> tuple[object, Callable[[], None]]:
    """Return a module of its own with a kernel that adds ``number``, and what launches that."""
    from cupy.cuda import compiler, function

    code = f'extern "C" __global__ void add(unsigned long long* at) {{ *at += {number}; }}'
    module = function.Module()
    module.load(compiler.compile_using_nvrtc(code)[0])
    struct.pack_into("<Q", content, 0, counters.data.ptr)
    step = Kernel(module.get_function("add").ptr, (1, 1, 1), (1, 1, 1), 0, 0, 8, (0,))
    return module, cuda.launcher.kernels((step,), content)


def test_kernels_that_come_to_lie_where_others_were_unloaded_are_not_taken_for_them(cuda: Any) -> None:
    counters, content, want = cuda.upload(np.zeros(1, np.uint64)), bytearray(8), 0
    before, seconds, functions = cuda.launcher.together, monotonic() + _SECONDS, 0
    while cuda.launcher.together < before + _LEFT or functions < 20:
        assert monotonic() < seconds, f"{cuda.launcher.together - before} were launched together"
        functions += 1
        module, launch = _kernel(cuda, functions, counters, content)
        cuda.launcher.begin()
        for _ in range(500):
            launch()
        want += 500 * functions
        del module, launch  # with launches in the queue
        cuda.launcher.hold()
        assert int(counters.get()[0]) == want


def test_a_launch_that_is_refused_late_ends_the_session(cuda: Any) -> None:
    from gpu_backend.devices.cuda_launches import LostLaunch, LostProduct

    assert cuda.is_fatal(LostLaunch(1))
    assert cuda.is_fatal(LostProduct(13))
    assert cuda.error_name(LostLaunch(1)) == "cupy.cuda.driver.CUDADriverError"
