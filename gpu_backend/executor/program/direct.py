"""Ops that go past CuPy: gathered for one launch with others, or replayed. What neither can be goes CuPy's way.

Both know an op by the way in which it comes: its name, how its operands lie, and its other arguments. All of that is
looked up at once, and only addresses and numbers are new each time.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

from gpu_backend.devices.base import Device
from gpu_backend.devices.replays import Replay
from gpu_backend.executor.answer import Answer
from gpu_backend.executor.heap import Heap, Place
from gpu_backend.executor.program.course import Course, Lesson
from gpu_backend.executor.program.effects import Accounts, handles_in
from gpu_backend.executor.program.joining import Joins
from gpu_backend.executor.program.kernel_calls import CALL, KernelCalls
from gpu_backend.executor.program.operands import Number, Operands, encoded, fills_otherwise, is_fill, is_whole, number
from gpu_backend.executor.program.plan import Plan
from gpu_backend.executor.program.products import Multiplications, make_multiplications
from gpu_backend.executor.program.recurring import Learning, Recurring, make_recurring
from gpu_backend.executor.program.reductions import Reductions
from gpu_backend.executor.program.replay import Replayer
from gpu_backend.executor.program.segment import STORES, Segment
from gpu_backend.executor.program.spare_memory import SpareMemory
from gpu_backend.executor.program.takes import RECAST, Takes
from gpu_backend.executor.program.tally import Tally
from gpu_backend.executor.values import Reader
from gpu_backend.executor.verbs import LAYOUT, SAME, SET_ATTRIBUTE, STORE, SYNCHRONIZE, WRITE
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref, View

__all__ = ["Direct", "make_direct"]

log = logging.getLogger("executor")

#: Ways in which ops come that are remembered.
_MOST_COURSES = 1 << 15
#: So often an op has to come in one way before it is captured, which takes as long as it saves in about so many more.
_WANTED = 8
#: And one that is summed by a library meanwhile, which is nearly as fast: slices that grow come in one way each.
_WANTED_OF_SUMS = 64
#: So often it has to come before it is captured while nobody waits; and how many ways wait for that at most.
_NOTED, _MOST_LESSONS = 2, 1024
#: What puts a number or an array into a window, if the index is the one for all of it: as `STORE` does.
_SET = "cupy.ndarray.__setitem__"
#: What is answered without CuPy, and says nothing to warn of.
_LOOKS = frozenset((LAYOUT, SAME, SYNCHRONIZE))
_DONE, _CONTENTS = Answer(is_synchronized=True), Want.CONTENTS


class Direct:
    """Carries out ops past CuPy, where that gives the same."""

    def __init__(
        self, device: Device, operands: Operands, heap: Heap, plan: Plan, accounts: Accounts,
        segment: Segment | None, replayer: Replayer | None, products: Multiplications | None,
        reductions: Reductions | None,
    ) -> None:  # fmt: skip
        self._operands, self._heap, self._plan = operands, heap, plan
        self._places, self._known = heap.places, heap.places.known
        self._spare = SpareMemory(heap.places, accounts)
        self.segment, self.replayer, self.products, self.reductions = segment, replayer, products, reductions
        self._calls = KernelCalls(heap, operands)
        self._lays_out_as_cupy, self._launcher = device.lays_out_as_cupy, device.launcher
        self._takes = Takes(plan, any(one is not None for one in (replayer, products, reductions)))
        self._courses: dict[tuple[Any, ...], Course] = {}
        self._lessons: deque[Lesson] = deque(maxlen=_MOST_LESSONS)
        self.tally = Tally()
        #: Carries out what comes again; None where that is not compiled.
        self.recurring: Recurring | None = None
        if segment is not None:
            by_bits = self._calls.by_bits
            self.recurring = make_recurring(heap, operands, self._takes, segment, by_bits, device.launcher)
        self._learning = Learning(self.recurring, heap, segment) if self.recurring is not None else None
        self._joins = Joins(operands, heap.places, segment) if segment is not None else None

    def take(self, op: Op) -> bool:
        """Carry out ``op``, which wants no answer and is for the default stream, if that can be; return whether it was.

        This is the hot path of small ops.
        """
        name = op.name
        takes = self._takes[name]
        if name == _SET and is_fill(op):
            return self.take(Op(STORE, 0, (op.args[0], op.args[2])))
        if takes is None or op.stream or (op.orders is not None and not self._lays_out_as_cupy):
            self.tally.why = "such ops always do"
            return not op.stream and self._take_verb(op)
        self.tally.why = "an argument is no plain array, number or word"
        places: list[Any] = []
        way: list[Any] = [name]
        arg: Any
        for arg in op.args:
            kind = type(arg)
            if kind is Ref:
                place: Any = self._known.get(arg.handle) or self._operands.find(arg.handle)
            elif kind is View:
                place = self._operands.window(arg)
            elif takes:
                place = number(arg)
            elif self._operands.add_other(arg, places, way):
                continue
            else:
                return False
            if place is None:
                return False
            places.append(place)
            way.append(place.layout)
        if op.kwargs is not None:
            if takes or not all(map(is_whole, op.kwargs.values())):
                return False
            way.append(encoded(op.kwargs))
        course = self._courses.get(key := tuple(way)) or self._learn(op, key, takes, places)
        return self._carry_through(op, course, places)

    def _take_verb(self, op: Op) -> bool:
        """Write bytes, multiply a sparse matrix, or launch a kernel of the user's again, if that can be."""
        if op.name == WRITE:
            self.launch()
            return not op.out and op.kwargs is None and self._operands.write(op.args)
        is_product = self.products is not None and self.products.take_method(op)
        return is_product or (op.name == CALL and self.replayer is not None and self._take_call(op))

    def _take_call(self, op: Op) -> bool:
        """Launch a kernel of the user's again, if that can be; return whether it was."""
        self.tally.why = "an argument is no plain array, number or word"
        places: list[Any] = []
        if (way := self._calls.way(op, places)) is None:
            return False
        if (course := self._courses.get(way)) is None:
            self._calls.note_new(way)
            course = self._remember(way, Course(None, None, 0, False, is_kernel=True))
        return self._carry_through(op, course, places)

    def answer(self, op: Op) -> Answer | None:
        """Answer an op that only waits or looks, beside which memory may stay spare; None where that takes CuPy."""
        name, args = op.name, op.args
        if op.kwargs or name not in _LOOKS or (name != LAYOUT and op.want is not _CONTENTS):
            return None
        self.launch()
        if name == SYNCHRONIZE and not args:
            self._places.rest()
            self._plan.functions[SYNCHRONIZE]()
            return _DONE
        if name == SYNCHRONIZE or len(args) != 1:
            return None
        return self._operands.layout(args[0]) if name == LAYOUT else self._operands.read(args[0])

    def forgetting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function``, which changes what CuPy launches, so that what was captured ends with each call."""

        def changed(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            finally:
                self._forget()

        return changed

    def leave_transforms(self) -> None:
        """Have transforms go CuPy's way from now on: how they go is in the notebook's hands."""
        if self._takes.leave_transforms():
            self._forget()
            self.let_go_of_plans()

    def _forget(self) -> None:
        self._courses.clear()
        self._lessons.clear()
        if self.recurring is not None:
            self.recurring.forget()

    def let_go_of_plans(self) -> bool:
        """Let go of memory that captured transforms keep from being freed; tell whether there may be any."""
        return self.replayer is not None and self.replayer.captures.let_go()

    def ways(self) -> tuple[tuple[str, str, int], ...]:
        """Return how ops were carried out so far; see `Tally.told`."""
        past = {
            "gathered with others": self.segment.table.gathered if self.segment is not None else 0,
            "given to the library of products": self.products.done if self.products is not None else 0,
            "launched again": self.replayer.replayed if self.replayer is not None else 0,
            "given to the library of reductions": self.reductions.done if self.reductions is not None else 0,
        }
        if self.recurring is not None:
            past["given to the library of products"] += self.recurring.called
            past["launched again"] += self.recurring.launched
        return self.tally.told(past)

    @property
    def has_lesson(self) -> bool:
        """Whether there is anything to learn."""
        return bool(self._lessons)

    def learn(self) -> None:
        """Capture one of the ops that may come again: called while nobody waits, for it takes half a millisecond."""
        self.await_launches()
        op, course, places = self._lessons.popleft()
        if course.seen >= 0:
            try:
                self._capture(op, course, places)
            except Exception:  # whatever it is, the next op meets it too, and tells its notebook
                log.exception("%s could not be captured", op.name)

    def launch(self) -> None:
        """Have the device carry out what is gathered."""
        if self.segment is not None and self.segment.table.ops:
            self.segment.launch()
        if self._learning is not None and self._learning.review_at:
            self._learning.review()

    def await_launches(self) -> None:
        """Have all that was launched be with the driver, and what is launched next be so at once."""
        if self._launcher is not None:
            self._launcher.hold()

    def settle(self, op: Op) -> None:
        """Launch, and make the arrays that ``op`` is given, which goes CuPy's way."""
        self.tally.note(op.name)
        if op.name == SET_ATTRIBUTE and self._calls.kernel_of(op):  # such as how much memory it may share
            self._forget()
        self.await_launches()
        self.launch()
        if self._places.unmade:
            self._operands.make(handles_in((*op.args, *(op.kwargs or {}).values())))
        self._spare.settle(op)
        if self._places.kept:
            self._places.kept.clear()

    def relent(self, op: Op, error: Exception) -> bool:
        """Give back memory that is kept for results to come, if ``op`` failed for want of it; tell whether it did.

        Then it may be run again.
        """
        return isinstance(error, MemoryError) and op.out != 0 and self._spare.relent(op, self.let_go_of_plans())

    def _carry_through(self, op: Op, course: Course, places: list[Any]) -> bool:
        if not self._carry_out(op, course, places):
            return False
        if op.reuse:
            self._heap.drop(op.reuse)  # behind the op that may read it
        return True

    def _carry_out(self, op: Op, course: Course, places: list[Any]) -> bool:
        if self._differs(op, course, places):
            return False
        if course.product is not None:
            is_done = self._multiply(op, course, places)
        elif course.join is not None and course.join.run(op, places):
            return True
        elif self._gather(op, course, places):
            is_done = True
        else:
            return self._launch_again(op, course, places)
        if is_done and self._learning is not None:
            self._learning.note(op, course, places)
        return is_done

    def _differs(self, op: Op, course: Course, places: Sequence[Any]) -> bool:
        """Tell whether CuPy does something else for an op because of its numbers, or of where its operands lie."""
        is_filled = op.name == STORE and type(places[-1]) is Number
        if is_filled and fills_otherwise(places[-1].value, places[0].layout.dtype):
            self.tally.why = "a zero with a sign, or a number of another type, fills an array"
            return True
        if not op.out and not course.is_apart(places):
            self.tally.why = "operands overlap"
            return True
        return False

    def _multiply(self, op: Op, course: Course, places: Sequence[Any]) -> bool:
        assert self.products is not None
        assert course.product is not None
        if self.products.run(op, course.product, places):
            self._places.kept.clear()
            return True
        self.tally.why = "no memory to spare, or a copy that is not compiled yet"
        return False

    def _gather(self, op: Op, course: Course, places: Sequence[Any]) -> bool:
        step = course.step
        if step is None or op.orders is not None or (step.made is None) == bool(op.out):
            return False
        assert self.segment is not None
        if self.segment.put(op, step, places[::-1] if op.name in STORES else places):
            return True
        self.tally.why = "it is not compiled yet, or a number among its operands may be rounded"
        return False

    def _launch_again(self, op: Op, course: Course, places: list[Any]) -> bool:
        replay = course.replay
        if replay is not None and replay.holds is not None and not replay.holds():
            course.replay, course.copies, course.seen, replay = None, None, 0, None  # by another plan, or to be made
        if replay is None and (replay := self._replay(op, course, places)) is None:
            # Once it goes CuPy's way all the same: what may be captured soon has been compiled and loaded then.
            if self.reductions is not None and course.reduction is not None and course.seen != _NOTED:
                self.tally.why = "no memory to spare, or an instruction that is not compiled yet"
                course.sums = self.reductions.run(op, course.reduction, places)
                return course.sums
            if course.seen >= 0 and course.step is None:
                self.tally.why = "it has not come so often in this way"
            elif course.refused:
                self.tally.why = course.refused
            return False
        assert self.replayer is not None
        is_gathered = course.copies is not None and self.replayer.gather(op, replay, course.copies, places)
        is_done = is_gathered
        if not is_gathered:
            self.launch()
            is_done = self.replayer.run(op, replay, places)
            if not is_done and op.name == CALL and self.replayer.is_unfit:
                self._calls.note_unfit(op)
            if self._places.kept:
                self._places.kept.clear()
        if is_done and self._learning is not None:
            self._learning.note_replayed(op, course, places, is_gathered)
        return is_done

    def _replay(self, op: Op, course: Course, places: Sequence[Any]) -> Replay | None:
        """Return what is replayed, if the op has come so often; None for CuPy's way."""
        if course.seen < 0 or self.replayer is None:
            return None
        course.seen += 1
        if course.seen == _NOTED:
            lying = [one if type(one) is Number else Place(0, one.layout, None) for one in places]
            self._lessons.append(Lesson(op, course, lying))
        wanted = _WANTED_OF_SUMS if course.sums else _WANTED
        return self._capture(op, course, places) if course.seen >= wanted else None

    def _capture(self, op: Op, course: Course, places: Sequence[Any]) -> Replay | None:
        assert self.replayer is not None
        course.seen = -1
        takes = self._takes[op.name]
        types = self.replayer.types(op, takes or 0, places) if (has_numbers := Number in map(type, places)) else ()
        if types is None:
            course.refused = "CuPy does not tell in which types it would compute"
        else:
            course.replay = self.replayer.capture(op, self._plan.functions[op.name], places, types)
            course.refused = "" if course.replay is not None else self.replayer.why
        if course.replay is not None and self.segment is not None:
            course.copies = self.segment.copies(course.replay)
        if op.name == CALL:
            if course.replay is not None:
                self._calls.note_captured(op)
            elif has_numbers:
                self._calls.note_by_bits(op)
        elif not takes:
            may_be_product = self.products is not None and self.products.has(op.name)
            goes_otherwise = op.name == _SET or may_be_product or course.join is not None
            self._takes.judge(op.name, course.replay is not None, goes_otherwise)
        return course.replay

    def _learn(self, op: Op, way: tuple[Any, ...], takes: int, places: Sequence[Any]) -> Course:
        name, operands = way[0], [place.layout for place in places]
        is_store = name in STORES
        step = None
        if takes and self.segment is not None:
            step = self.segment.step(name, takes, operands[::-1] if is_store else operands)
        elif name in RECAST and self.segment is not None and op.kwargs is None:
            step = self.segment.recast(name, op.args, operands)
        product = self.products.way(name, operands) if self.products is not None and len(way) == 3 else None
        course = self._remember(way, Course(step, product, 0 if is_store else takes, bool(takes)))
        if self.reductions is not None and product is None and not takes and len(way) == 1 + len(operands):
            course.reduction = self.reductions.way(name, operands)
        course.join = self._joins.way(op, operands) if self._joins is not None and not takes else None
        return course

    def _remember(self, way: tuple[Any, ...], course: Course) -> Course:
        if len(self._courses) >= _MOST_COURSES:
            self._courses.clear()
        self._courses[way] = course
        return course


def make_direct(
    device: Device, passes: Collection[str], heap: Heap, reader: Reader, plan: Plan, accounts: Accounts
) -> Direct | None:
    """Return what carries out ops past CuPy on ``device`` with these ``passes``; None if nothing does."""
    if device.blocks is None:
        return None
    operands, places = Operands(device, device.blocks, heap, reader), heap.places
    segment = replayer = products = reductions = None
    if device.segments is not None and "segments" in passes:
        segment = Segment(device.segments, operands, places)
    if device.replays is not None and "replay" in passes:
        replayer = Replayer(device.replays, operands, places, reader, segment)
    if device.products is not None and "products" in passes:
        products = make_multiplications(device, operands, heap, segment)
    if device.reductions is not None and "reductions" in passes:
        reductions = Reductions(device.reductions, operands, places, segment)
    if all(one is None for one in (segment, replayer, products, reductions)):
        return None
    return Direct(device, operands, heap, plan, accounts, segment, replayer, products, reductions)
