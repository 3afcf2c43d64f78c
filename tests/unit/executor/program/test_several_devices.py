"""The op stream over two devices: each op runs on that of its stream, and whose memory it is decides nobody's else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.executor.program.run import OpStream
from gpu_backend.opstream.devices import OF_DEVICE, default_stream
from gpu_backend.wire import values as wire
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref
from tests.unit.executor.program.test_run import array, run

ONE = default_stream(1)


@pytest.fixture
def stream() -> Iterator[OpStream]:
    made = OpStream(open_device("cpu", count=2))
    yield made
    made.clear()  # the first device is current again


def held(stream: OpStream) -> list[int]:
    return [stream._device.held_bytes(number) for number in range(2)]


def test_an_op_runs_on_the_device_of_its_stream(stream: OpStream) -> None:
    before = held(stream)
    run(stream, Op("cupy.ones", 1, (100_000,)), Op("cupy.zeros", 2, (200_000,), stream=ONE))
    assert [now - then for now, then in zip(held(stream), before, strict=True)] == [800_256, 1_600_000]
    (there,) = run(stream, Op("cupy.cuda.get_device_id", 0, (), None, Want.CONTENTS, stream=ONE), first=3)
    (here,) = run(stream, Op("cupy.cuda.get_device_id", 0, (), None, Want.CONTENTS), first=4)
    assert (there.value, here.value) == (1, 0)


def test_memory_of_another_device_is_not_computed_into(stream: OpStream) -> None:
    run(stream, Op("cupy.ones", 1, (100_000,)), Op("cupy.ones", 2, (100_000,), stream=ONE))
    before = held(stream)
    double = Op("cupy.multiply", 3, (Ref(2), 2.0), stream=ONE, reuse=1)
    (answer,) = run(stream, double, Op(".same", 0, (Ref(3),), None, Want.CONTENTS, stream=ONE), first=3)
    np.testing.assert_array_equal(array(answer), np.full(100_000, 2.0))
    assert [now - then for now, then in zip(held(stream), before, strict=True)] == [-800_256, 800_256]


@pytest.mark.parametrize("device", [2, 63, 64, -1])
def test_an_op_for_a_device_that_is_none_fails_and_nothing_else(stream: OpStream, device: int) -> None:
    told = Op("cupy.ones", 0, (3,), None, Want.DESCRIPTION, stream=default_stream(device))
    (answer,) = run(stream, told)
    assert answer.error is not None
    assert "cudaErrorInvalidDevice" in answer.error.message
    (fine,) = run(stream, Op("cupy.cuda.get_device_id", 0, (), None, Want.CONTENTS), first=2)
    assert fine.value == 0


def test_a_window_that_is_described_is_where_its_memory_is(stream: OpStream) -> None:
    out = ONE | 7
    shown = Op("cupy.ndarray.reshape", out, (Ref(1), wire.Tuple((2, 2))), None, Want.DESCRIPTION, stream=ONE)
    (answer,) = run(stream, Op("cupy.ones", 1, (4,)), shown)
    assert isinstance(answer.value, wire.ArrayInfo)
    assert (answer.value.base, answer.value.handle) == (1, 7)
    (new,) = run(stream, Op("cupy.ones", out, (4,), None, Want.DESCRIPTION, stream=ONE), first=3)
    assert isinstance(new.value, wire.ArrayInfo)
    assert new.value.handle & OF_DEVICE == ONE
