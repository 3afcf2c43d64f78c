"""Segments on a GPU: kernels that go through tables of CuPy's own ops.

Those of the ops that most programs use are one program, which the pool has compiled beforehand; others are compiled
behind the ops that run meanwhile.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from time import perf_counter

import cupy
import numpy as np
from cupy._core._scalar import get_typename as _typename

from gpu_backend.devices import segment_source
from gpu_backend.devices.cuda_segment_compiler import Program, SegmentCompiler
from gpu_backend.devices.cuda_tables import tables
from gpu_backend.devices.cuda_ufuncs import CudaUfuncs
from gpu_backend.devices.launching import Launcher
from gpu_backend.devices.segment_source import MOST_OPS, Body
from gpu_backend.devices.segments import HEADER_BYTES, INSTRUCTION_BYTES, Kind, Routine
from gpu_backend.devices.usual_ops import Usual, usual_ops
from gpu_backend.opstream.layout import DType

#: So often a routine is wanted before it is compiled: what runs a few times is never worth it.
_WANTED = 8
#: Most routines of a program: each takes a tenth of a second to compile. And so many, at most, are compiled once more
#: because they follow each other, or were used last: a loop that waits for few does not wait for long.
_MOST_ROUTINES, _MOST_APART, _MOST_USED = 32, 16, 8
#: So many of those that were compiled last are used, and so often one follows the other before what they have is
#: compiled as one: each time is a launch. It is looked now and then which ops that concerns.
_MOST_PROGRAMS, _SWITCHES, _SWITCHES_A_LOOK = 32, 64, 8
#: How often it is looked which are used.
_LOOK_SECONDS = 0.25
#: How often it is looked whether the usual ones have been compiled.
_NOTE_SECONDS = 1.0
_BOOL: DType = np.dtype(np.bool_)


class CudaSegments:
    """Carries out tables of instructions on one GPU, in the default stream; see the seam.

    Parameters
    ----------
    usual_note
        The file that is there once the program of the usual ops has been compiled; None if nobody does that.
    """

    most_ops = MOST_OPS
    most_elements = 1 << 20

    def __init__(
        self, device: cupy.cuda.Device, usual_note: Path | None = None, launcher: Launcher | None = None
    ) -> None:
        self._launcher = launcher
        self._most_blocks = int(device.attributes["MultiProcessorCount"])
        self._bodies: list[Body] = []
        self._codes: dict[Body, int] = {}
        self._ufuncs = CudaUfuncs()
        #: How often each routine was asked for since it was compiled last, if it is not ready.
        self._wanted: Counter[int] = Counter()
        self.ready: dict[int, tuple[Program, ...]] = {}
        self._compiler = SegmentCompiler(device)
        #: Those that were compiled here, which may still run; and which routines were used lately, the last ones last.
        self._programs: list[Program] = []
        self._usual: Program | None = None
        self._used: dict[int, None] = {}
        self._look_at = 0.0
        #: How often ops of one program followed those of another since something was compiled last, and which of them
        #: lately, the last ones last.
        self._switches = 0
        self._apart: dict[int, None] = {}
        #: What was launched last.
        self._table: bytearray | None = None
        #: Where it is looked whether the usual ops have been compiled, and when again; None once they are on their way.
        self._usual_note, self._usual_at = usual_note, 0.0
        #: They come first, so that they have the same codes, and the program the same text, in every process.
        self._usual_codes = self._learn_usual() if usual_note is not None else []
        self._look_for_usual()

    def compile_usual(self) -> None:
        """Compile the program of the usual ops, for others to find it in CuPy's cache."""
        Program({one: self._bodies[one] for one in self._usual_codes or self._learn_usual()})

    def _learn_usual(self) -> list[int]:
        found = map(self._usual_routine, usual_ops())
        codes = sorted({one.code for one in found if one is not None})
        self._wanted.clear()
        return codes

    def _usual_routine(self, one: Usual) -> Routine | None:
        if one.name:
            return self.routine(one.name, one.kinds, None)
        of, into, *mask = one.kinds
        return self.copy(of, into, tuple(mask))  # type: ignore[arg-type]

    def routine(self, name: str, kinds: tuple[Kind, ...], output: DType | None) -> Routine | None:
        """Return what does op ``name`` of operands of these ``kinds``; see the seam."""
        chosen = self._ufuncs.chosen(name, kinds)
        if chosen is None or not isinstance(chosen[1].routine, str):
            return None
        ufunc, op = chosen
        made = op.out_types[0]
        stored = made if output is None else output
        if not np.can_cast(made, stored, "same_kind"):
            return None
        lying = [mine if isinstance(kind, type) else kind for kind, mine in zip(kinds, op.in_types, strict=True)]
        body = Body(
            ufunc._preamble or "", ufunc._loop_prep or "", op.routine, tuple(map(_typename, op.in_types)),
            _typename(made), tuple(map(_typename, lying)), _typename(stored),
        )  # fmt: skip
        if (store := self.copy(stored, stored)) is not None and store.code not in self.ready:
            self._wanted[store.code] += 0  # the result may be put into a window next: then all is compiled at once
        return self._routine(body, tuple(op.in_types), stored)

    def copy(self, kind: Kind, output: DType, mask: tuple[Kind, ...] = ()) -> Routine | None:
        """Return what copies operands of this ``kind``; see the seam."""
        if mask and (isinstance(mask[0], type) or mask[0] != _BOOL):
            return None
        if isinstance(kind, type):  # CuPy's kernel for filling gets the number in the array's own type
            kind = output
        elif kind.kind == "c" and output.kind != "c":
            return None  # CuPy warns
        name, where = _typename(kind), tuple(map(_typename, mask))
        body = Body(
            "", "", "out0 = in0", (name, *where), name, (name, *where), _typename(output), "in1" if mask else ""
        )
        return self._routine(body, (kind, *mask), output)  # type: ignore[arg-type]

    def is_ready(self, code: int) -> bool:
        """Tell whether a routine is compiled; have it compiled if it is wanted often."""
        if code in self.ready:
            return True
        self._look_for_usual()
        self._wanted[code] += 1
        if self._wanted[code] >= _WANTED and code not in self._compiler.failed and self._compiler.may_begin():
            self._compile()
        return False

    def note_switch(self, code: int, ops: int) -> None:
        """Note that ops of one program follow those of another; have them compiled as one if that is often so."""
        self._switches += 1
        if self._switches % _SWITCHES_A_LOOK == 0:
            for one in (*self._codes_of(ops), code):
                self._apart.pop(one, None)
                self._apart[one] = None
            for one in list(self._apart)[:-_MOST_APART]:
                del self._apart[one]
        newest = self._programs[-1].codes if self._programs else frozenset()
        if self._switches >= _SWITCHES and not newest.issuperset(self._apart) and self._compiler.may_begin():
            self._compile()

    def _compile(self) -> None:
        """Compile what is wanted, with what is used with it."""
        wanted = [one for one, _ in self._wanted.most_common() if one not in self._compiler.failed]
        used = list(reversed(self._used))[:_MOST_USED]
        chosen = list(dict.fromkeys([*wanted, *reversed(self._apart), *used]))[:_MOST_ROUTINES]
        self._switches = 0
        self._compiler.begin({one: self._bodies[one] for one in sorted(chosen)})

    def renew(self) -> None:
        """Use what was compiled meanwhile."""
        program = self._compiler.compiled
        if program is None:
            return
        self._compiler.compiled = None
        program.launch = tables(program.kernels, self._most_blocks, self._launcher)
        if self._compiler.is_usual:
            self._usual = program
        else:
            self._programs.append(program)
            self._used = dict.fromkeys([*(program.codes - self._used.keys()), *self._used])
        self._use()

    def _use(self) -> None:
        """Have each op done by the newest program that has it, or else by that of the usual ones."""
        self.ready.clear()
        for program in (*self._programs[: -_MOST_PROGRAMS - 1 : -1], self._usual):
            for code in program.codes if program is not None else ():
                self.ready[code] = (*self.ready.get(code, ()), program)  # type: ignore[arg-type]
                del self._wanted[code]

    def _look_for_usual(self) -> None:
        """Have the program of the usual ops loaded, if it is there by now: asks the disk now and then only."""
        if self._usual_note is None or (now := perf_counter()) < self._usual_at or not self._compiler.may_begin():
            return
        self._usual_at = now + _NOTE_SECONDS
        if self._usual_note.exists():
            self._usual_note = None
            self._compiler.begin({one: self._bodies[one] for one in self._usual_codes}, is_usual=True)

    def launch(self, program: object, table: bytearray, ops: int, most_elements: int) -> None:
        """Have the first ``ops`` instructions of ``table`` carried out in the default stream; see the seam."""
        assert type(program) is Program
        self._table = table
        program.launch(table, ops, most_elements)
        if (now := perf_counter()) > self._look_at:
            self._look_at = now + _LOOK_SECONDS
            self._note_used(ops)

    def _note_used(self, ops: int) -> None:
        for code in self._codes_of(ops):
            self._used.pop(code, None)
            self._used[code] = None
        for code in list(self._used)[: -2 * _MOST_ROUTINES]:
            del self._used[code]

    def _codes_of(self, ops: int) -> set[int]:
        """Return the codes of the first ``ops`` instructions of the table that was launched last, or is to be next."""
        if self._table is None:
            return set()
        codes = np.frombuffer(self._table, np.uint32, offset=HEADER_BYTES)[:: INSTRUCTION_BYTES // 4][:ops]
        return set(codes.tolist())

    # --- what CuPy would do -------------------------------------------------------------------------------------------

    def _routine(self, body: Body, inputs: tuple[DType, ...], output: DType) -> Routine | None:
        if not segment_source.can_stand(body):
            return None
        code = self._codes.setdefault(body, len(self._bodies))
        if code == len(self._bodies):
            self._bodies.append(body)
        return Routine(code, inputs, output)
