"""The op stream: runs ops in order, keeps their results, and says which of them failed and why."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from sys import getrefcount
from time import perf_counter
from typing import Any, TypeGuard

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.executor.answer import Answer
from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.executor.described_objects import DescribedObjects
from gpu_backend.executor.forwarding import STORE, StoreForwarding
from gpu_backend.executor.heap import Failure, Heap
from gpu_backend.executor.laying_out import LayingOut
from gpu_backend.executor.memory_note import memory_note
from gpu_backend.executor.surface_names import SurfaceNames
from gpu_backend.executor.values import PLAIN, MissingHandle, OutOfOrder, Reader, Writer
from gpu_backend.executor.verbs import Verbs
from gpu_backend.wire.errors import ErrorRecord, ProtocolError, WarningRecord, WorkbenchError
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref, View

NOTHING = Want.NOTHING
#: A traceback is for people; more of it than this helps nobody and costs memory until it is read.
_MAX_TRACEBACK_CHARS = 4_000
_NO_BOUND = 1 << 30
_OUT_OF_MEMORY = "cupy.cuda.memory.OutOfMemoryError"
CANCELLED = ErrorRecord(
    "gpu_backend.wire.errors.OpCancelled",
    "This was never computed: the cell that asked for it was interrupted, and then dropped. Run that cell again.",
)


_NOT_HERE = (
    "This object is not in this session: it was lost with an earlier executor, or another process made it. "
    "Run the cell again that made it."
)


class OpStream:
    """Runs one session's ops on one device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.heap = Heap()
        self._names = SurfaceNames(device)
        self._objects = DescribedObjects(device)
        self._functions: dict[str, Any] = dict(Verbs(device, self._resolve, self._objects).table)
        self._reader = Reader(self.heap, device, self._resolve, self._objects)
        self._writer = Writer(self.heap, device, self._objects)
        self._forwards = StoreForwarding(self.heap, self._reader)
        #: Lays a proved result out as was proved; None on a device whose results lie so by themselves.
        self._as_proved = None if device.lays_out_as_cupy else LayingOut(device, self._resolve).results
        #: The session's memory limit, and whose limit that is, for the notebook when an allocation fails.
        self.memory_limit: tuple[int, str] = (0, "")
        self._stream = 0
        self._stream_context: AbstractContextManager[object] | None = None
        #: The op whose views' roots were laid out anew, and those roots: once each, or two views could take turns.
        self._laid_out: tuple[int, set[int]] = (0, set())

    def run(self, batch: QueuedBatch, until: float, most: int = _NO_BOUND) -> tuple[int, Answer | None]:
        """Run ops of ``batch``: until one has an answer, ``most`` have run, or ``perf_counter()`` passes ``until``.

        Returns the place behind the last op that ran, and its answer if it has one. At least one op runs. This is the
        hot path: what happens for every op happens here, inline. Dropped memory is reused if its array alone lies in it
        and has two references, the name here and the call's argument, beside those of an operand that it may be.
        """
        heap, functions, as_proved, ops, place = self.heap, self._functions, self._as_proved, batch.ops, batch.next
        objects, read, end = heap.objects, self._reader.with_frames(batch.frames), min(len(ops), place + most)
        array = self._objects.array_type
        while place < end:
            op, place = ops[place], place + 1
            for handle in op.drop or ():
                if objects.pop(handle, None) is None or heap.views:
                    heap.drop(handle)
            try:
                if op.want is not NOTHING or op.kwargs is not None or op.stream != self._stream:
                    if (answer := self._run_one(op)) is not None:
                        return place, answer
                else:
                    args = []  # filled by a loop: a comprehension is a call of its own before Python 3.12
                    for a in op.args:
                        args.append(objects[a.handle] if type(a) is Ref and a.handle in objects else read(a))
                    if op.out and place < end and ops[place].name == STORE and self._forward(op, args, ops, place):
                        place += 1
                    else:
                        if op.reuse:
                            result, spare = None, heap.take(op.reuse)  # the last result may be the spare
                            if spare is None:  # its own op failed: what is kept of that can go
                                heap.drop(op.reuse)
                            elif getrefcount(spare) - _times(spare, args) == 2 and self._device.is_unshared(spare):
                                args.append(spare)
                        result = (functions.get(op.name) or self._resolve(op.name))(*args)
                        if type(result) is array and op.out and as_proved is None:
                            objects[op.out] = result
                        elif op.out:
                            self._keep(op, result)
            except Exception as error:  # whatever a user's op raises is the user's to see; it never ends the executor
                args, result = [], None  # see `_failed`
                if (answer := self._failed(batch.first + place - 1, op, error)) is not None:
                    return place, answer
                place -= 1  # read it again
            if perf_counter() > until:
                break
        return place, None

    def _failed(self, seq: int, op: Op, error: Exception) -> Answer | None:
        """Return the answer of an op that failed; None for one that has not run and may be read again."""
        if isinstance(error, MissingHandle):
            return self._fail(seq, op, self._blame(error.handle))
        if isinstance(error, OutOfOrder):
            error.__traceback__ = None  # what was read before lets go of the array
            try:
                self._lay_out(seq, error)
            except OutOfOrder as held:
                return self._fail(seq, op, self._record(ProtocolError(str(held))))
            except Exception as other:  # whatever it costs to lay an array out, or to understand how: as of any op
                return self._fail(seq, op, self._record(other), self._device.is_fatal(other))
            return None
        return self._fail(seq, op, self._record(error), self._device.is_fatal(error))

    def _lay_out(self, seq: int, error: OutOfOrder) -> None:
        if self._laid_out[0] != seq:
            self._laid_out = seq, set()
        if error.view.root in self._laid_out[1]:
            raise error
        self._laid_out[1].add(error.view.root)
        self._reader.lay_out(error.view)

    def _forward(self, op: Op, args: list[Any], ops: Sequence[Op], place: int) -> bool:
        """Run ``op`` so that the store at ``place`` is done with it; False, and nothing is run, if that cannot be."""
        window = self._forwards.target(op, ops, place, self._stream)
        if window is None:
            return False
        self.heap.drop(op.reuse)
        (self._functions.get(op.name) or self._resolve(op.name))(*args, window)
        for handle in ops[place].drop or ():
            self.heap.drop(handle)
        return True

    def _run_one(self, op: Op) -> Answer | None:
        """Run an op that wants an answer, has keywords, or is for another stream."""
        if op.stream != self._stream:
            self._switch_stream(op.stream)
        function = self._functions.get(op.name) or self._resolve(op.name)
        read = self._reader.read
        args = [read(arg) for arg in op.args]
        kwargs = {key: read(value) for key, value in op.kwargs.items()} if op.kwargs else {}
        if op.want is not NOTHING and op.name != ".same":  # the one that only reads, and often
            return self._run_aloud(op, function, args, kwargs)
        result = function(*args, **kwargs)
        if op.want is not NOTHING:
            return self._answer(op, args, kwargs, result)
        self._keep(op, result)
        return None

    def _run_aloud(self, op: Op, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Answer:
        """Run an op whose answer tells of warnings too: the notebook decides what becomes of each."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = function(*args, **kwargs)
        answer = self._answer(op, args, kwargs, result)
        if not caught:
            return answer
        told = [(self._device.error_name(one.message), str(one.message)) for one in caught if _is_warning(one.message)]
        return answer._replace(warnings=tuple(WarningRecord(kind, _as_utf8(text)) for kind, text in told))

    def cancel(self, batch: QueuedBatch) -> tuple[int, Answer | None]:
        """Pass over the next op of ``batch``, but drop what it drops. Returns as `run`."""
        op = batch.ops[batch.next]
        for handle in (*(op.drop or ()), op.reuse):
            self.heap.drop(handle)
        if op.out:
            self.heap.fail(op.out, Failure(batch.first + batch.next, CANCELLED))
        return batch.next + 1, None if op.want is NOTHING else Answer(error=CANCELLED)

    def clear(self) -> None:
        """Drop everything."""
        self._switch_stream(0)
        self.heap.clear()
        self._objects.handles.clear()
        self._device.free_unused()

    def _resolve(self, name: str) -> Any:
        function = self._objects.handles.held(name, self._names.resolve(name), bound=False)
        self._functions[name] = function
        return function

    def _keep(self, op: Op, result: Any) -> None:
        """Keep the result of ``op``, or each of several, if its name is wanted: laid out as the notebook proved.

        Raises TypeError, and keeps nothing, if one of them may not stay.
        """
        if not op.out:
            return
        if self._as_proved is not None:
            result = self._as_proved(op.orders, result)
        results = result if type(result) is tuple or type(result) is list else (result,)
        array = self._objects.array_type
        for item in results:
            if type(item) is not array:
                self._objects.require_storable(item)
        self.heap.objects.update(enumerate(results, op.out))

    def _answer(self, op: Op, args: list[Any], kwargs: dict[str, Any], result: Any) -> Answer:
        if op.want is Want.CONTENTS:
            buffers: list[np.ndarray[Any, Any]] = []
            value = self._writer.contents(result, buffers)
            return Answer(value, tuple(buffers))
        given = zip((*op.args, *(op.kwargs or {}).values()), (*args, *kwargs.values()), strict=True)
        known = {id(held): arg.handle for arg, held in given if type(arg) is Ref}
        return Answer(self._writer.describe(result, op.out, known, self._roots(op)))

    def _roots(self, op: Op) -> list[tuple[int, Any]]:
        objects = self.heap.objects
        handles: list[int] = []
        for arg in (*op.args, *(op.kwargs or {}).values()):
            if type(arg) is Ref:
                handles.append(arg.handle)
            elif type(arg) is View:
                handles.append(arg.root)
        return [(one, objects[one]) for one in handles if self._device.is_array(objects.get(one))]

    def _fail(self, seq: int, op: Op, error: ErrorRecord, fatal: bool = False) -> Answer:
        self.heap.drop(op.reuse)  # it may have failed before it came to that
        if op.out:
            caused_by = error.caused_by if error.caused_by >= 0 else seq
            self.heap.fail(op.out, Failure(caused_by, error))
        return Answer(error=error, fatal=fatal)

    def _record(self, error: BaseException) -> ErrorRecord:
        text = _words(_traceback, error)[-_MAX_TRACEBACK_CHARS:]
        args = tuple(arg if type(arg) in PLAIN and _fits(arg) else _words(repr, arg) for arg in error.args)
        ours = isinstance(error, WorkbenchError)
        name = f"gpu_backend.wire.errors.{type(error).__name__}" if ours else self._device.error_name(error)
        message = _words(str, error)
        # A message may quote what is no text; on the wire everything is UTF-8.
        note = memory_note(*self.memory_limit, message, self._device.memory()) if name == _OUT_OF_MEMORY else ""
        return ErrorRecord(name, _as_utf8(message), _as_utf8(text), args=tuple(map(_as_utf8, args)), note=note)

    def _blame(self, handle: int) -> ErrorRecord:
        failure = self.heap.why_missing(handle)
        if failure is None:
            return ErrorRecord("gpu_backend.wire.errors.SessionLost", _NOT_HERE)
        error = failure.error
        return ErrorRecord(error.kind, error.message, error.traceback, failure.seq, note=error.note)

    def _switch_stream(self, handle: int) -> None:
        if self._stream_context is not None:
            self._stream_context.__exit__(None, None, None)
            self._stream_context = None
        self._stream = 0
        stream = self.heap.objects.get(handle)
        if handle and stream is not None:
            entered = self._device.on_stream(self._objects.stream(stream))
            entered.__enter__()
            self._stream_context, self._stream = entered, handle


def _times(one: object, among: list[Any]) -> int:
    return sum([other is one for other in among])


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _words(tell: Callable[[Any], str], one: object) -> str:
    """Return what an error, or what it quotes, says of itself; a sentence if it cannot."""
    try:
        return tell(one)
    except Exception as error:  # an error's own methods, and those of what it quotes, may raise anything
        return f"An error that cannot be told: {type(error).__name__}."


def _is_warning(message: Warning | str) -> TypeGuard[Warning]:
    return isinstance(message, Warning)


def _fits(value: object) -> bool:
    return not isinstance(value, int) or -(1 << 63) <= value < 1 << 64


def _as_utf8(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
