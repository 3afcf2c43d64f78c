"""Small contents that a kernel of a GPU writes where this process looks for them are those that a copy brings."""

from __future__ import annotations

from time import monotonic
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

_BYTES, _SECONDS = 8192, 120
#: Adds to numbers after a while that is longer than anybody looks for what is read.
_LATE = r"""extern "C" __global__ void late(unsigned long long* x, long long cycles) {
  for (long long begun = clock64(); clock64() - begun < cycles;) ;
  x[threadIdx.x] += 1;
}"""


@pytest.fixture(scope="module")
def cuda() -> Any:
    from gpu_backend.devices.cuda import CudaDevice

    return CudaDevice()


@pytest.fixture
def blocks(cuda: Any) -> Any:
    """Blocks of which so much was read that the kernel reads, and soon enough once the device is not too busy."""
    found, memory, until = cuda.blocks, cuda.upload(np.arange(8.0)), monotonic() + _SECONDS
    while found._reader is None:
        found.read(found.address(memory), 8)
    while (read := found._reader(found.address(memory) + 8, 8)) is None:
        assert monotonic() < until
    assert read == np.float64(1).tobytes()
    return found


def test_any_bytes_from_anywhere(cuda: Any, blocks: Any) -> None:
    drawn = np.random.default_rng(5)
    contents = drawn.integers(0, 256, _BYTES, np.uint8)
    at = blocks.address(memory := cuda.upload(contents))
    sizes = [*range(1, 70), 255, 256, 257, 264, 1000, 1024, 4095, 4096]
    for size in sizes * 3:
        first = int(drawn.integers(0, _BYTES - size + 1))
        assert blocks.read(at + first, size) == contents[first : first + size].tobytes()
        assert blocks.read(at, size) == contents[:size].tobytes()
    del memory


def test_what_is_written_before_is_read(cuda: Any, blocks: Any) -> None:
    at = blocks.address(memory := cuda.upload(np.zeros(64)))
    for number in range(2_000):
        data = np.float64(number).tobytes()
        blocks.write(at + 8 * (number % 64), data)
        assert blocks.read(at + 8 * (number % 64), 8) == data
    del memory


def test_it_waits_for_what_was_launched_before(cuda: Any, blocks: Any) -> None:
    late = cuda.resolve("cupy.RawKernel")(_LATE, "late")
    memory = cuda.upload(np.zeros(32, np.uint64))
    at = blocks.address(memory)
    for number, cycles in enumerate([0, 4_000_000, 0, 100_000, 400_000, 0] * 20, 1):
        late((1,), (32,), (memory, np.int64(cycles)))
        assert blocks.read(at + 8, 8) == number.to_bytes(8, "little")


def test_a_copy_brings_the_same_while_others_want_the_device(cuda: Any, blocks: Any) -> None:
    contents = np.arange(64.0)
    at = blocks.address(memory := cuda.upload(contents))
    for number in range(64):
        cuda.launcher.may_leave = number % 2 == 0
        assert blocks.read(at + 8 * number, 8) == contents[number].tobytes()
    cuda.launcher.may_leave = True
    del memory


def test_no_read_fails_for_want_of_the_kernel(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpu_backend.devices import cuda_blocks

    def refuse(*_: object) -> Any:
        raise MemoryError

    monkeypatch.setattr(cuda_blocks, "make_reader", refuse)
    found, memory = cuda_blocks.CudaBlocks(cuda.launcher), cuda.upload(np.arange(8.0))
    for _ in range(3 * cuda_blocks._WORTH_A_KERNEL):
        assert found.read(found.address(memory) + 8, 8) == np.float64(1).tobytes()
    assert found._reader is None
