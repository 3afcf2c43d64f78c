"""What is known of the device's memory, and how each op that is recorded changes that.

An op is looked at before it is recorded, and what it makes is known once it is: `note` and then `publish`. An
interrupt between the two leaves something unknown, and never something wrong. All of it under the recorder's lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import Any

import numpy as np

from gpu_backend.opstream.layout import Layout
from gpu_backend.wire import values as wire
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.values import Ref, View
from kernelproxy.mirror import elementwise, numbers, stores
from kernelproxy.mirror.casts import Array, Unknown, exactly
from kernelproxy.mirror.effects import Effect, effect_of, handles_in, is_quiet, may_put, only_reads
from kernelproxy.mirror.entries import Args, Awaited, Entry, Kwargs, Number, Promise
from kernelproxy.mirror.held import Held
from kernelproxy.mirror.memory import Memory, is_contiguous
from kernelproxy.mirror.operands import Operands
from kernelproxy.mirror.operations import CREATING, MAKERS
from kernelproxy.mirror.worth import Worth

#: Arrays of up to so many bytes may be known.
MOST_BYTES = 64 << 10
#: So many arrays whose reads took trips are remembered.
_MOST_MISSED = 64
#: Where none of so many arrays that were read was wanted again, others are not kept at their first read: it takes a
#: fifth of a trip. One of so many is all the same, so that it is noticed when that pays again; of pairs either one.
_IN_VAIN, _TRIED = 16, 31

#: What ends the value of an op: that it may differ, that it is no number, and all that NumPy says of operands.
_ENDS = (Unknown, ArithmeticError, ValueError, TypeError, LookupError)


class _Passing(dict[str, bool]):
    """Whether an op of a name, with a result and nothing computed, leaves what is known as it is."""

    def __missing__(self, name: str) -> bool:
        found = self[name] = is_quiet(name) and name not in CREATING
        return found


PASSING = _Passing()


class Mode(StrEnum):
    """Whether reads are answered by what is known."""

    ON = "on"
    OFF = "off"
    #: Reads take their trips all the same, and what is known is compared with what they bring.
    CHECK = "check"


class HostMirror(Held):
    """What a client knows of the arrays of one session.

    Attributes
    ----------
    mode
        Whether it answers.
    is_checked
        Whether what is known is compared with the device at each read.
    worth
        Whether it pays to compute.
    uncertain
        Number of the last op that may fail: until it is done, reads take their trips, so that they tell.
    """

    __slots__ = ("is_checked", "worth")

    def __init__(self, mode: Mode = Mode.ON) -> None:
        super().__init__(mode is not Mode.OFF)
        self.mode = mode
        self.is_checked = mode is Mode.CHECK
        self.worth = Worth()
        self.uncertain = 0
        self._unwanted = 0  # whole arrays that were read since one that was kept was wanted

    # --- what ops do --------------------------------------------------------------------------------------------------

    def note(
        self, name: str, args: Args, kwargs: Kwargs, results: int, out: int, made: Layout | None, number: int
    ) -> tuple[int, Entry] | None:
        """Look at op ``number`` before it is recorded; return what to `publish` when it is.

        ``made`` is the layout of its one result, which will be known as ``out``.
        """
        if not self.is_on:
            return None
        if not results and kwargs is None and (place := stores.TARGETS[name]) is not None:
            target = args[place]
            if self._is_unknown(target):
                return None
            if name in stores.FILLING and type(target) is View and (memory := self._put(target, args)) is not None:
                return target.root, memory
        if results and is_quiet(name) and (kwargs is None or not may_put(kwargs)):
            return self._made(name, args, kwargs, out, made) if made is not None and results == 1 else None
        effect = effect_of(name)
        if effect is Effect.READS or effect is Effect.WRITES:
            return self._written(name, args, kwargs) if self.known else None
        if effect is Effect.KEEPS:
            self.bar(args, kwargs)
            self.barred.update(range(out, out + results))
        else:
            self._forget_all(args, kwargs)
        if name != ".window":
            self.uncertain = number
        return None

    def _is_unknown(self, value: wire.Value) -> bool:
        """Tell whether ``value`` names an array, or a window of one, of which nothing is known."""
        kind = type(value)
        if kind is View:
            return value.root not in self.known  # type: ignore[union-attr]
        return kind is Ref and value.handle not in self.known  # type: ignore[union-attr]

    def _has_unknown(self, value: wire.Value) -> bool:
        """Tell whether ``value`` names an array of which nothing is known, or holds one that does."""
        if type(value) is wire.List or type(value) is wire.Tuple:
            return any(map(self._has_unknown, value.items))
        return self._is_unknown(value)

    def note_write(self, target: wire.Value, data: Frame) -> tuple[int, Entry] | None:
        """Look at an upload into ``target`` before it is recorded, as `note`."""
        if not isinstance(target, (Ref, View)):
            return None
        handle = target.handle if type(target) is Ref else target.root  # type: ignore[union-attr]
        entry = self.known.get(handle)
        self.forget(handle)
        is_whole = entry is not None and type(target) is Ref and len(data) == entry.layout.nbytes
        return (handle, Promise(entry.layout, bytes(data))) if entry is not None and is_whole else None

    def note_asked(self, name: str, args: Args, kwargs: Kwargs) -> None:
        """Look at an op that somebody waits for."""
        effect = effect_of(name)
        if effect is Effect.KEEPS:
            self.bar(args, kwargs)
            if name == ".method" and len(args) > 1 and args[1] == "begin_capture":  # ops may run again, or later
                self.end()
        elif not only_reads(name, args, kwargs):
            self._forget_all(args, kwargs)

    def keep(self, handle: int, layout: Layout, data: Frame) -> None:
        """Know the new array ``handle`` by the bytes that were uploaded."""
        if self.is_on and layout.nbytes <= MOST_BYTES and is_contiguous(layout):
            self.publish(handle, Promise(layout, bytes(data)))

    def end(self) -> None:
        """Know nothing, from now on."""
        self.is_on, self.worth.budget = False, 0
        self.clear()

    @contextmanager
    def suspended(self, recording: AbstractContextManager[Any]) -> Iterator[None]:
        """Return a context in which nothing is known, and behind which nothing is known of what was before it."""
        with recording:
            was_on, self.is_on = self.is_on, False
            self.clear()
        try:
            yield
        finally:
            with recording:
                self.clear()
                self.is_on = was_on

    def _forget_all(self, args: Args, kwargs: Kwargs) -> None:
        if self.known:
            for handle in handles_in((args, kwargs)):
                self.forget(handle)

    # --- computing ----------------------------------------------------------------------------------------------------

    def get(self, handle: int) -> Memory | None:
        """Return the memory of ``handle``, if it is known."""
        entry = self.known.get(handle)
        if type(entry) is Number:
            self.known[handle] = entry = entry.as_memory()
        elif type(entry) is Promise:
            if entry.is_told:
                self._unwanted = 0
            try:
                with exactly():
                    self.known[handle] = entry = self._kept(entry)
            except _ENDS:
                self.forget(handle)
                return None
        return entry if type(entry) is Memory else None

    def _kept(self, promise: Promise) -> Memory:
        if promise.data is not None:
            return Memory(promise.layout, promise.data).look_for_nan()
        given = Operands(self, promise.args, promise.kwargs)
        return Memory.of(promise.layout, MAKERS[promise.name](given, promise.layout)).look_for_nan()

    def _made(self, name: str, args: Args, kwargs: Kwargs, out: int, made: Layout) -> tuple[int, Entry] | None:
        if made.nbytes > MOST_BYTES or not is_contiguous(made):
            return None
        if name in CREATING:
            return out, Promise(made, None, name, args, kwargs)
        if not self.worth.budget or not self.known:
            return None
        if not made.shape and kwargs is None and name in numbers.NAMES and len(args) == 2:
            number = numbers.computed(self.known, name, args, made)
            if number is not None:
                self.worth.spend(made.nbytes)
                return out, number
        if any(map(self._has_unknown, args)):  # nothing is tried, and nothing spent
            return None
        given = Operands(self, args, kwargs)
        try:
            memory = Memory.of(made, self._values(name, given, made))
        except _ENDS:
            self.worth.spend(0)
            return None
        self.worth.spend(made.nbytes)
        memory.may_be_nan = given.may_be_nan and made.dtype.kind in "fc"
        memory.is_computed = True
        return out, memory

    def _values(self, name: str, given: Operands, made: Layout) -> Array:
        maker = MAKERS.get(name)
        if maker is not None:
            with exactly():
                return maker(given, made)
        if elementwise.exact(name) is None or given.kwargs:
            raise Unknown
        operands = tuple([given.known_value(one) for one in given.args])
        return elementwise.compute(name, operands, given.may_be_nan)

    def _put(self, target: View, args: Args) -> Memory | None:
        """Put a number into the one element ``target``, and return the memory; None where that is not plain."""
        memory = self.known[target.root]
        if type(memory) is not Memory or not self.worth.budget or (place := memory.place(target)) < 0:
            return None
        if len(args) > 2 and type(args[1]) is not wire.Ellipsis:
            return None
        number = numbers.fitting(self.known, memory, args[-1])
        if number is None:
            return None
        self.worth.spend(memory.layout.nbytes)
        self._take(target.root)
        memory.put(place, number)
        return memory

    def _written(self, name: str, args: Args, kwargs: Kwargs) -> tuple[int, Entry] | None:
        place = stores.TARGETS[name]
        target = args[place] if place is not None and kwargs is None else None
        if type(target) is not Ref and type(target) is not View:
            self._forget_all(args, kwargs)
            return None
        handle = target.handle if type(target) is Ref else target.root  # type: ignore[union-attr]
        if handle not in self.known:
            return None
        memory = self.get(handle) if self.worth.budget else None
        if memory is not None:
            self.worth.spend(memory.layout.nbytes)
            try:
                self._write(name, Operands(self, args, kwargs), target, handle, memory)
                return handle, memory
            except _ENDS:
                pass
        self.forget(handle)
        return None

    def _write(self, name: str, given: Operands, target: wire.Value, handle: int, memory: Memory) -> None:
        values = stores.stored(name, given, given.known_array(target))
        memory.write(target, values, lambda: self._take(handle))
        memory.may_be_nan |= given.may_be_nan

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, reference: Ref | View, layout: Layout) -> Array | None:
        """Return a copy, in C's order, of what an array of ``layout`` shows; None if it is not known."""
        handle = reference.handle if type(reference) is Ref else reference.root  # type: ignore[union-attr]
        memory = self.get(handle)
        if memory is None:
            return None
        try:
            shown: Array | None = memory.part(reference)
        except _ENDS:
            shown = None
        if shown is None or shown.dtype != layout.dtype or shown.shape != layout.shape:
            self.forget(handle)
            return None
        self._noted(memory)
        return np.array(shown, order="C")

    def _noted(self, memory: Memory) -> Memory:
        """Note that ``memory`` answers a read."""
        memory.is_read = True
        if memory.is_computed:
            self.worth.note_saved()
        return memory

    def number(self, reference: Ref | View, layout: Layout) -> Any:
        """Return the number that an array of ``layout``, which has no axes, shows; None if it is not known."""
        if type(reference) is View:
            memory = self.known.get(reference.root)
            if type(memory) is Memory and layout.dtype_text == reference.dtype:
                place = memory.place(reference)
                if place >= 0:
                    return self._noted(memory).cells.item(place)
        else:
            entry = self.known.get(reference.handle)  # type: ignore[union-attr]
            if type(entry) is Number and entry.layout is layout:
                self.worth.note_saved()
                return entry.value
            if type(entry) is Memory and entry.layout is layout:
                return self._noted(entry).array.item()
        shown = self.read(reference, layout)
        return None if shown is None else shown.item()

    @staticmethod
    def shown(reference: Ref | View, layout: Layout, content: Array) -> Array | None:
        """Return a copy of what ``reference`` shows of an array of ``layout`` and ``content``; None if nothing."""
        try:
            memory = Memory.of(layout, content)
            return np.array(memory.window(reference), order="C") if type(reference) is View else content
        except _ENDS:
            return None

    def should_fetch(self, handle: int, layout: Layout, is_whole: bool) -> bool:
        """Tell whether to read and keep all of ``handle``, where a part of it, or with ``is_whole`` all, is wanted.

        A part is read by itself the first time; and so is all, where most is read but once.
        """
        if not self.is_on or layout.nbytes > MOST_BYTES:
            return False
        self.worth.note_trip()
        if handle in self.barred or not is_contiguous(layout):
            return False
        if handle in self._missed:
            return True
        if is_whole:
            self._unwanted += 1
            if self._unwanted <= _IN_VAIN or self._unwanted % _TRIED == 0:
                return True
        while len(self._missed) >= _MOST_MISSED:
            self._missed.pop(next(iter(self._missed)))
        self._missed[handle] = None
        return False

    def await_(self, handle: int, layout: Layout) -> Awaited:
        """Note that all of ``handle`` is about to be read."""
        self._take(handle)
        awaited = Awaited(layout)
        self.publish(handle, awaited)
        return awaited

    def note_fetched(self, handle: int, awaited: Awaited, content: Array, was_asked: bool) -> None:
        """Know ``handle`` by its ``content``, unless somebody has written it meanwhile.

        ``was_asked`` tells whether it was all that was wanted.
        """
        layout = awaited.layout
        is_such = content.shape == layout.shape and content.dtype == layout.dtype
        data = content.tobytes("C" if layout.c_contiguous else "F") if is_such else b""
        if was_asked or not is_such:
            self.note_told(handle, awaited, data)
        elif self.known.get(handle) is awaited:
            self._take(handle)
            memory = Memory(layout, data).look_for_nan()
            memory.is_fetched = True
            self.publish(handle, memory)

    def note_told(self, handle: int, awaited: Awaited, data: bytes) -> None:
        """Know ``handle`` by its bytes, unless somebody has written it meanwhile.

        Most such arrays are read once: what it takes to compute with them is done when that is wanted.
        """
        if self.known.get(handle) is not awaited:
            return
        self._take(handle)
        if len(data) == awaited.layout.nbytes:
            self.publish(handle, Promise(awaited.layout, data, is_told=True))
