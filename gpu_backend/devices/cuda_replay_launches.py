"""What a replay gives the driver: kernels, copies and fills, one after the other, with the parameters of by then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from struct import Struct

import numpy as np
from cupy.cuda import driver, runtime

from gpu_backend.devices.cuda_graphs import Copy, Fill, Launch, Step
from gpu_backend.devices.launching import MOST_PARAMETERS, Kernel, Launcher

_ADDRESS = Struct("<Q")
_WORD = 8
_Placed = tuple[Step, Sequence[int]]
_Call = Callable[[], None]


def launching(
    steps: Sequence[Step], content: bytearray, places: Sequence[Sequence[int]], launcher: Launcher | None
) -> _Call:
    """Return what launches ``steps``, each with parameters that stand at its ``places`` in ``content`` by then.

    With a ``launcher`` kernels may be left to it, and what follows them waits until they are with the driver.
    """
    placed = list(zip(steps, places, strict=True))
    calls = [_plain(content, *one) for one in placed] if launcher is None else list(_left(placed, content, launcher))
    if len(calls) == 1:
        return calls[0]

    def launch() -> None:
        for call in calls:
            call()

    return launch


def _left(placed: Sequence[_Placed], content: bytearray, launcher: Launcher) -> Iterator[_Call]:
    for are_kernels, some in groupby(placed, _may_be_left):
        if are_kernels:
            yield launcher.kernels(tuple([_kernel(*one) for one in some]), content)
            continue
        yield launcher.wait
        for one in some:
            yield _plain(content, *one)


def _may_be_left(placed: _Placed) -> bool:
    step, places = placed
    return type(step) is Launch and len(places) <= MOST_PARAMETERS


def _kernel(step: Step, places: Sequence[int]) -> Kernel:
    assert type(step) is Launch
    first = places[0] if places else 0
    end = places[-1] + -(-len(step.parameters[-1]) // _WORD) * _WORD if places else 0
    return Kernel(step.function, step.grid, step.block, step.shared_bytes, first, end, tuple(places))


def _plain(content: bytearray, step: Step, places: Sequence[int]) -> _Call:
    if type(step) is Fill:
        (at,), fill = places, runtime.memsetAsync
        return lambda: fill(_ADDRESS.unpack_from(content, at)[0], step.value, step.size_bytes, 0)
    if type(step) is Copy:
        to, of = places
        return lambda: _copy(
            _ADDRESS.unpack_from(content, to)[0], _ADDRESS.unpack_from(content, of)[0], step.size_bytes
        )
    assert type(step) is Launch
    start = np.frombuffer(content, np.uint8).ctypes.data if content else 0
    table = np.array([start + place for place in places], np.uint64)
    arguments = (step.function, *step.grid, *step.block, step.shared_bytes, 0, table.ctypes.data, 0)
    launch_kernel = driver.launchKernel

    def launch(_held: object = (table, content)) -> None:
        launch_kernel(*arguments)

    return launch


def _copy(to: int, of: int, size_bytes: int) -> None:
    runtime.memcpyAsync(to, of, size_bytes, runtime.memcpyDeviceToDevice, 0)
