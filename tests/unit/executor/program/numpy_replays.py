"""Replays on the CPU device, for tests: NumPy computes where the parameters say, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.device import CpuDevice
from gpu_backend.devices.replays import ZEROS, Copied, Lying, Made, Number, Patch, Replay, Slot, Unrepeatable
from gpu_backend.devices.segments import Kind
from gpu_backend.opstream.layout import DType, Layout, contiguous, strided
from tests.unit.executor.program.numpy_segments import NumpyBlocks, NumpySegments, array_at, types_read

_ADDRESS = Struct("<Q")
#: What each op allocates besides its result.
_TEMPORARY = 1000
_UNIT = contiguous((_TEMPORARY // 8,), np.dtype(np.int64))


class NumpyReplays:
    """Captures ops; counts how many."""

    def __init__(self) -> None:
        self.captured = 0
        #: Whether what launches lead to beside operands is there; None if they lead to nothing.
        self.held: bool | None = None
        #: What operands must lie at multiples of.
        self.alignment = 1

    def inputs(self, name: str, kinds: tuple[Kind, ...]) -> tuple[DType, ...] | None:
        """Return in which types operands are read; see the seam."""
        return types_read(kinds)

    def capture(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Replay:
        """Return what ``function`` launches; see the seam."""
        made = _made(function, args, kwargs)
        self.captured += 1
        operands = list(_found(args, Lying))
        blocks = ((_TEMPORARY, contiguous((_TEMPORARY,), np.dtype(np.uint8))),)
        blocks = (*blocks, *((one.nbytes, one) for one in made))
        parameters = bytearray(8 * len(blocks))
        patches = [Patch(8 * place, place, 0) for place in range(len(blocks))]
        for one in operands:
            patches.append(Patch(len(parameters), len(blocks) + one.number, 0))
            parameters += bytes(8)
        slots = []
        for one in _found(args, Number):
            slots.append(Slot(len(parameters), one.number, one.dtype))
            parameters += bytes(16)
        places = {patch.source - len(blocks): patch.at for patch in patches}

        def value(one: Any) -> Any:
            if type(one) is Lying:
                return _array(parameters, places[one.number], one.layout)
            if type(one) is Number:
                at = next(slot.at for slot in slots if slot.number == one.number)
                return np.frombuffer(parameters, one.dtype, 1, at)[0]
            return type(one)(map(value, one)) if type(one) in (list, tuple) else one

        def launch() -> None:
            _array(parameters, 0, blocks[0][1])[...] = 0x5A
            result = function(*map(value, args), **kwargs)
            for at, (lies, one) in enumerate(zip(made, _several(result), strict=False), 1):
                _array(parameters, 8 * at, lies)[...] = one

        result = tuple(Made(at, lies) for at, lies in enumerate(made, 1))
        holds = (lambda: bool(self.held)) if self.held is not None else None
        copies = _rolled(function, args)
        return Replay(launch, parameters, tuple(patches), tuple(slots), result, blocks, holds, self.alignment, copies)

    def let_go(self) -> bool:
        """Let go of what launches lead to beside operands; see the seam."""
        had, self.held = self.held, None if self.held is None else False
        return bool(had)


def _rolled(function: Callable[..., Any], args: Sequence[Any]) -> tuple[Copied, ...]:
    """Return the two copies that CuPy makes to roll a row, and the clearing of what else is allocated."""
    if function.__name__ != "roll" or args[0].layout.ndim != 1:
        return ()
    (extent,), dtype, shift = args[0].layout.shape, args[0].layout.dtype, args[1]
    step = args[0].layout.strides[0]
    halves = (0, extent - shift, shift), (extent - shift, shift, 0)
    cleared = Copied(ZEROS, 0, _UNIT, 0, 0, _UNIT)
    return cleared, *(
        Copied(
            2, first * step, strided((count,), (step,), dtype),
            1, into * dtype.itemsize, contiguous((count,), dtype),
        )
        for first, count, into in halves
    )  # fmt: skip


def _several(result: Any) -> Sequence[Any]:
    return result if type(result) in (tuple, list) else (result,)


def _made(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Layout, ...]:
    """Return how each result lies, which must be the same whatever is in the operands."""
    given = [[_stand_in(one, fill) for one in args] for fill in (0, 1)]
    results = [function(*one, **kwargs) for one in given]
    if all(one is None or any(one is each for each in own) for one, own in zip(results, given, strict=True)):
        return ()
    is_rolled = function.__name__ == "roll"  # the CPU device makes it as a view of what nobody else has
    found = [_several(one) for one in results]
    if not all(isinstance(one, np.ndarray) and (one.base is None or is_rolled) for each in found for one in each):
        raise Unrepeatable("the result is not new memory")
    layouts = {tuple(strided(one.shape, one.strides, one.dtype) for one in each) for each in found}
    if len(layouts) != 1:
        raise Unrepeatable("it looks at the operands")
    return layouts.pop()


def _stand_in(one: Any, fill: int) -> Any:
    if type(one) is Lying:
        low = sum(
            min(0, step * (extent - 1)) for step, extent in zip(one.layout.strides, one.layout.shape, strict=True)
        )
        memory = np.full(1 << 12, fill, np.uint8)
        return np.ndarray(one.layout.shape, one.layout.dtype, memory, -low, one.layout.strides)
    if type(one) is Number:
        return np.dtype(one.dtype).type(fill)
    return type(one)(_stand_in(each, fill) for each in one) if type(one) in (list, tuple) else one


def _found(values: Sequence[Any], kind: type) -> list[Any]:
    found = []
    for one in values:
        if type(one) is kind:
            found.append(one)
        elif type(one) in (list, tuple):
            found += _found(one, kind)
    return found


def _array(parameters: bytearray, at: int, layout: Layout) -> np.ndarray[Any, Any]:
    return array_at(_ADDRESS.unpack_from(parameters, at)[0], layout.dtype, layout.shape, layout.strides)


class ReplayingCpu(CpuDevice):
    """The CPU device with replays."""

    lays_out_as_cupy = True

    def __init__(self) -> None:
        super().__init__()
        self.captures = self.replays = NumpyReplays()
        self.memory_by_address = self.blocks = NumpyBlocks()


class GatheringCpu(ReplayingCpu):
    """The CPU device with replays and with segments."""

    def __init__(self, most_ops: int = 8) -> None:
        super().__init__()
        self.runs = self.segments = NumpySegments(most_ops)
