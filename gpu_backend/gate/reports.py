"""The report page: what one executor says that it used and what waits. It writes, the arbiter and the agent read.

A memfd of a size for good, made by whoever starts the executor and inherited by it. Readers open it by the executor's
own descriptor, to read only. An executor may be hostile: it can write anything here, and is believed as far as `audit`
goes; what makes no sense is read as what is nearest to it and does.

Layout, little-endian, 8 bytes each: the magic number and version; whether anything is
being computed; the processor time behind a shut gate that did not go into ops; at 64 the
sequence, used time, ops done, queued, in flight, urgent, memory, used time by class of op. Times are nanoseconds.
"""

from __future__ import annotations

import mmap

import msgspec

from gpu_backend.gate.words import Words
from gpu_backend.transport import sealed
from gpu_backend.wire.op_classes import OP_CLASSES

__all__ = ["COMPUTING", "OTHER_WORK", "GateReport", "ReportPage", "ReportView", "make"]

_SIZE = 192
_MAGIC = int.from_bytes(b"gpuwbrp\x05", "little")
#: The word that is not 0 while an op is being launched, or runs; and the one that counts processor time for messages
#: behind a shut gate, nanoseconds.
COMPUTING, OTHER_WORK = 1, 2
_REPORT = 64 // 8
_NO_CLASSES = (0,) * len(OP_CLASSES)
#: Nobody has more ops than this queued or in flight, nor more memory.
_MOST_OPS, _MOST_BYTES = 1 << 24, 1 << 48


class GateReport(msgspec.Struct, frozen=True, gc=False):
    """What an executor last wrote. Counters grow as long as it lives."""

    used_ns: int = 0
    ops_done: int = 0
    queued_ops: int = 0
    in_flight_ops: int = 0
    is_urgent: bool = False
    memory_bytes: int = 0
    #: The used time by class of op, in the order of `OP_CLASSES`.
    used_by_class_ns: tuple[int, ...] = _NO_CLASSES


def make() -> int:
    """Return the descriptor of a fresh page, which the caller closes when the executor has it."""
    descriptor = sealed.make("report", _SIZE)
    page = Words(mmap.mmap(descriptor, _SIZE))
    page.words[0] = _MAGIC
    page.close()
    return descriptor


class ReportPage:
    """The executor's side. There is one for each page; ``descriptor`` stays open: readers come by it."""

    def __init__(self, descriptor: int) -> None:
        sealed.require(descriptor, _SIZE)
        self._page = Words(mmap.mmap(descriptor, _SIZE))
        #: The whole page; others than this class write `COMPUTING` and `OTHER_WORK` only.
        self.words = self._page.words

    def write(self, report: GateReport) -> None:
        """Publish what was used and what waits."""
        values = (
            report.used_ns, report.ops_done, report.queued_ops, report.in_flight_ops, int(report.is_urgent),
            report.memory_bytes, *report.used_by_class_ns,
        )  # fmt: skip
        self._page.write(_REPORT, values)

    def close(self) -> None:
        """Unmap the page."""
        self._page.close()


class ReportView:
    """A reader's side.

    Parameters
    ----------
    pid
        The executor's process.
    number
        Of its descriptor of the page.

    Raises
    ------
    OSError
        If the process is gone, or has no report page in that place.
    """

    def __init__(self, pid: int, number: int) -> None:
        self._page = Words(sealed.open_of_process(pid, number, _SIZE))
        self._seen = -1
        self._last = GateReport()
        #: Whether all that was read can have been written by an executor that is what we started.
        self.is_possible = True
        if self._page.words[0] != _MAGIC:
            self.close()
            raise sealed.NotSealed("It is no report page, or one of another version of this package.")

    @property
    def has_news(self) -> bool:
        """Whether the executor has written since `report` was last called."""
        return bool(self._page.words[_REPORT] != self._seen)

    @property
    def is_computing(self) -> bool:
        """Whether the executor says that an op is being launched, or runs."""
        return bool(self._page.words[COMPUTING])

    @property
    def other_work_ns(self) -> int:
        """How much processor time, as the executor says, went into other things than ops behind its shut gate."""
        return self._page.words[OTHER_WORK]

    def report(self) -> GateReport | None:
        """Return what the executor last wrote, within reason; None if it stopped while it wrote."""
        self._seen = self._page.words[_REPORT]
        values = self._page.read(_REPORT, 6 + len(OP_CLASSES))
        if values is None:
            return None
        used, done, queued, flying, urgent, memory, *classes = values
        last = self._last
        self.is_possible = self.is_possible and min(values) >= 0 and max(queued, flying) <= _MOST_OPS
        self.is_possible = self.is_possible and used >= last.used_ns and done >= last.ops_done
        self._last = GateReport(
            max(0, used), max(0, done), _within(queued, _MOST_OPS), _within(flying, _MOST_OPS), bool(urgent),
            _within(memory, _MOST_BYTES), tuple([max(0, each) for each in classes]),
        )  # fmt: skip
        return self._last

    def close(self) -> None:
        """Unmap the page."""
        self._page.close()


def _within(value: int, most: int) -> int:
    return min(max(0, value), most)
