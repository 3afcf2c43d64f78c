"""Ops that come again as they came before: carried out in C, past the Python that learnt how.

`Direct` finds what becomes of an op, and is the reference. Here it hands over what it found, as a recipe: how operands
lie, what memory the op takes, and the instructions or the parameters, with the places where addresses and numbers
stand in them. An op of which that is known is a look-up and a few stores (``csrc/recurring.c``). Everything else goes
back to Python: what is new, what finds no memory, a table that is full. Where nothing is compiled, all does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any, Protocol

from gpu_backend import sources
from gpu_backend.devices.extents import reach
from gpu_backend.devices.launching import Launcher
from gpu_backend.devices.replays import Replay
from gpu_backend.executor.heap import MOST_SPARE_BYTES, Heap, Place, Places
from gpu_backend.executor.program.course import Course
from gpu_backend.executor.program.instruction_table import Table
from gpu_backend.executor.program.kernel_calls import CALL
from gpu_backend.executor.program.operands import BLOCK_BYTES, Number, Operands, bytes_of
from gpu_backend.executor.program.products import Multiplication
from gpu_backend.executor.program.segment import STORES, Segment
from gpu_backend.executor.program.steps import Step
from gpu_backend.executor.program.takes import Takes
from gpu_backend.executor.verbs import STORE
from gpu_backend.opstream.layout import DType, Layout
from gpu_backend.wire import values as wire
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref, Value, View

__all__ = ["Learning", "Recurring", "make_recurring", "raise_failure"]

#: An op that could not be gathered so often recurs by its launch; and how often that is looked at again, seconds.
_WAITED, _REVIEW_SECONDS = 8, 0.25

Recipe = tuple[Any, ...]
_MemoryAndWork = tuple[tuple[tuple[int, Layout], ...], int, tuple[Recipe, ...], Recipe | None]

_CLASSES = {
    "Op": Op, "Ref": Ref, "View": View, "Scalar": wire.Scalar, "Complex": wire.Complex, "DType": wire.DType,
    "Tuple": wire.Tuple, "List": wire.List, "Slice": wire.Slice, "Ellipsis": wire.Ellipsis, "Place": Place,
    "Places": Places, "Table": Table,
}  # fmt: skip


class Recurring(Protocol):
    """What carries out ops that recur. Called from the op loop only, for the default stream."""

    #: What the op raised at whose place `run` stopped; None if nothing. See `raise_failure`.
    error: BaseException | None
    #: How many ops were carried out; how many of them were launched by themselves, and how many calls of a library.
    done: int
    launched: int
    called: int

    def run(self, ops: tuple[Op, ...], place: int, end: int, until: float) -> int:
        """Carry out ops from ``place`` on; return the place of the first that is for others, ``end`` if none is.

        It stops soon behind ``until``, by `time.perf_counter`. The op where it stopped has dropped what it drops.
        """

    def lacks(self, op: Op, known_by: object, has_come_often: bool) -> bool:
        """Tell whether ops that come as ``op`` does may recur, and do not yet as ``known_by`` says.

        Not when it is asked for the first time, unless it ``has_come_often``: what comes once is not worth a recipe.
        """

    def learn(self, op: Op, known_by: object, recipe: Recipe | None) -> None:
        """Note that ``op`` was carried out by ``recipe``, for those that come in the same way; None if none may."""

    def review(self) -> None:
        """Have ops that recur by a launch for now be learnt anew, as they come again."""

    def forget(self) -> None:
        """Forget all ways; while ops are carried out, once they are: until then nothing is learnt."""


def make_recurring(
    heap: Heap, operands: Operands, takes: Takes, segment: Segment, by_bits: set[int], launcher: Launcher | None
) -> Recurring | None:
    """Return what carries out ops that recur; None where it is not compiled.

    Parameters
    ----------
    segment
        Has the device carry out what is gathered.
    by_bits
        See `KernelCalls`.
    launcher
        What launches may be left to while ops are carried out, and are with the driver when it stops before the end.
    """
    core: Any = sources.in_c("gpu_backend.executor.program._recurring")
    if core is None:
        return None
    made: Recurring = core.Recurring(
        classes=_CLASSES, takes=takes, places=heap.places, objects=heap.objects, alone=heap.ownership.alone,
        views=heap.views, drop=heap.drop, allocate=operands.new, table=segment.table, ready=segment.runs.ready,
        launch=segment.runs.launch, renew=segment.runs.renew, nothing=Want.NOTHING, by_bits=by_bits, launcher=launcher,
        most_ops=segment.runs.most_ops, most_spare=MOST_SPARE_BYTES,
    )  # fmt: skip
    return made


def raise_failure(recurring: Recurring) -> None:
    """Raise what the op raised at whose place it stopped, once."""
    failure = recurring.error
    if failure is not None:
        recurring.error = None
        raise failure


class Learning:
    """Has ops recur that were carried out."""

    def __init__(self, recurring: Recurring, heap: Heap, segment: Segment | None) -> None:
        self._recurring, self._heap, self._segment = recurring, heap, segment
        #: When what recurs for now is learnt anew, by `time.perf_counter`; 0 if nothing does.
        self.review_at = 0.0

    def note(self, op: Op, course: Course, places: Sequence[Place | Number], for_now: bool = False) -> None:
        """Have ``op`` recur, which was carried out as ``course`` says, on operands that lie at ``places``.

        ``for_now`` says that it was launched, and may be gathered with others one day.
        """
        if not for_now:
            course.waited = 0
        known_by = course.replay if for_now else course.product or course.step or course.replay
        if self._recurring.lacks(op, known_by, course.replay is not None):
            self._recurring.learn(op, known_by, _recipe(self._heap, op, course, places, for_now))

    def note_replayed(self, op: Op, course: Course, places: Sequence[Place | Number], is_gathered: bool) -> None:
        """Have ``op`` recur, which was replayed: by a launch, or ``is_gathered`` with others.

        One that may be gathered before long does not recur as a launch, unless it has waited for that often: until it
        is compiled a second may pass, or many.
        """
        if course.step is None and is_gathered == (course.copies is not None):
            self.note(op, course, places)
        elif not is_gathered and op.orders is None and self._is_uncompiled(course):
            course.waited += 1
            if course.waited >= _WAITED:
                self.note(op, course, places, for_now=True)
                self.review_at = self.review_at or perf_counter() + _REVIEW_SECONDS

    def _is_uncompiled(self, course: Course) -> bool:
        segment, steps = self._segment, course.copies or (course.step,)
        return segment is not None and any(one is not None and segment.lacks(one) for one in steps)

    def review(self) -> None:
        """Have what recurs for now be learnt anew, if it is time: it may be compiled by then."""
        if perf_counter() >= self.review_at:
            self.review_at = 0.0
            self._recurring.review()


def _recipe(heap: Heap, op: Op, course: Course, places: Sequence[Place | Number], for_now: bool) -> Recipe | None:
    """Return what `csrc/learning.h` reads; None for a way that cannot recur, as one that makes several arrays."""
    if course.replay is not None and len(course.replay.made) > 1:
        return None
    args = op.args[1:] if op.name == CALL else op.args  # the first is the kernel
    roots = [heap.places.known.get(one.root if isinstance(one, View) else one.handle) for one in _arrays(args)]
    lying = iter(roots)
    operands = [None if type(one) is Number else _lying(one, next(lying, None)) for one in places]
    if next(lying, None) is not None or any(one == () for one in operands):
        return None
    step, is_store = None if for_now else course.step, op.name == STORE
    blocks, made, instructions, launched = _memory_and_work(op, course, step, places, for_now)
    mixes_nans = step is not None and step.mixes_nans
    return (
        tuple(operands), blocks, made, instructions, launched, bool(op.out), course.may_coincide, course.into,
        mixes_nans, is_store, for_now,
    )  # fmt: skip


def _memory_and_work(
    op: Op, course: Course, step: Step | None, places: Sequence[Place | Number], for_now: bool
) -> _MemoryAndWork:
    """Return the blocks that an op takes and which of them is its result, its instructions, and what is launched."""
    product, replay = course.product, course.replay
    if product is not None:
        return _product(product)
    if step is not None:
        own = ((_rounded(step.made.nbytes), step.made),) if step.made is not None else ()
        return own, len(own) - 1, (_instruction(step, places, op.name in STORES),), None
    assert replay is not None
    blocks = tuple((_rounded(size), layout) for size, layout in replay.blocks)
    made = replay.made[0].block if replay.made else -1
    if course.copies is not None and not for_now:
        return blocks, made, _copies(replay, course.copies), None
    return blocks, made, (), _launched(replay)


def _product(way: Multiplication) -> _MemoryAndWork:
    made = way.product.call.made
    layouts = [made, *(copy.into for copy in way.copies if copy is not None)]
    blocks = [(_rounded(one.nbytes), one) for one in layouts]
    scratch = -1
    if way.product.scratch_bytes:
        scratch = len(blocks)
        blocks.append((_rounded(way.product.scratch_bytes), bytes_of(way.product.scratch_bytes)))
    instructions, given, copied = [], [], 1
    for number, copy in enumerate(way.copies):
        operand = len(blocks) + number
        if copy is None:
            given.append((operand, 0))
            continue
        step = copy.step
        instructions.append((step.template, step.code, step.elements, ((operand, 0), (copied, 0)), ()))
        given.append((copied, 0))
        copied += 1
    arguments = (*given, (0, 0), (scratch, 0))
    return tuple(blocks), 0, tuple(instructions), (way.product.run, None, bytearray(), (), (), 1, arguments)


def _arrays(args: Sequence[Value]) -> Iterator[Ref | View]:
    for arg in args:
        if isinstance(arg, Ref | View):
            yield arg
        elif isinstance(arg, wire.List | wire.Tuple):
            yield from _arrays(arg.items)


def _lying(place: Place | Number, root: Place | None) -> tuple[Any, ...]:
    """Return how an operand lies, and how far it and its root reach from their first elements; nothing if empty."""
    layout = place.layout
    if not isinstance(layout, Layout) or root is None or not layout.size or not root.layout.size:
        return ()
    own = reach(layout.shape, layout.strides, layout.itemsize)
    return layout, *own, *reach(root.layout.shape, root.layout.strides, root.layout.itemsize), layout.itemsize


def _instruction(step: Step, places: Sequence[Place | Number], is_reversed: bool) -> tuple[Any, ...]:
    blocks = 1 if step.made is not None else 0
    order = range(len(places))[::-1] if is_reversed else range(len(places))
    sources, values = [], []
    for at, operand in enumerate(order):
        is_number = type(places[operand]) is Number
        sources.append((-1 if is_number else blocks + operand, 0))
        if is_number:
            values.append(_slot(at, operand, step.numbers[at]))
    if blocks:
        sources.append((0, 0))
    return step.template, step.code, step.elements, tuple(sources), tuple(values)


def _copies(replay: Replay, steps: Sequence[Step]) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        (
            step.template, step.code, step.elements,
            ((one.source, one.displacement), (one.target, one.target_displacement)), (),
        )
        for step, one in zip(steps, replay.copies, strict=False)
    )  # fmt: skip


def _launched(replay: Replay) -> tuple[Any, ...]:
    slots = tuple(_slot(at, operand, dtype) for at, operand, dtype in replay.slots)
    return (
        replay.launch,
        replay.holds,
        replay.parameters,
        tuple(map(tuple, replay.patches)),
        slots,
        replay.alignment,
        (),
    )


def _slot(at: int, operand: int, dtype: DType) -> tuple[int, int, str, int]:
    return at, operand, dtype.char, dtype.itemsize


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // BLOCK_BYTES) * BLOCK_BYTES
