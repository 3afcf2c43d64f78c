"""Ops replayed: what CuPy launched for one that came in the same way, given to the device again.

See `devices/replays.py`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from struct import Struct

from gpu_backend.devices.replays import Lying, Replay, Replays, Unrepeatable
from gpu_backend.devices.replays import Number as AnyNumber
from gpu_backend.executor.heap import MOST_SPARE_BYTES, Place, Places
from gpu_backend.executor.program.kernel_calls import CALL, GIVEN, is_parameter, types_handed_over
from gpu_backend.executor.program.operands import Number, Operands, write_number
from gpu_backend.executor.program.segment import Segment, kind_of
from gpu_backend.executor.program.steps import Step
from gpu_backend.executor.values import Reader
from gpu_backend.executor.verbs import STORE, STORE_WHERE
from gpu_backend.opstream.layout import DType, Layout
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import List, Ref, Tuple, Value, View

__all__ = ["Replayer"]

log = logging.getLogger("executor")

#: The most memory that an op may have for its results: a larger one keeps the device busy by itself.
_MOST_BYTES = 64 << 20
_ADDRESS = Struct("<Q").pack_into


class Replayer:
    """Captures ops, and replays them.

    Parameters
    ----------
    captures
        The replays of the device.
    segment
        Where copies are gathered with other ops; None where nothing is.
    """

    def __init__(
        self, captures: Replays, operands: Operands, places: Places, reader: Reader, segment: Segment | None
    ) -> None:
        self.captures, self._segment = captures, segment
        self._operands, self._places, self._reader = operands, places, reader
        #: How many ops were replayed, and why others are not: ways in which ops come, by what stood against them.
        self.replayed = 0
        self.refused: Counter[str] = Counter()
        #: Why the last capture failed.
        self.why = ""
        #: Whether the last op was not replayed for a number that may be rounded otherwise by CuPy.
        self.is_unfit = False

    def capture(
        self, op: Op, function: Callable[..., object], places: Sequence[Place | Number], numbers: Sequence[DType]
    ) -> Replay | None:
        """Return what ``op`` launches, which has run in this way before; None if that cannot be said.

        Parameters
        ----------
        numbers
            In which type each operand is handed over, if it is a number whose value does not matter.
        """
        lying = iter(enumerate(places))
        if op.name == CALL:
            given = [self._reader.read(op.args[0]), *self._launched(op.args[1:], lying, numbers)]
        else:
            given = [self._stand_in(arg, lying, numbers) for arg in op.args]
        kwargs = {key: self._reader.read(value) for key, value in (op.kwargs or {}).items()}
        try:
            replay = self.captures.capture(function, given, kwargs)
            if bool(replay.made) != bool(op.out):
                raise Unrepeatable("the result is an operand")
            if sum(size for size, _ in replay.blocks) > _MOST_BYTES:
                raise Unrepeatable("much memory")
            if not all(0 < one.layout.nbytes == one.layout.held_bytes for one in replay.made):
                raise Unrepeatable("a result with gaps, or of no elements")
        except Unrepeatable as why:
            self.why = str(why)
            self.refused[self.why] += 1
            log.debug("%s is not replayed: %s (%s)", op.name, why, why.__cause__)
            return None
        return replay

    def types(self, op: Op, takes: int, places: Sequence[Place | Number]) -> tuple[DType, ...] | None:
        """Return in which types an op with numbers among its operands reads all of them; None if CuPy cannot tell.

        Parameters
        ----------
        takes
            How many operands it takes element by element.
        """
        name = op.name
        if name == CALL:
            return types_handed_over(op, self._reader.read(op.args[0]), places)
        if name == STORE:
            into = places[0].layout
            return (into.dtype,) * len(places) if isinstance(into, Layout) else None
        if name == STORE_WHERE:  # here CuPy copies a number as it comes, and not in the array's type
            return None
        return self.captures.inputs(name, tuple(kind_of(place.layout) for place in places[:takes]))

    def _launched(
        self, args: Sequence[Value], lying: Iterator[tuple[int, Place | Number]], numbers: Sequence[DType]
    ) -> Iterator[object]:
        """Yield what stands for the arguments of a launch: its numbers are operands only where it is given them."""
        for at, arg in enumerate(args, 1):
            if at == GIVEN and numbers and isinstance(arg, Tuple):
                yield tuple([self._stand_in(one, lying, numbers if is_parameter(one) else ()) for one in arg.items])
            else:
                yield self._stand_in(arg, lying, numbers if is_parameter(arg) else ())

    def _stand_in(self, arg: Value, lying: Iterator[tuple[int, Place | Number]], numbers: Sequence[DType]) -> object:
        if isinstance(arg, List | Tuple):
            items = [self._stand_in(one, lying, numbers) for one in arg.items]
            return items if isinstance(arg, List) else tuple(items)
        if not isinstance(arg, Ref | View) and not numbers:
            return self._reader.read(arg)
        at, place = next(lying)
        if isinstance(place, Place):
            return Lying(at, place.layout)
        value = self._reader.read(arg)
        return AnyNumber(at, value.dtype if hasattr(value, "dtype") else type(value), numbers[at])

    def run(self, op: Op, replay: Replay, places: Sequence[Place | Number]) -> bool:
        """Launch what ``op`` launches; return whether that was possible."""
        self.is_unfit = False
        if not self._are_free(op, replay):
            return False
        if replay.alignment > 1 and any(place.address % replay.alignment for place in places):
            return False
        parameters = replay.parameters
        for at, which, dtype in replay.slots:
            place = places[which]
            if type(place) is not Number or not write_number(parameters, at, place.value, dtype):
                self.is_unfit = True
                return False
        blocks = self._blocks(replay)
        if blocks is None:
            return False
        addresses = [one.address for one in (*blocks, *places)]
        for at, source, displacement in replay.patches:
            _ADDRESS(parameters, at, addresses[source] + displacement)
        replay.launch()
        self.replayed += 1
        self._keep(op, replay, blocks)
        if self._places.spare_bytes > MOST_SPARE_BYTES:
            self._places.give_back()
        return True

    def gather(self, op: Op, replay: Replay, copies: Sequence[Step], places: Sequence[Place | Number]) -> bool:
        """Gather the ``copies``, which are all that ``op`` launches, with others; return whether that was possible."""
        assert self._segment is not None
        if not self._are_free(op, replay):
            return False
        blocks = self._blocks(replay)
        if blocks is None:
            return False
        if not self._segment.put_copies(copies, replay, [one.address for one in (*blocks, *places)]):
            for block in blocks:
                self._places.spare_again(block)
            return False
        self._keep(op, replay, blocks)
        return True

    def _are_free(self, op: Op, replay: Replay) -> bool:
        """Tell whether the results of ``op`` may get their handles."""
        for number in range(len(replay.made)):  # noqa: SIM110 - asked each time, and a generator takes longer
            if not self._operands.is_free(op.out + number):
                return False
        return True

    def _blocks(self, replay: Replay) -> list[Place] | None:
        """Return the memory that an op has for itself; None if there is none."""
        blocks: list[Place] = []
        for size, layout in replay.blocks:
            block = self._operands.new(layout, size)
            if block is None:
                for one in blocks:  # not let go of: what is gathered may still name it
                    self._places.spare_again(one)
                return None
            blocks.append(block)
        return blocks

    def _keep(self, op: Op, replay: Replay, blocks: Sequence[Place]) -> None:
        """Keep the blocks that are results; the others are for ops behind this one."""
        handles = {made.block: op.out + number for number, made in enumerate(replay.made)}
        for number, block in enumerate(blocks):
            if number in handles:
                self._places.add(handles[number], block)
            else:
                self._places.spare_again(block)
