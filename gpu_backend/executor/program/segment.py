"""Small elementwise ops, gathered and given to the device in one launch, in their order (see `devices/segments.py`).

An op that is gathered has not run: its result is a place in memory, and nothing is computed before the segment is
launched. That happens before anything else is asked of the device, so nobody can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from gpu_backend.devices.replays import ZEROS, Replay
from gpu_backend.devices.segments import (
    HEADER_BYTES,
    INSTRUCTION_BYTES,
    OPERANDS,
    PLACES_AT,
    VALUE_BYTES,
    VALUES,
    VALUES_AT,
    Kind,
    Routine,
    Segments,
)  # fmt: skip
from gpu_backend.executor.heap import MOST_SPARE_BYTES, Place, Places
from gpu_backend.executor.program.instruction_table import Table
from gpu_backend.executor.program.operands import Number, Operands, is_nan, write_number
from gpu_backend.executor.program.steps import Step, make_step
from gpu_backend.executor.verbs import STORE, STORE_WHERE
from gpu_backend.opstream.layout import DType, Layout, strided
from gpu_backend.opstream.powers import plain_power
from gpu_backend.wire import values as wire
from gpu_backend.wire.dtypes import text_to_dtype
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Complex, Value

__all__ = ["STORES", "Segment", "kind_of"]

#: Ops that write into their first argument: an instruction has its places the other way round.
STORES = frozenset((STORE, STORE_WHERE))

_PLACES = tuple(Struct(f"<{count}Q").pack_into for count in range(OPERANDS + 1))
#: How many operands most ops have, with the result.
_USUAL = 3
#: So many instructions are looked at for the program that has them all.
_LOOKED_BACK = 32


class Segment:
    """The ops that are gathered, and where they write.

    Parameters
    ----------
    runs
        What carries them out.
    """

    def __init__(self, runs: Segments, operands: Operands, places: Places) -> None:
        self.runs, self._operands, self._places = runs, operands, places
        self._most_ops, self._ready = runs.most_ops, runs.ready
        self.table = Table(runs.most_ops)
        #: What does an op on operands of certain kinds: its shapes may be new each time.
        self._routines: dict[tuple[str, tuple[Kind, ...], DType | None], Routine | None] = {}

    def step(self, name: str, takes: int, operands: Sequence[Layout | type | str]) -> Step | None:
        """Return an op as an instruction, which has ``takes`` operands and perhaps one to write into; None for none.

        Parameters
        ----------
        operands
            The layout of each; of a number, its type or the text of its dtype.
        """
        layouts = [one if type(one) is Layout else None for one in operands]
        kinds = tuple(map(kind_of, operands))
        into = layouts[takes] if len(operands) == takes + 1 else None
        if len(operands) != takes and into is None:
            return None
        if not any(layouts[:takes]) and into is None:
            return None
        if any(not _is_served(kind) for kind in kinds):
            return None
        wanted = (name, kinds[:takes], into.dtype if into is not None else None)
        routine = self._routines[wanted] if wanted in self._routines else self._routine(*wanted)
        mixes_nans = routine is not None and _mixes_nans(name, routine)
        if routine is None or (mixes_nans and routine.output.kind == "c" and not all(layouts[:takes])):
            return None
        step = make_step(routine, layouts[:takes], into, self.runs.most_elements)
        if step is not None:
            step.mixes_nans = mixes_nans
        return step

    def recast(self, name: str, args: Sequence[Value], operands: Sequence[Layout]) -> Step | None:
        """Return ``cupy.outer``, a power, ``astype`` or a copy as an instruction; None where it cannot be one."""
        if name == "cupy.ndarray.__pow__":
            plain = plain_power(args[1], operands[0].dtype.kind) if len(args) == 2 and len(operands) == 1 else None
            return self.step(f"cupy.{plain[0]}", 1, operands) if plain is not None and plain[1] else None
        if name == "cupy.outer":
            if len(args) != 2 or [one.ndim for one in operands] != [1, 1]:
                return None
            (rows, row_step), (columns, column_step) = ((one.size, one.strides[0]) for one in operands)
            standing = strided((rows, 1), (row_step, 0), operands[0].dtype)
            lying = strided((1, columns), (0, column_step), operands[1].dtype)
            return self.step("cupy.multiply", 2, [standing, lying])
        dtype = args[1] if name == "cupy.ndarray.astype" and len(args) == 2 else None
        if len(operands) != 1 or not operands[0].c_contiguous or (len(args) != 1 and type(dtype) is not wire.DType):
            return None
        kind = operands[0].dtype
        into = text_to_dtype(dtype.descr) if type(dtype) is wire.DType else kind
        routine = self._routine(STORE, (kind,), into) if _is_served(kind) and _is_served(into) else None
        return make_step(routine, operands, None, self.runs.most_elements) if routine is not None else None

    def _routine(self, name: str, kinds: tuple[Kind, ...], output: DType | None) -> Routine | None:
        if name in STORES:
            routine = self.runs.copy(kinds[0], output, kinds[1:]) if output is not None else None
        else:
            routine = self.runs.routine(name, kinds, output)
        self._routines[name, kinds, output] = routine
        return routine

    def put(self, op: Op, step: Step, places: Sequence[Place | Number]) -> bool:
        """Gather ``op``; return whether that was possible. This is the hot path of small ops."""
        if not self._has_room(step):
            return False
        gathered, table = self.table, self.table.memory
        at = HEADER_BYTES + gathered.ops * INSTRUCTION_BYTES
        table[at : at + INSTRUCTION_BYTES] = step.template
        if step.has_numbers and not self._write_numbers(at, step, places):
            return False
        if step.made is not None:
            if (
                not self._operands.is_free(op.out)
                or (result := self._operands.new(step.made, step.made.nbytes)) is None
            ):
                return False
            self._places.add(op.out, result)
            places = [*places, result]
        if len(places) == _USUAL:
            first, second, last = places
            _PLACES[_USUAL](table, at + PLACES_AT, first.address, second.address, last.address)
        else:
            _PLACES[len(places)](table, at + PLACES_AT, *[place.address for place in places])
        if step.elements > gathered.elements:
            gathered.elements = step.elements
        gathered.ops += 1
        return True

    def _has_room(self, step: Step) -> bool:
        """Make room for an instruction behind those that are gathered; False if it cannot be one of them yet."""
        programs = self._ready.get(step.code) or self._readied(step)
        if programs is None:
            return False
        is_crowded, table = self._places.spare_bytes > MOST_SPARE_BYTES, self.table
        program = table.program if table.program in programs else programs[0]
        if is_crowded or (table.ops and (program is not table.program or table.ops >= self._most_ops)):
            if program is not table.program:
                program = self._switched(step.code, programs)
            self.launch()
            if is_crowded:
                self._places.give_back()
            programs = self._ready.get(step.code)  # what was compiled meanwhile has others
            if programs is None:
                return False
            program = program if program in programs else programs[0]
        table.program = program
        return True

    def _switched(self, code: int, programs: tuple[object, ...]) -> object:
        """Return which of ``programs`` a routine is taken from that the table's has not.

        It is one that has as many as can be of the routines before it: so a loop comes to be done by one program, if
        any has all of it.
        """
        table = self.table
        self.runs.note_switch(code, table.ops)
        last = table.ops - 1
        for number in range(last, max(-1, last - _LOOKED_BACK), -1):
            at = HEADER_BYTES + number * INSTRUCTION_BYTES
            having = self._ready.get(int.from_bytes(table.memory[at : at + 4], "little"), ())
            both = tuple([one for one in programs if one in having])
            if not both:
                break
            programs = both
        return programs[0]

    def is_ready(self, step: Step) -> bool:
        """Tell whether an instruction can be gathered now; what is asked for often is compiled."""
        return bool(self._ready.get(step.code) or self._readied(step))

    def lacks(self, step: Step) -> bool:
        """Tell whether an instruction cannot be gathered yet, without asking for it."""
        return step.code not in self._ready

    def launch(self) -> None:
        """Have the device carry out what is gathered."""
        table = self.table
        ops, table.ops, elements, table.elements = table.ops, 0, table.elements, 0
        table.gathered += ops
        try:
            if ops:
                self.runs.launch(table.program, table.memory, ops, elements)
        finally:
            self._places.kept.clear()
            self.runs.renew()

    def copies(self, replay: Replay) -> tuple[Step, ...] | None:
        """Return what ``replay`` launches as instructions, for `put_copies`; None if not all of it is copies.

        Nor if one writes what was read before: the first of them could not be made again.
        """
        found: list[Step] = []
        read: set[int] = set()
        for one in replay.copies:
            read.add(one.source)
            routine = self.runs.copy(one.lies.dtype, one.target_lies.dtype)
            if routine is None or one.target in read:
                return None
            lies = None if one.source == ZEROS else one.lies
            step = make_step(routine, [lies], one.target_lies, self.runs.most_elements)
            if step is None:
                return None
            found.append(step)
        return tuple(found) or None

    def put_copies(self, copies: Sequence[Step], replay: Replay, addresses: Sequence[int]) -> bool:
        """Gather the ``copies`` of ``replay``, whose blocks and operands lie at ``addresses``; False if not all can be.

        Some may have been gathered by then: they are harmless, and made again by whoever launches the op.
        """
        table = self.table
        for step, one in zip(copies, replay.copies, strict=True):
            if not self._has_room(step):
                return False
            at = HEADER_BYTES + table.ops * INSTRUCTION_BYTES
            table.memory[at : at + INSTRUCTION_BYTES] = step.template
            # The first of the instruction's own values, where no address stands, is zero in the template.
            of = 0 if one.source == ZEROS else addresses[one.source] + one.displacement
            _PLACES[2](table.memory, at + PLACES_AT, of, addresses[one.target] + one.target_displacement)
            table.elements = max(table.elements, step.elements)
            table.ops += 1
        return True

    def _readied(self, step: Step) -> tuple[object, ...] | None:
        """Return the programs for ``step`` if there are any by now; None if not."""
        if not self.table.ops:
            self.runs.renew()
        return self._ready.get(step.code) if self.runs.is_ready(step.code) else None

    def _write_numbers(self, at: int, step: Step, places: Sequence[Place | Number]) -> bool:
        slot = 0
        for place, dtype in zip(places, step.numbers, strict=False):
            if type(place) is Number:
                where = at + VALUES_AT + slot * VALUE_BYTES
                if slot == VALUES or (step.mixes_nans and is_nan(place.value)):
                    return False
                if not write_number(self.table.memory, where, place.value, dtype):
                    return False
                place.address = slot
                slot += 1
        return True


def kind_of(operand: Layout | type | str) -> Kind:
    """Return of what kind an operand is: given its layout; or a number's type, or the text of its dtype."""
    if isinstance(operand, Layout):
        return operand.dtype
    if isinstance(operand, str):  # a number that has a type of its own counts as an array of it
        return text_to_dtype(operand)
    return complex if operand is Complex else operand


def _mixes_nans(name: str, routine: Routine) -> bool:
    """Tell whether it shows in which registers an op has its operands: where several are NaN.

    The payload of one lasts, and which one that is depends on the places of the operands in the instruction. CuPy's
    kernel has a number among its parameters, and here it is read from a table: ``x * nan`` was seen on a GPU to come
    out otherwise, and ``0.25 * x`` of complex128, each part of which is a sum of products, for any NaN in ``x``.
    """
    return routine.output.kind in "fc" and name not in STORES and name != "cupy.where"


def _is_served(kind: Kind) -> bool:
    return isinstance(kind, type) or (kind.kind in "biufc" and kind.isnative and kind.char not in "gG")
