"""Random small ops on a GPU give CuPy's own bits when many of them are given to it at a time."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from gpu_backend.executor.config import PASSES
from gpu_backend.opstream.surface import Ufunc, load
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Buffer, Complex, Ref, Scalar, Value, View
from tests.unit.executor.program.played import PlayedNotebook

pytestmark = [pytest.mark.timeout(600)]

SHAPES = [(7,), (64,), (5, 9), (3, 4, 5), (100, 41), (2, 3, 4, 5), (5000,), (70, 90), (1,), (300, 300)]
DTYPES = ["?", "<i1", "<u1", "<i2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"]
NUMBERS: list[Value] = [
    2, 0.5, -1.25, True, 3, Complex(0.5, -2.0), Scalar("<f4", np.float32(1.5).tobytes()),
    Scalar("<i4", np.int32(7).tobytes()), -0.0, float("nan"),
]  # fmt: skip
GIVEN = 4
#: The handle of a mask for them.
MASK = 999


class Drawn:
    """Some arrays of one shape, and random ops on them, their windows, numbers, and each other's results."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        numbers = np.random.default_rng(seed)
        self.shape = self._random.choice(SHAPES)
        self.given = [_host(numbers, self._random.choice(DTYPES), self.shape) for _ in range(GIVEN)]
        self.live = list(range(1, GIVEN + 1))
        self._next = GIVEN + 1
        found = [
            (name, one.nin)
            for name, one in load().items()
            if isinstance(one, Ufunc) and one.nout == 1 and name.startswith("cupy.")
        ]
        self._names = [*self._random.sample(found, 6), ("cupy.add", 2), ("cupy.multiply", 2), ("cupy.where", 3)]
        self.ops: list[Op] = []
        self._masked = random.Random(seed)  # apart, so that more of these changes no other op
        for _ in range(self._random.randint(20, 60)):
            self._add()
            if self._masked.random() < 0.1:
                self._add_masked()

    def _window(self, handle: int, draws: random.Random | None = None) -> View:
        array = self.given[handle - 1]
        offset, strides = 0, list(array.strides)
        draws = draws or self._random
        for axis, extent in enumerate(array.shape):
            if draws.random() < 0.3:
                offset, strides[axis] = offset + strides[axis] * (extent - 1), -strides[axis]
        order = "C" if sum(extent > 1 for extent in array.shape) > 1 else ""
        return View(handle, offset, array.shape, tuple(strides), array.dtype.str, order)

    def _operand(self) -> Value:
        handle = self._random.choice(self.live)
        drawn = self._random.random()
        if drawn < 0.8:
            return self._window(handle) if drawn > 0.55 and handle <= GIVEN else Ref(handle)
        return self._random.choice(NUMBERS)

    def _add(self) -> None:
        name, count = self._random.choice(self._names)
        args = tuple(self._operand() for _ in range(count))
        if not any(isinstance(one, (Ref, View)) for one in args):
            return
        drawn, into = self._random.random(), self._random.randint(1, GIVEN)
        target = Ref(into) if self._random.random() < 0.5 else self._window(into)
        if drawn < 0.15:
            self.ops.append(Op(".store", 0, (target, args[0])))
        elif drawn < 0.3:
            self.ops.append(Op(name, 0, (*args, target)))
        else:
            self.ops.append(Op(name, self._next, args, self._drop(args)))
            self.live.append(self._next)
            self._next += 1

    def _add_masked(self) -> None:
        into, of = self._masked.sample(range(1, GIVEN + 1), 2)
        value = Ref(of) if self._masked.random() < 0.5 else self._masked.choice(NUMBERS)
        self.ops.append(Op(".store_where", 0, (self._window(into, self._masked), Ref(MASK), value)))

    def _drop(self, args: tuple[Value, ...]) -> tuple[int, ...] | None:
        used = {one.handle for one in args if isinstance(one, Ref)} | set(range(GIVEN + 1))
        free = [handle for handle in self.live if handle not in used]
        if len(self.live) < 8 or not free:
            return None
        self.live.remove(free[0])
        return (free[0],)


def _host(numbers: np.random.Generator, code: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    dtype = np.dtype(code)
    if dtype.kind == "c":
        return (numbers.normal(size=shape) * 3 + 1j * numbers.normal(size=shape)).astype(dtype)
    return numbers.integers(0, 100, shape).astype(dtype) if dtype.kind in "iu" else _real(numbers, dtype, shape)


def _real(numbers: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return numbers.random(shape) < 0.5 if dtype.kind == "b" else (numbers.normal(size=shape) * 4).astype(dtype)


def outcome(drawn: Drawn, passes: tuple[str, ...], device: Any) -> tuple[object, PlayedNotebook]:
    """Return what failed, and dtype, shape and bits of all that is there in the end."""
    on = PlayedNotebook(passes, device)
    on.stream.heap.put(MASK, device.upload(np.arange(np.prod(drawn.shape)).reshape(drawn.shape) % 3 == 0))
    for handle, array in enumerate(drawn.given, 1):
        on.stream.heap.put(handle, device.upload(array))
        on.stream.heap.ownership.own(handle)
    errors = [(one.error.kind, one.error.caused_by) for one in on.run(*drawn.ops) if one.error is not None]
    found: list[object] = []
    for handle in drawn.live:
        (answer,) = on.run(Op(".same", 0, (Ref(handle),), None, Want.CONTENTS))
        value = answer.value
        if answer.error is not None or not isinstance(value, Buffer):
            found.append(answer.error.kind if answer.error is not None else value)
        else:
            data = value.data if value.frame < 0 else answer.buffers[value.frame].tobytes()
            found.append((value.dtype, value.shape, bytes(data)))
    return (errors, found), on


def await_compiler(device: Any) -> None:
    """Wait until what was wanted often enough is compiled, and let more be compiled at once."""
    compiler = device.segments._compiler
    if compiler._thread is not None:
        compiler._thread.join()
    compiler._rests_until = 0.0


def compare(seeds: range) -> None:
    """Play each structure with segments, once all of its routines are compiled, and without."""
    from gpu_backend.devices.cuda import CudaDevice

    device = CudaDevice()
    gathered = total = 0
    for seed in seeds:
        drawn = Drawn(seed)
        for _ in range(3):  # until all of it was wanted often enough, and compiled
            for _ in range(4):
                outcome(drawn, PASSES, device)
            await_compiler(device)
        found, on = outcome(drawn, PASSES, device)
        assert found == outcome(drawn, ("store", "reuse"), device)[0], f"seed {seed}"
        assert on.stream._direct is not None
        segment = on.stream._direct.segment
        assert segment is not None
        failed = sum(answer.error is not None for answer in on.answers.values())  # drawn for no such types
        gathered, total = gathered + segment.table.gathered, total + len(drawn.ops) - failed
    assert gathered > 0.8 * total


@pytest.fixture(autouse=True)
def large_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let programs have room for all the routines of a random structure, which are more than a user's loop has."""
    from gpu_backend.devices import cuda_segments

    monkeypatch.setattr(cuda_segments, "_MOST_ROUTINES", 96)


@pytest.mark.gpu
@pytest.mark.parametrize("first", range(0, 6, 2))
def test_ops_that_are_gathered_give_cupys_bits(first: int) -> None:
    compare(range(first, first + 2))


@pytest.mark.gpu_long
@pytest.mark.parametrize("first", range(100, 1100, 20))
def test_many_structures_give_cupys_bits(first: int) -> None:
    compare(range(first, first + 20))


@pytest.mark.gpu
def test_what_is_launched_apart_is_compiled_as_one() -> None:
    """As where a session's programs were compiled at different times."""
    from gpu_backend.devices.cuda import CudaDevice

    device = CudaDevice()
    on = PlayedNotebook(PASSES, device)
    given = np.arange(1.0, 9.0)
    on.stream.heap.put(1, device.upload(given))
    on.stream.heap.ownership.own(1)
    segments, way = device.segments, on.stream._direct
    for name in ("cupy.add", "cupy.multiply"):
        for _ in range(20):
            on.run(Op(name, 0, (Ref(1), 1.0, Ref(1))))
        await_compiler(device)
        segments.renew()
        segments._used.clear()  # or the second would be compiled with the first
        if way.recurring is not None:
            way.recurring.review()  # it may have recurred by its launch meanwhile, and does for a quarter of a second
    first, second = (one.codes for one in segments._programs)
    assert first - second
    assert second - first

    def loop() -> int:
        before = segments._switches
        for _ in range(40):
            on.run(Op("cupy.add", 0, (Ref(1), 1.0, Ref(1))), Op("cupy.multiply", 0, (Ref(1), 1.0, Ref(1))))
        return segments._switches - before

    assert loop() >= 40
    loop()
    await_compiler(device)
    segments.renew()
    assert len(segments._programs) == 3
    assert loop() == 0
    (answer,) = on.run(Op(".same", 0, (Ref(1),), None, Want.CONTENTS))
    assert isinstance(answer.value, Buffer)
    assert np.frombuffer(answer.value.data).tolist() == (given + 140).tolist()
