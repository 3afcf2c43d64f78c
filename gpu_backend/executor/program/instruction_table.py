"""The table of instructions that are gathered and not launched."""

from __future__ import annotations

from gpu_backend.devices.segments import HEADER_BYTES, INSTRUCTION_BYTES

__all__ = ["Table"]


class Table:
    """Instructions for one launch. What recurs writes here too, so attributes are slots (``csrc/objects.h``)."""

    __slots__ = ("elements", "gathered", "memory", "ops", "program")

    def __init__(self, most_ops: int) -> None:
        self.memory = bytearray(HEADER_BYTES + most_ops * INSTRUCTION_BYTES)
        #: How many there are, of which program, and how many elements the largest of them has.
        self.ops = 0
        self.program: object = None
        self.elements = 0
        #: How many were ever launched.
        self.gathered = 0
