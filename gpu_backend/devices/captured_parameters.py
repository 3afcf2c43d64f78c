"""The parameters of captured launches: where in them an operand's address stands, a number, or neither.

Whoever captures an op does so several times, on addresses that are made up and farther along each time. What differs
must be those addresses and follow them exactly, or be a number that differs on purpose; or memory that nobody has set,
which differs where all else is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from struct import unpack_from
from typing import NamedTuple

import numpy as np

from gpu_backend.devices.cuda_graphs import is_address
from gpu_backend.devices.replays import Patch, Slot, Unrepeatable
from gpu_backend.opstream.layout import DType

__all__ = ["BLOCKS", "FIRST", "MIDDLE", "MOST_ROOMS", "ROOM", "Differs", "Moved", "Parameters"]

#: Addresses that no memory has: above all that CUDA gives, one room for each array and block.
FIRST, ROOM, MOST_ROOMS = 1 << 45, 1 << 38, 64
#: The first room for a block: those before are for operands.
BLOCKS = MOST_ROOMS // 2
#: Where in its room the first element of an array is: strides may lead below.
MIDDLE = 1 << 37
_WORD, _HALF = 8, 4
#: What Python's whole numbers are handed over as.
_LONG: DType = np.dtype(np.int64)
#: No memory begins below: neither Linux nor CUDA gives any there.
_LEAST_ADDRESS = 1 << 16


class Differs(Unrepeatable):
    """A parameter differs that is neither an address nor a number: repeated, it may turn out that nobody has set it."""


class Moved(NamedTuple):
    """What differs on purpose in one trace: how far the content of each room is moved, and what each number is."""

    rooms: Mapping[int, int]
    #: In which type each is handed over, and its bytes in that type.
    numbers: Mapping[int, tuple[DType, bytes]]


class Parameters:
    """The parameters of all launches, one behind the other, each at a multiple of a word.

    Parameters
    ----------
    traces
        What differs in each.
    leads_to_plans
        Whether addresses may stand among them that are none of an operand or a block.
    again
        Of what is given behind the traces, which of them each repeats: all that differs on purpose is the same.
        What is another there is memory that nobody has set, which libraries leave in theirs and CuPy in none but a
        ``CIndexer``.
    """

    def __init__(self, traces: Sequence[Moved], leads_to_plans: bool, again: Sequence[int] = ()) -> None:
        self._traces, self._leads_to_plans, self._again = traces, leads_to_plans, again
        #: Words that are no addresses: to ask the driver takes a while, and most stand there several times.
        self._harmless: set[int] = set()
        self.content = bytearray()
        self.patches: list[Patch] = []
        self.slots: list[Slot] = []

    def add(self, every: Sequence[bytes], may_be_indexer: bool) -> int:
        """Add a parameter as it was in each trace, and in those that repeat one; return where it stands.

        What is not the same when all else is, is nothing that a library's kernel reads: memory that nobody has set. Nor
        does one of CuPy's, as ``may_be_indexer`` says, read the end of a ``CIndexer``, which nobody else has.

        Raises
        ------
        Unrepeatable
            If anything else differs, or memory is meant that is none of an operand or a block.
        """
        at, versions = len(self.content), every[: len(self._traces)]
        first = versions[0]
        self.content += first.ljust(-(-len(first) // _WORD) * _WORD, b"\0")
        if (slot := self._slot(versions, at)) is not None:
            self.slots.append(slot)
            return at
        end = len(first) // _WORD * _WORD
        may_be_unset = bool(self._again) and not may_be_indexer
        if len({one[end:] for one in versions}) > 1:
            self._require_unset([one[end:] for one in every], may_be_unset)
        table = _words(every, end)
        for place, words in enumerate(table):
            if may_be_unset and self._is_unset(words):
                self._require_unset([one.to_bytes(_WORD) for one in words], may_be_unset)
                continue
            try:
                patch = self._patch(words[: len(versions)], at + place * _WORD)
            except Unrepeatable:
                if not may_be_indexer or place < _words_read([one[: len(versions)] for one in table]):
                    raise
                continue  # memory that nobody has set, so it is as good as any
            if patch is not None:
                self.patches.append(patch)
        return at

    def _require_unset(self, every: Sequence[bytes], may_be_unset: bool) -> None:
        """Raise `Differs` if a half of a word that was ``every``, or a part, differs by trace and not when repeated."""
        count = len(self._traces)
        for at in range(0, len(every[0]), _HALF):
            halves = [one[at : at + _HALF] for one in every]
            if len(set(halves[:count])) > 1 and not (may_be_unset and self._is_unset(halves)):
                raise Differs("parameters that differ")

    def _is_unset(self, every: Sequence[object]) -> bool:
        """Tell whether something that was ``every`` differs where a trace is repeated."""
        count = len(self._traces)
        return any(every[number] != one for number, one in zip(self._again, every[count:], strict=True))

    def _patch(self, words: Sequence[int], at: int) -> Patch | None:
        """Return which address stands in a word that was ``words`` in the traces; None for none that changes."""
        first = words[0]
        if words.count(first) < len(words):  # else it may be two numbers of 32 bits that look like an address together
            room = (first - FIRST) // ROOM
            if not 0 <= room < MOST_ROOMS:
                raise Differs("parameters that differ")
            moved = [trace.rooms.get(room) for trace in self._traces]
            if None in moved or [one - first for one in words] != moved:
                raise Differs("parameters that do not follow an address")
            return Patch(at, room, first - (FIRST + room * ROOM + (0 if room >= BLOCKS else MIDDLE)))
        if not self._leads_to_plans and first >= _LEAST_ADDRESS and first not in self._harmless:
            if is_address(first):
                raise Unrepeatable("memory of others")
            self._harmless.add(first)
        return None

    def _slot(self, versions: Sequence[bytes], at: int) -> Slot | None:
        """Return which number a parameter is; None if it is none.

        A kernel may take less of a whole number than the 8 bytes that it is handed: the driver reads the first of them,
        and behind them there is room up to a word.
        """
        size = len(versions[0])
        for number, (dtype, _) in self._traces[0].numbers.items():
            handed = [trace.numbers[number][1] for trace in self._traces]
            if dtype == _LONG:
                handed = [one[:size] for one in handed]
            if size and all(one == other for one, other in zip(versions, handed, strict=True)):
                return Slot(at, number, dtype)
        return None


def _words(versions: Collection[bytes], end: int) -> list[tuple[int, ...]]:
    """Return each word of a parameter up to byte ``end``, as it was in each version."""
    form = f"<{end // _WORD}Q"
    return list(zip(*[unpack_from(form, one) for one in versions], strict=True))


def _words_read(table: Sequence[Sequence[int]]) -> int:
    """Return how many words of a parameter the kernel reads, of what it was in each trace.

    A ``CIndexer`` of n axes is the number of elements, n extents, and n words in which each thread notes an index for
    itself, and which nobody sets before. Source: ``cupy/_core/include/cupy/carray.cuh`` of CuPy 14.2.
    """
    axes = (len(table) - 1) // 2
    if axes < 1 or len(table) != 1 + 2 * axes:
        return len(table)
    head = table[: 1 + axes]
    is_same = all(len(set(words)) == 1 for words in head)
    return 1 + axes if is_same and 0 < head[0][0] == prod(words[0] for words in head[1:]) else len(table)
