"""Replays on a GPU: CuPy's launches captured in memory that there is not, and given to the driver again.

An op is carried out three times while a stream captures, so that nothing runs, on arrays and with an allocator whose
addresses are made up. What differs between the three must be those addresses, and follow them exactly: then it is known
where each operand's address stands, and that nothing else depends on it.

The library of transforms leaves words of what it hands over unset: where something else differs, all three are carried
out once more, and what is not as it was the first time is such a word. Only there: of whatever counts how often it was
called, as what draws random numbers does, that would be wrong.
"""

from __future__ import annotations

import warnings
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import cupy
import numpy as np
from cupy.cuda import memory, runtime

from gpu_backend.devices import cuda_graphs
from gpu_backend.devices.captured_parameters import (
    BLOCKS,
    FIRST,
    MIDDLE,
    MOST_ROOMS,
    ROOM,
    Differs,
    Moved,
    Parameters,
)  # fmt: skip
from gpu_backend.devices.cuda_copies import copies
from gpu_backend.devices.cuda_graphs import GraphReader, Launch, Step
from gpu_backend.devices.cuda_replay_launches import launching
from gpu_backend.devices.cuda_transforms import Plans, is_transform, plans_used
from gpu_backend.devices.cuda_ufuncs import CudaUfuncs
from gpu_backend.devices.launching import Launcher
from gpu_backend.devices.replays import Lying, Made, Number, Replay, Unrepeatable
from gpu_backend.devices.segments import Kind
from gpu_backend.opstream.layout import DType, contiguous, strided

#: ``cudaStreamCaptureModeRelaxed``: what other threads do meanwhile is nothing to the capture.
_RELAXED = 2
_TRACES = 3
#: How much farther everything lies in each trace: what stays the same over that is no address, whatever it looks like.
_APART = 1 << 33
#: So many captured transforms hold plans at most, as many as CuPy's cache keeps: each may be all that holds its own.
_MOST_PLANS = 16
#: How often all traces are taken once more at most, for words that nobody has set.
_MOST_REPEATS = 2
#: What operands of a transform must lie at multiples of: more than any library looks at.
_ALIGNED = 256
#: What CuPy's pool aligns blocks to.
_BLOCK = 512
_BYTES: DType = np.dtype(np.uint8)


class CudaReplays:
    """Captures ops on one GPU; see the seam."""

    def __init__(self, device: cupy.cuda.Device, launcher: Launcher | None = None) -> None:
        self._device, self._launcher = device, launcher
        self._stream: cupy.cuda.Stream | None = None
        self._ufuncs = CudaUfuncs()
        #: The plans of transforms that were captured.
        self._plans: deque[Plans] = deque()
        weakref.finalize(self, _let_go, self._plans)  # also at exit: plans must not outlive the library

    def inputs(self, name: str, kinds: tuple[Kind, ...]) -> tuple[DType, ...] | None:
        """Return in which types a ufunc reads operands of these ``kinds``; see the seam."""
        chosen = self._ufuncs.chosen(name, kinds)
        return tuple(chosen[1].in_types) if chosen is not None else None

    def capture(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Replay:
        """Return what ``function`` launches; see the seam."""
        may_have_plans = is_transform(function)
        reader, unit = GraphReader(), _BLOCK if may_have_plans else 1  # its operands begin where blocks may
        with plans_used() as plans:

            def traced() -> list[_Trace]:
                return [self._trace(reader, function, args, kwargs, number, unit) for number in range(_TRACES)]

            traces = traced()
            if not plans:
                is_raw = bool(args) and isinstance(args[0], cupy.RawKernel)
                return _agreed(traces, self._launcher, has_indexers=not is_raw)
            if not may_have_plans:
                raise Unrepeatable("memory of others")
            return self._held(_agreed_at_last(traces, traced, self._launcher), plans)

    def _held(self, replay: Replay, plans: Plans) -> Replay:
        """Return a transform as one that ends with the ``plans`` that it goes by, and has them last meanwhile."""
        self._plans.append(plans)
        if len(self._plans) > _MOST_PLANS:
            self._plans.popleft().let_go()
        return replay._replace(holds=plans.hold, alignment=_ALIGNED)

    def let_go(self) -> bool:
        """Hold no more plans of transforms; see the seam."""
        return _let_go(self._plans)

    def _trace(
        self, reader: GraphReader, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any],
        number: int, unit: int = 1,
    ) -> _Trace:  # fmt: skip
        if self._stream is None:
            self._stream = cupy.cuda.Stream(non_blocking=True)
        space = _Space(number, self._device.id, unit)
        given = [space.given(one) for one in args]
        named = {key: space.given(one) for key, one in kwargs.items()}
        with self._stream, cupy.cuda.using_allocator(space.allocate), warnings.catch_warnings():
            warnings.simplefilter("error")  # a warning is told each time
            runtime.streamBeginCapture(self._stream.ptr, _RELAXED)
            result, failure = None, None
            try:
                result = function(*given, **named)
            except Exception as error:  # whatever CuPy says: it will say so again where the op runs
                failure = error
            finally:
                graph = self._end()
        if graph is None:
            raise Unrepeatable("the device was asked for more than launches") from failure
        try:
            if isinstance(failure, Unrepeatable):
                raise failure
            if failure is not None:
                raise Unrepeatable(f"CuPy raises {type(failure).__name__}") from failure
            return _Trace(space, reader.launches(graph), space.made(result))
        except cuda_graphs.NotKernels as error:
            raise Unrepeatable(str(error)) from None
        finally:
            runtime.graphDestroy(graph)

    def _end(self) -> int | None:
        assert self._stream is not None
        try:
            return int(runtime.streamEndCapture(self._stream.ptr)) or None
        except runtime.CUDARuntimeError:  # it broke off before
            return None


def _let_go(plans: deque[Plans]) -> bool:
    had_some = bool(plans)
    while plans:
        plans.popleft().let_go()
    return had_some


class _Space:
    """Made-up addresses: each operand and each block has a room, and lies elsewhere in it in each trace."""

    def __init__(self, trace: int, device: int, unit: int) -> None:
        #: Operands lie at multiples of ``unit``, or of their itemsize.
        self._trace, self._device, self._unit = trace, device, unit
        self.blocks: list[int] = []
        self._moved: dict[int, int] = {}
        self._numbers: dict[int, tuple[DType, bytes]] = {}
        #: How far each room's content was moved, and what each number is.
        self.differs = Moved(self._moved, self._numbers)
        self._arrays: dict[int, cupy.ndarray] = {}

    def given(self, value: Any) -> Any:
        """Return what stands for ``value`` in this trace."""
        if isinstance(value, Lying | Number) and value.number >= BLOCKS:
            raise Unrepeatable("too many operands")
        if type(value) is Lying:
            return self._array(value)
        if type(value) is Number:
            return self._number(value)
        return type(value)(map(self.given, value)) if type(value) in (list, tuple) else value

    def _array(self, lying: Lying) -> cupy.ndarray:
        if lying.number not in self._arrays:
            layout = lying.layout
            start = self._place(lying.number, max(self._unit, layout.itemsize), MIDDLE) - MIDDLE
            held = memory.UnownedMemory(start, ROOM, self, self._device)
            pointer = memory.MemoryPointer(held, MIDDLE)
            self._arrays[lying.number] = cupy.ndarray(layout.shape, layout.dtype, pointer, strides=layout.strides)
        return self._arrays[lying.number]

    def _number(self, number: Number) -> Any:
        """Return a number of its type that no other operand has in this trace, nor this one in another."""
        drawn = 2 + number.number * _TRACES + self._trace
        value = (drawn % 2 == 0) if number.kind is bool else drawn
        typed = np.dtype(number.kind).type(value)
        self._numbers[number.number] = number.dtype, np.asarray(typed).astype(number.dtype).tobytes()
        return number.kind(value) if isinstance(number.kind, type) else typed

    def allocate(self, size_bytes: int) -> Any:
        """Return memory that there is not."""
        room = BLOCKS + len(self.blocks)
        if room >= MOST_ROOMS:
            raise Unrepeatable("too many allocations")
        self.blocks.append(size_bytes)
        start = self._place(room, _BLOCK, 0)
        return memory.MemoryPointer(memory.UnownedMemory(start, max(size_bytes, 1), self, self._device), 0)

    def _place(self, room: int, unit: int, offset: int) -> int:
        if not 0 <= room < MOST_ROOMS:
            raise Unrepeatable("too many operands")
        # by odd multiples of the unit: alignment differs, too
        self._moved[room] = self._trace * (_APART + (2 * room + 1) * unit)
        return FIRST + room * ROOM + offset + self._moved[room]

    def units(self, blocks: int) -> dict[int, int]:
        """Return what the address of each of the ``blocks``, and behind them of each operand, is a multiple of."""
        of_operands = {blocks + number: array.itemsize for number, array in self._arrays.items()}
        return {**dict.fromkeys(range(blocks), _BLOCK), **of_operands}

    def made(self, result: Any) -> tuple[Made, ...]:
        """Return where and how each result lies, which has to begin where a block of its own does."""
        if result is None or any(result is one for one in self._arrays.values()):
            return ()
        made = tuple(map(self._made, result if type(result) is tuple or type(result) is list else (result,)))
        if len({one.block for one in made}) < len(made):
            raise Unrepeatable("results share memory")
        return made

    def _made(self, result: Any) -> Made:
        if type(result) is cupy.ndarray:
            for block in range(len(self.blocks)):
                room = BLOCKS + block
                if result.data.ptr == FIRST + room * ROOM + self._moved[room]:
                    return Made(block, strided(result.shape, result.strides, result.dtype))
        raise Unrepeatable("the result is not new memory")


class _Trace(NamedTuple):
    space: _Space
    launches: list[Step]
    made: tuple[Made, ...]


def _agreed_at_last(traces: Sequence[_Trace], traced: Callable[[], list[_Trace]], launcher: Launcher | None) -> Replay:
    """Return what the traces of a transform have in common, and by ``traced`` once more if something else differs."""
    again: list[_Trace] = []
    for _ in range(_MOST_REPEATS):
        try:
            return _agreed(traces, launcher, again, leads_to_plans=True)
        except Differs:
            again += traced()
    return _agreed(traces, launcher, again, leads_to_plans=True)


def _agreed(
    traces: Sequence[_Trace], launcher: Launcher | None, again: Sequence[_Trace] = (), leads_to_plans: bool = False,
    has_indexers: bool = True,
) -> Replay:  # fmt: skip
    """Return what the traces have in common; ``again`` are all of them once more, or nothing.

    ``has_indexers`` says whether CuPy may have given kernels its ``CIndexer``.
    """
    first, every = traces[0], [*traces, *again]
    if any(one.space.blocks != first.space.blocks or one.made != first.made for one in every):
        raise Unrepeatable("allocations that differ")
    if any([step[:-1] for step in one.launches] != [step[:-1] for step in first.launches] for one in every):
        raise Unrepeatable("launches that differ")
    numbers = [number % _TRACES for number in range(len(again))]
    parameters = Parameters([one.space.differs for one in traces], leads_to_plans, numbers)
    places = []
    for steps in zip(*(one.launches for one in every), strict=True):
        may_be_indexer = has_indexers and not _is_librarys(steps[0])
        same = zip(*(one.parameters for one in steps), strict=True)
        places.append([parameters.add(versions, may_be_indexer) for versions in same])
    addresses = {patch.at for patch in parameters.patches}
    if any(
        not isinstance(step, Launch) and not addresses.issuperset(one)
        for step, one in zip(first.launches, places, strict=True)
    ):
        raise Unrepeatable("memory of others")
    if {slot.number for slot in parameters.slots} != set(first.space.differs.numbers):
        raise Unrepeatable("a number that is not handed over")
    made, sizes = {one.block: one.layout for one in first.made}, first.space.blocks
    patches = tuple(
        one._replace(source=one.source - BLOCKS if one.source >= BLOCKS else one.source + len(sizes))
        for one in parameters.patches
    )
    launch = launching(first.launches, parameters.content, places, launcher)
    blocks = tuple((size, made.get(block, contiguous((size,), _BYTES))) for block, size in enumerate(sizes))
    copied = () if parameters.slots else copies(first.launches, places, patches, first.space.units(len(sizes)))
    return Replay(launch, parameters.content, patches, tuple(parameters.slots), first.made, blocks, copies=copied)


def _is_librarys(step: Step) -> bool:
    """Tell whether a kernel is a library's: most have names of C++, and all that CuPy compiles have names of C."""
    return isinstance(step, Launch) and cuda_graphs.name_of(step.function).startswith("_Z")
