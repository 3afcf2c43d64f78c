"""The seam of segments: many small elementwise ops that a device carries out in one launch, one after the other.

CuPy launches a kernel for each op, and most of what a small one takes is Python: finding its types, an array for its
result, the launch. A device that has segments takes a table of instructions instead. Each instruction is one op of
CuPy's, with the very body that CuPy would compile; each reads what all before it have written, for which the device
waits where it has to, so results are the same bit for bit.

An instruction is `INSTRUCTION_BYTES` long: the code of the routine, elements, axes, whether it goes on without waiting
for what is before it (the device's own), of how many bytes an element of each operand is (none of a number's), four
extents, the addresses of up to four operands, the output last, for each of these the strides of four axes in bytes, and
two values of sixteen bytes. An address below `VALUES` is no address: it is the number of one of the values, a scalar of
the op's.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import NamedTuple, Protocol

from gpu_backend.opstream.layout import DType

__all__ = [
    "AXES", "HEADER_BYTES", "INSTRUCTION_BYTES", "OPERANDS", "PLACES_AT", "VALUES", "VALUES_AT", "VALUE_BYTES", "WORDS",
    "Kind", "Routine", "Segments",
]  # fmt: skip

AXES, OPERANDS, VALUES, VALUE_BYTES = 4, 4, 2, 16
#: All of an instruction but its values.
WORDS = Struct("<2I2H4B4i4Q16i")
PLACES_AT, VALUES_AT = 32, WORDS.size
INSTRUCTION_BYTES = VALUES_AT + VALUES * VALUE_BYTES
#: What stands before the first: the device's own.
HEADER_BYTES = 16

#: What is known of an operand: the dtype of an array's elements, or the type of a Python number.
Kind = DType | type


class Routine(NamedTuple):
    """An elementwise op on operands of certain kinds."""

    #: Its number in instructions.
    code: int
    #: In which type it reads each operand, which is how a number is handed over.
    inputs: tuple[DType, ...]
    #: Of which type the elements are that it writes.
    output: DType


class Segments(Protocol):
    """Carries out tables of instructions. Called from the op loop only."""

    #: Most instructions of a table.
    most_ops: int
    #: Most elements of an op: a larger one keeps the device busy by itself.
    most_elements: int

    @property
    def ready(self) -> Mapping[int, tuple[object, ...]]:
        """The programs that have a routine which may be used, by its code, the one to be taken first; none is empty.

        Only `renew` takes anything away.
        """

    def routine(self, name: str, kinds: tuple[Kind, ...], output: DType | None) -> Routine | None:
        """Return what does the op with the public name ``name`` on operands of these ``kinds``; None if nothing does.

        ``output`` is of what type the array is that it writes into; None for a new one.
        """

    def copy(self, kind: Kind, output: DType, mask: tuple[Kind, ...] = ()) -> Routine | None:
        """Return what puts operands of this ``kind`` into an array of type ``output``; None if nothing does.

        With a ``mask``, which is of one kind, it has a second operand, and puts where that is true.
        """

    def is_ready(self, code: int) -> bool:
        """Tell whether a routine is ready; a device may have to see it wanted for a while, and compile it first."""

    def note_switch(self, code: int, ops: int) -> None:
        """Note that the ``ops`` instructions of a table are launched because their program has no routine ``code``."""

    def renew(self) -> None:
        """Take up what was compiled meanwhile. Called where no table is being written."""

    def launch(self, program: object, table: bytearray, ops: int, most_elements: int) -> None:
        """Have the first ``ops`` instructions of ``table`` carried out, behind all work given so far.

        All of them are of one ``program``. The table, which begins with `HEADER_BYTES` of the device's own, may be
        written again when this returns. ``most_elements`` is what the largest of them has.
        """
