"""What is told of ops that failed: the error in words, whose failure it was first, and the handles that stay empty."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from gpu_backend.devices.base import Device
from gpu_backend.executor.answer import Answer
from gpu_backend.executor.heap import Failure, Heap
from gpu_backend.executor.memory_note import memory_note
from gpu_backend.executor.values import PLAIN, MissingHandle
from gpu_backend.wire.errors import ErrorRecord, WorkbenchError
from gpu_backend.wire.messages import Op

__all__ = ["CANCELLED", "Failures", "as_utf8"]

#: A traceback is for people; more of it than this helps nobody and costs memory until it is read.
_MAX_TRACEBACK_CHARS = 4_000
_OUT_OF_MEMORY = "cupy.cuda.memory.OutOfMemoryError"
CANCELLED = ErrorRecord(
    "gpu_backend.wire.errors.OpCancelled",
    "This was never computed: the cell that asked for it was interrupted, and then dropped. Run that cell again.",
)
_NOT_HERE = (
    "This object is not in this session: it was lost with an earlier executor, or another process made it. "
    "Run the cell again that made it."
)


class Failures:
    """Makes answers of errors, and notes in the heap which handles will never hold anything."""

    def __init__(self, device: Device, heap: Heap, give_up: Callable[[Op], None] = lambda op: None) -> None:
        """``give_up`` tells others, who wait for an op of this session, that it does nothing."""
        self._device = device
        self._heap = heap
        self._give_up = give_up
        #: The session's memory limit, and whose limit that is, for the notebook when an allocation fails.
        self.memory_limit: tuple[int, str] = (0, "")

    def of(self, seq: int, op: Op, error: Exception) -> Answer:
        """Return the answer of op ``seq``, which raised ``error``, and fail its results."""
        if isinstance(error, MissingHandle):
            return self._fail(seq, op, self._blame(error.handle))
        return self._fail(seq, op, self._record(error), self._device.is_fatal(error))

    def cancel(self, seq: int, op: Op) -> None:
        """Let go of what ``op`` lets go of, and fail its results: it will not be run."""
        for handle in (*(op.drop or ()), op.reuse):
            self._heap.drop(handle)
        if op.out:
            self._heap.fail(op.out, Failure(seq, CANCELLED))
        self._give_up(op)

    def _fail(self, seq: int, op: Op, error: ErrorRecord, fatal: bool = False) -> Answer:
        self._heap.drop(op.reuse)  # it may have failed before it came to that
        if op.out:
            caused_by = error.caused_by if error.caused_by >= 0 else seq
            self._heap.fail(op.out, Failure(caused_by, error))
        self._give_up(op)
        return Answer(error=error, fatal=fatal)

    def _record(self, error: BaseException) -> ErrorRecord:
        text = _words(_traceback, error)[-_MAX_TRACEBACK_CHARS:]
        args = tuple(arg if type(arg) in PLAIN and _fits(arg) else _words(repr, arg) for arg in error.args)
        ours = isinstance(error, WorkbenchError)
        name = f"gpu_backend.wire.errors.{type(error).__name__}" if ours else self._device.error_name(error)
        message = _words(str, error)
        # A message may quote what is no text; on the wire everything is UTF-8.
        note = memory_note(*self.memory_limit, message, self._device.memory()) if name == _OUT_OF_MEMORY else ""
        return ErrorRecord(name, as_utf8(message), as_utf8(text), args=tuple(map(as_utf8, args)), note=note)

    def _blame(self, handle: int) -> ErrorRecord:
        failure = self._heap.why_missing(handle)
        if failure is None:
            return ErrorRecord("gpu_backend.wire.errors.SessionLost", _NOT_HERE)
        error = failure.error
        return ErrorRecord(error.kind, error.message, error.traceback, failure.seq, note=error.note)


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _words(tell: Callable[[Any], str], one: object) -> str:
    """Return what an error, or what it quotes, says of itself; a sentence if it cannot."""
    try:
        return tell(one)
    except Exception as error:  # an error's own methods, and those of what it quotes, may raise anything
        return f"An error that cannot be told: {type(error).__name__}."


def _fits(value: object) -> bool:
    return not isinstance(value, int) or -(1 << 63) <= value < 1 << 64


def as_utf8(value: Any) -> Any:
    """Return a text that can be encoded, whatever ``value`` quotes; all else as it is."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
