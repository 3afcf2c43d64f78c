"""Segments on the CPU device, for tests: NumPy goes through the same tables as a GPU does, address by address."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gpu_backend.devices.arrays import Array
from gpu_backend.devices.blocks import Block
from gpu_backend.devices.cpu.device import CpuDevice
from gpu_backend.devices.segments import (
    AXES,
    HEADER_BYTES,
    INSTRUCTION_BYTES,
    OPERANDS,
    VALUE_BYTES,
    VALUES,
    VALUES_AT,
    WORDS,
    Kind,
    Routine,
)  # fmt: skip
from gpu_backend.opstream.layout import DType, Layout, Shape
from gpu_backend.transport.copying import address_of
from gpu_backend.wire.values import SMALL_BYTES

_SAMPLES = {bool: True, int: 1, float: 1.0, complex: 1j}
_BOOL: DType = np.dtype(np.bool_)


class NumpyBlocks:
    """Memory of the host by its address."""

    def __init__(self) -> None:
        #: How many blocks may still be had.
        self.left = 1 << 30
        #: Whether something was written and not waited for.
        self.is_writing = False

    def address(self, array: Array) -> int:
        """Return where ``array`` begins."""
        assert isinstance(array, np.ndarray)
        return array.ctypes.data

    def block(self, size_bytes: int) -> Block:
        """Return new memory, filled with what no op writes."""
        if not self.left:
            raise MemoryError("there is no more")
        self.left -= 1
        memory = np.full(size_bytes, 0xA5, np.uint8)
        return Block(memory.ctypes.data, memory, size_bytes)

    def array(self, block: Block, layout: Layout) -> Array:
        """Return the array of a block."""
        assert isinstance(block.memory, np.ndarray)
        return np.ndarray(layout.shape, layout.dtype, block.memory, strides=layout.strides)

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return what stands in memory."""
        assert 0 < size_bytes <= SMALL_BYTES
        return ctypes.string_at(address, size_bytes)

    def write(self, address: int, data: bytes) -> None:
        """Put ``data`` into memory."""
        assert 0 < len(data) <= SMALL_BYTES
        ctypes.memmove(address, data, len(data))
        self.is_writing = True

    def read_into(self, memory: np.ndarray, address: int) -> None:
        """Fill ``memory`` with what stands there."""
        ctypes.memmove(address_of(memory), address, memory.nbytes)

    def write_from(self, memory: np.ndarray, address: int) -> None:
        """Put ``memory`` there."""
        ctypes.memmove(address, address_of(memory), memory.nbytes)

    def await_writes(self) -> None:
        """Note that what was written was waited for."""
        self.is_writing = False


class NumpySegments:
    """Carries out tables of instructions with NumPy; notes how many at a time."""

    most_elements = 1 << 12

    def __init__(self, most_ops: int = 8) -> None:
        self.most_ops = most_ops
        self.routines: list[tuple[Any, Routine, tuple[DType, ...]]] = []
        self.launched: list[int] = []
        #: The codes of what may be used: all at once, if it is compiled; in one program, or by turns in two.
        self.ready: dict[int, tuple[object, ...]] = {}
        self.programs: tuple[object, ...] = ("all",)
        #: The program that has all as well, but comes last.
        self.whole: object = None
        self.switches: list[tuple[int, int]] = []
        self.launched_programs: list[object] = []
        self.is_compiled = True
        #: What launches raise, each one once.
        self.failures: list[Exception] = []

    def routine(self, name: str, kinds: tuple[Kind, ...], output: DType | None) -> Routine | None:
        """Return what does op ``name``; see the seam."""
        ufunc = np.where if name == "cupy.where" else getattr(np, name.removeprefix("cupy."))
        samples = _samples(kinds)
        made = ufunc(*samples).dtype
        if output is not None and not np.can_cast(made, output, "same_kind"):
            return None
        return self._add(ufunc, types_read(kinds), made if output is None else output)

    def copy(self, kind: Kind, output: DType, mask: tuple[Kind, ...] = ()) -> Routine | None:
        """Return what copies; see the seam."""
        if mask and (isinstance(mask[0], type) or mask[0] != _BOOL):
            return None
        own = output if isinstance(kind, type) else kind
        return self._add(_put_where if mask else np.asarray, (own, *mask), output)  # type: ignore[arg-type]

    def _add(self, ufunc: Any, reads: tuple[DType, ...], output: DType) -> Routine:
        made = Routine(len(self.routines), reads, output)
        self.routines.append((ufunc, made, reads))
        self.renew()
        return made

    def is_ready(self, code: int) -> bool:
        """Tell whether a routine may be used."""
        return code in self.ready

    def renew(self) -> None:
        """Take up what is compiled; see the seam."""
        if self.is_compiled:
            self.ready.update({one: self._having(one) for one in range(len(self.routines))})

    def _having(self, code: int) -> tuple[object, ...]:
        own = self.programs[code % len(self.programs)]
        return (own,) if self.whole is None else (own, self.whole)

    def note_switch(self, code: int, ops: int) -> None:
        """Note it; see the seam."""
        self.switches.append((code, ops))

    def launch(self, program: object, table: bytearray, ops: int, most_elements: int) -> None:
        """Carry out the first ``ops`` instructions of ``table``, which are of one program."""
        assert 0 < ops <= self.most_ops
        if self.failures:
            raise self.failures.pop()
        self.launched.append(ops)
        self.launched_programs.append(program)
        codes = np.frombuffer(table, np.uint32, offset=HEADER_BYTES)[:: INSTRUCTION_BYTES // 4][:ops].tolist()
        assert all(program in self._having(one) for one in codes)
        for number in range(ops):
            at = HEADER_BYTES + number * INSTRUCTION_BYTES
            assert self._carry_out(bytes(table[at : at + INSTRUCTION_BYTES])) <= most_elements

    def _carry_out(self, instruction: bytes) -> int:
        words = WORDS.unpack(instruction[:VALUES_AT])
        code, elements, axes = words[:3]
        widths, words = words[4 : 4 + OPERANDS], words[4 + OPERANDS :]
        extents, places, strides = words[:axes], words[AXES : AXES + OPERANDS], words[AXES + OPERANDS :]
        ufunc, routine, reads = self.routines[code]
        assert np.prod(extents) == elements
        operands = []
        for number, dtype in enumerate((*reads, routine.output)):
            assert widths[number] == (dtype.itemsize if places[number] >= VALUES else 0)
            steps = strides[number * AXES : number * AXES + axes]
            if places[number] < VALUES:
                first = VALUES_AT + places[number] * VALUE_BYTES
                operands.append(np.frombuffer(instruction[first : first + dtype.itemsize], dtype)[0])
            else:
                operands.append(array_at(places[number], dtype, extents, steps))
        *inputs, into = operands
        where = np.array(inputs.pop()) if ufunc is _put_where else True
        np.copyto(into, ufunc(*[np.array(one) for one in inputs]), "unsafe", where)
        return elements


def _put_where(value: Any) -> Any:
    return value


def types_read(kinds: tuple[Kind, ...]) -> tuple[DType, ...]:
    """Return in which types an op reads operands of these ``kinds``: a number in that of all together."""
    together = np.result_type(*_samples(kinds))
    return tuple(together if isinstance(kind, type) else kind for kind in kinds)


def _samples(kinds: tuple[Kind, ...]) -> list[Any]:
    return [_SAMPLES[kind] if isinstance(kind, type) else np.ones(1, kind) for kind in kinds]


def array_at(address: int, dtype: DType, extents: Shape, steps: Shape) -> np.ndarray[Any, Any]:
    low = sum(min(0, step * (extent - 1)) for step, extent in zip(steps, extents, strict=True))
    high = sum(max(0, step * (extent - 1)) for step, extent in zip(steps, extents, strict=True)) + dtype.itemsize
    memory = (ctypes.c_char * (high - low)).from_address(address + low)
    return np.ndarray(extents, dtype, buffer=memory, offset=-low, strides=steps)


class SegmentedCpu(CpuDevice):
    """The CPU device with segments."""

    def __init__(self, most_ops: int = 8) -> None:
        super().__init__()
        self.runs = self.segments = NumpySegments(most_ops)
        self.memory_by_address = self.blocks = NumpyBlocks()
