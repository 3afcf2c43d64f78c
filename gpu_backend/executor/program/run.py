"""The op stream: runs ops in order and keeps their results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from math import inf
from time import perf_counter
from typing import Any, Final

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.executor.answer import Answer
from gpu_backend.executor.channels import Awaits, Channels
from gpu_backend.executor.config import PASSES
from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.executor.described_objects import DescribedObjects
from gpu_backend.executor.heap import Heap
from gpu_backend.executor.laying_out import LayingOut
from gpu_backend.executor.program.direct import Direct, make_direct
from gpu_backend.executor.program.effects import Accounts, handles_in
from gpu_backend.executor.program.failures import CANCELLED, Failures, as_utf8
from gpu_backend.executor.program.passes import make_passes
from gpu_backend.executor.program.peer_order import PeerOrder
from gpu_backend.executor.program.plan import KEEPS, Plan
from gpu_backend.executor.program.recurring import raise_failure
from gpu_backend.executor.program.window import Window
from gpu_backend.executor.surface_names import COMPUTING_SETTINGS, SurfaceNames, is_of_plans
from gpu_backend.executor.values import OutOfOrder, Reader, Writer
from gpu_backend.executor.verbs import SAME, STORE, SYNCHRONIZE, Verbs
from gpu_backend.opstream.contents import KeptContents
from gpu_backend.opstream.devices import default_stream, device_of
from gpu_backend.wire.errors import ProtocolError, WarningRecord
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref, View

__all__ = ["OpStream"]

NOTHING: Final = Want.NOTHING
_CONTENTS: Final = Want.CONTENTS
_NO_BOUND: Final = 1 << 30
_WAITS: Final = frozenset((SAME, SYNCHRONIZE))  #: is asked often, and warns of nothing


class OpStream:
    """Runs one session's ops, each on the device of its stream.

    Parameters
    ----------
    passes
        The names of the optimisations to use, of `PASSES`. With several devices there are none: they know memory by
        its address or its layout, and not on which device it is.
    kept_bytes
        Most bytes of uploads that are kept, so that they need not be sent again.
    channels
        To the executors of the notebook's other devices; None for none.
    """

    def __init__(self, device: Device, passes: Collection[str] = PASSES, kept_bytes: int = 0,
                 channels: Channels | None = None) -> None:  # fmt: skip
        self._device = device
        passes = passes if device.count == 1 else ()
        self.heap = Heap()
        self._direct: Direct | None = None  # carries out ops past CuPy, where the device can do that
        self._objects = DescribedObjects(device)
        self._names = SurfaceNames(device)
        self._contents = KeptContents(kept_bytes)
        verbs = Verbs(device, self._resolve, self._objects, self.ways, self._contents, channels)
        self._plan = Plan(verbs.table, self._resolve)
        self._functions = self._plan.functions
        self._reader = Reader(self.heap, device, self._resolve, self._objects)
        self._writer = Writer(self.heap, device, self._objects)
        self._accounts = Accounts(device, self.heap, self._plan)
        self._failures = Failures(device, self.heap, verbs.copying.give_up)
        self._peers = PeerOrder(device) if device.count > 1 else None  #: calls functions where there are several
        self._passes = make_passes(passes, self.heap, self._reader, self._plan)
        #: Those that look at no other op, and are asked where none behind gives reason.
        self._passes_of_op = tuple(one for one in self._passes if not one.fulfils)
        self._direct = make_direct(device, passes, self.heap, self._reader, self._plan, self._accounts)
        #: Lays a proved result out as was proved; None on a device whose results lie so by themselves.
        self._as_proved = None if device.lays_out_as_cupy else LayingOut(device, self._resolve).results
        self._stream = 0
        self._stream_context: AbstractContextManager[object] | None = None
        #: The op whose views' roots were laid out anew, and those roots: once each, or two views could take turns.
        self._laid_out: tuple[int, set[int]] = (0, set())

    def turn_to(self, device: int) -> None:
        """Have ``device`` be the current one until an op is for another."""
        if device_of(self._stream) != device:
            self._switch_stream(default_stream(device))

    def limit_memory(self, limit_bytes: int, rule: str) -> None:
        """Note the session's memory limit, and whose limit that is, for what is told when an allocation fails."""
        self._failures.memory_limit = (limit_bytes, rule)

    def run(self, batch: QueuedBatch, until: float, most: int = _NO_BOUND) -> tuple[int, Answer | None]:
        """Run ops of ``batch``: until one has an answer, ``most`` have run, or ``perf_counter()`` passes ``until``.

        Returns the place behind the last op that ran, and its answer if it has one. At least one op runs, unless it
        lacks something. A pass may fulfil the first ops of what follows, too: then the place lies beyond the end,
        counted on into those batches. This is the hot path: what happens for every op happens here, inline.
        """
        heap, direct, ops, place = self.heap, self._direct, batch.ops, batch.next
        objects, views, alone, places = heap.objects, heap.views, heap.ownership.alone, heap.places.known
        end = min(len(ops), place + most)
        self._reader.with_frames(batch.frames)
        recurring, begun = direct.recurring if direct is not None else None, place
        while True:
            if recurring is not None and not self._stream:
                place = recurring.run(ops, place, end, until)
                if place > begun and (place >= end or perf_counter() > until):
                    return place, self._launch(batch.first + place - 1, ops[place - 1])
            op, before = ops[place], (place := place + 1)
            for handle in op.drop or ():
                if handle in places and heap.places.forget(handle):
                    continue
                if handle in alone and not views:  # as `Heap.drop` does, without the call: so go nearly all
                    del alone[handle], objects[handle]
                else:
                    heap.drop(handle)
            try:
                if recurring is not None:
                    raise_failure(recurring)
                if direct is not None and op.want is NOTHING and op.stream == self._stream and direct.take(op):
                    pass
                elif op.want is not NOTHING or op.kwargs is not None or op.stream != self._stream:
                    if (answer := self._run_one(op)) is not None:
                        return place, answer
                else:
                    place = self._run_plain(op, batch, place, end)
            except Awaits as lacking:
                batch.awaits = lacking.has_come
                return before - 1, None
            except Exception as error:  # whatever a user's op raises is the user's to see; it never ends the executor
                is_tried_again = direct is not None and direct.relent(op, error)
                if not is_tried_again and (answer := self._failed(batch.first + before - 1, op, error)) is not None:
                    return before, answer
                place = before - 1  # read it again
            if place >= end or perf_counter() > until:
                return place, self._launch(batch.first + place - 1, op)

    def rehearse(self, batch: QueuedBatch) -> tuple[int, Answer | None]:
        """Run the one op of ``batch``, a read that nobody asked for, as `run` does; it is not counted."""
        if self._direct is None:
            return self.run(batch, inf)
        self._direct.tally.counts = False
        try:
            return self.run(batch, inf)
        finally:
            self._direct.tally.counts = True

    def _run_plain(self, op: Op, batch: QueuedBatch, place: int, end: int) -> int:
        """Run an op that wants no answer; return the place behind it, or behind those that a pass fulfilled as well."""
        if self._direct is not None:
            self._direct.settle(op)
        objects, ops, name, out, before = self.heap.objects, batch.ops, op.name, op.out, place
        read = self._reader.read
        args: list[Any] = []
        for a in op.args:  # a comprehension is a call of its own before Python 3.12
            args.append(objects[a.handle] if type(a) is Ref and a.handle in objects else read(a))
        if name not in self._plan.new_memory:
            self._plan.learn(name)
        goes_on = batch.following is not None and end == len(ops)
        if op.reuse or (out and (ops[place].name == STORE if place < end else goes_on)):
            place += self._optimise(op, args, batch, place)
        function = self._functions[name]
        try:
            result = function(*args) if self._peers is None else self._peers.call(op, function, args, {})
        except MemoryError:  # it may run again: then it finds all that it is given
            if op.reuse and place == before and len(args) > len(op.args):
                self.heap.put(op.reuse, args[-1])
                self.heap.ownership.own(op.reuse)
            raise
        if op.reuse and (place > before or len(args) == len(op.args)):
            self.heap.drop(op.reuse)  # nobody took it
        if place > before:
            self._pass_over(batch, before, place)
            return place
        is_new = type(result) is self._objects.array_type and len(op.args) in self._plan.new_memory[name]
        if is_new and out and out not in objects and out not in self.heap.places.known:
            objects[out] = result if self._as_proved is None else self._as_proved(op.orders, result)
            self.heap.ownership.alone[out] = None
        elif out or self._plan.new_memory[name] is KEEPS:
            self._keep(op, result)
        return place

    def _launch(self, seq: int, op: Op) -> Answer | None:
        """Launch what was gathered up to ``op``; return the answer if the device is lost."""
        if self._direct is not None:
            try:
                self._direct.launch()
            except Exception as error:  # as of any op
                return self._failed(seq, op, error)
        return None

    def _optimise(self, op: Op, args: list[Any], batch: QueuedBatch, place: int) -> int:
        """Append to ``args`` what a pass finds for ``op`` to compute into; return how many ops behind that fulfils."""
        ops = batch.ops
        for one in self._passes_of_op if place < len(ops) and ops[place].name != STORE else self._passes:
            if (found := one.output(op, batch, place)) is not None:
                args.append(found)
                return one.fulfils
        if op.reuse not in tuple(handles_in(op.args)):  # else behind the op
            self.heap.drop(op.reuse)
        return 0

    def _pass_over(self, batch: QueuedBatch, place: int, end: int) -> None:
        """Do what is left of ops that are fulfilled, from ``place`` to ``end``: they let go of what they drop."""
        window = Window(batch)
        for one in range(place, end):
            op = window.op(one)
            for handle in (op.drop if op is not None else None) or ():
                self.heap.drop(handle)

    def _failed(self, seq: int, op: Op, error: Exception) -> Answer | None:
        """Return the answer of an op that failed; None for one that has not run and may be read again."""
        if self._direct is not None:
            self._direct.settle(op)
        if isinstance(error, OutOfOrder):
            try:
                self._lay_out(seq, error)
            except OutOfOrder as held:
                error = ProtocolError(str(held))
            except Exception as other:  # whatever it costs to lay an array out, or to understand how: as of any op
                error = other
            else:
                return None
        self._accounts.lend(op)
        return self._failures.of(seq, op, error)

    def _lay_out(self, seq: int, error: OutOfOrder) -> None:
        if self._laid_out[0] != seq:
            self._laid_out = seq, set()
        if error.view.root in self._laid_out[1]:
            raise error
        self._laid_out[1].add(error.view.root)
        self._reader.lay_out(error.view)

    def _run_one(self, op: Op) -> Answer | None:
        """Run an op that wants an answer, has keywords, or is for another stream."""
        if self._direct is not None:
            if op.want is not NOTHING and op.stream == self._stream == 0 and (answer := self._direct.answer(op)):
                return answer
            self._direct.settle(op)
        if op.stream != self._stream:
            self._switch_stream(op.stream)
        if op.name not in self._plan.new_memory:
            self._plan.learn(op.name)
        function = self._functions[op.name]
        read = self._reader.read
        args = [read(arg) for arg in op.args]
        kwargs = {key: read(value) for key, value in op.kwargs.items()} if op.kwargs else {}
        if op.want is not NOTHING and op.name not in _WAITS:
            return self._run_aloud(op, function, args, kwargs)
        result = self._call(op, function, args, kwargs)
        if op.want is not NOTHING:
            return self._answer(op, args, kwargs, result)
        self._keep(op, result)
        return None

    def _run_aloud(self, op: Op, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Answer:
        """Run an op whose answer tells of warnings too: the notebook decides what becomes of each."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = self._call(op, function, args, kwargs)
        answer = self._answer(op, args, kwargs, result)
        if not caught:
            return answer
        said = [one.message for one in caught if isinstance(one.message, Warning)]
        told = [(self._device.error_name(one), str(one)) for one in said]
        return answer._replace(warnings=tuple(WarningRecord(kind, as_utf8(text)) for kind, text in told))

    def _call(self, op: Op, function: Callable[..., Any], args: list[object], kwargs: dict[str, object]) -> Any:
        if self._peers is None:
            return function(*args, **kwargs)
        return self._peers.call(op, function, args, kwargs)

    def cancel(self, batch: QueuedBatch) -> tuple[int, Answer | None]:
        """Pass over the next op of ``batch``, but drop what it drops. Returns as `run`."""
        op, batch.awaits = batch.ops[batch.next], None
        if self._direct is not None:
            self._direct.settle(op)
        self._failures.cancel(batch.first + batch.next, op)
        return batch.next + 1, None if op.want is NOTHING else Answer(error=CANCELLED)

    def ways(self) -> tuple[tuple[str, str, int], ...]:
        """Return how ops were carried out so far; nothing on a device where all go its library's way."""
        return self._direct.ways() if self._direct is not None else ()

    def let_go(self) -> None:
        """Let go of the memory of the message whose ops ran last: the notebook fills it again."""
        self._reader.with_frames(())

    @property
    def has_lesson(self) -> bool:
        """Whether there is anything to learn of ops that may come again."""
        return self._direct is not None and self._direct.has_lesson

    def learn(self) -> None:
        """Learn something of ops that came before, while nobody waits for one."""
        assert self._direct is not None
        self._direct.learn()

    def clear(self) -> None:
        """Drop everything."""
        self._switch_stream(0)
        self.heap.clear()
        self._contents.clear()
        self._objects.handles.clear()
        self._device.free_unused()

    def _resolve(self, name: str) -> Any:
        found = self._objects.handles.held(name, self._names.resolve(name), bound=False)
        if self._direct is None:
            return found
        if is_of_plans(name):
            self._direct.leave_transforms()
        return self._direct.forgetting(found) if name in COMPUTING_SETTINGS else found

    def _keep(self, op: Op, result: Any) -> None:
        """Keep the result of ``op``, or each of several, if its name is wanted: laid out as the notebook proved.

        Raises TypeError, and keeps nothing, if one of them may not stay.
        """
        if not op.out:
            self._accounts.lend(op)
            return
        if self._as_proved is not None:
            result = self._as_proved(op.orders, result)
        array = self._objects.array_type
        if type(result) is array and len(op.args) in self._plan.new_memory[op.name] and op.kwargs is None:
            self.heap.put(op.out, result)
            self.heap.ownership.own(op.out)
            return
        results = result if type(result) is tuple or type(result) is list else (result,)
        for item in results:
            if type(item) is not array:
                self._objects.require_storable(item)
        for handle, item in enumerate(results, op.out):
            self.heap.put(handle, item, self._objects.kind(item))
        self._accounts.settle(op, range(op.out, op.out + len(results)))

    def _answer(self, op: Op, args: list[Any], kwargs: dict[str, Any], result: Any) -> Answer:
        if op.want is _CONTENTS:
            buffers: list[np.ndarray[Any, Any]] = []
            value = self._writer.contents(result, buffers)
            self._accounts.lend(op)
            goes_on = self._device.count > 1 or self._device.is_spread  # on others, for which a read does not wait
            has_waited = op.name == SYNCHRONIZE or (type(result) is self._objects.array_type and not goes_on)
            return Answer(value, tuple(buffers), is_synchronized=has_waited)
        given = zip((*op.args, *(op.kwargs or {}).values()), (*args, *kwargs.values()), strict=True)
        known = {id(held): arg.handle for arg, held in given if type(arg) is Ref}
        before = frozenset(known.values())
        value = self._writer.describe(result, op.out, known, self._roots(op))
        self._accounts.settle(op, [handle for handle in known.values() if handle not in before])
        return Answer(value)

    def _roots(self, op: Op) -> list[tuple[int, Any]]:
        objects = self.heap.objects
        handles: list[int] = []
        for arg in (*op.args, *(op.kwargs or {}).values()):
            if type(arg) is Ref:
                handles.append(arg.handle)
            elif type(arg) is View:
                handles.append(arg.root)
        return [(one, objects[one]) for one in handles if self._device.is_array(objects.get(one))]

    def _switch_stream(self, handle: int) -> None:
        if self._direct is not None:
            self._direct.await_launches()
        if handle and self._device.blocks is not None:
            self._device.blocks.await_writes()
        if self._stream_context is not None:
            self._stream_context.__exit__(None, None, None)
            self._stream_context = None
        before, device = device_of(self._stream), device_of(handle)
        self._stream = default_stream(before)
        if device != before:
            self._device.use(device)
            self._stream = default_stream(device)
        stream = self.heap.objects.get(handle)
        if handle and stream is not None:
            entered = self._device.on_stream(self._objects.stream(stream))
            entered.__enter__()
            self._stream_context, self._stream = entered, handle
