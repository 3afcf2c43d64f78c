"""Stores of what was computed just before come out as if each op had run by itself."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.devices import open_device
from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.executor.program.passes.store import STORE, StoreForwarding
from gpu_backend.executor.program.run import OpStream
from gpu_backend.wire import values as wire
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref, View

ROOT, OTHER, MADE = 1, 2, 3
DEVICE = open_device("cpu")


def stream() -> OpStream:
    made = OpStream(DEVICE)
    run(made, Op("cupy.arange", ROOT, (8.0,)), Op("cupy.ones", OTHER, (6,)))
    return made


def run(on: OpStream, *ops: Op, at_once: int = 64) -> list[Any]:
    """Carry the ops out, as many in a message; return the errors."""
    errors = []
    for start in range(0, len(ops), at_once):
        batch = QueuedBatch(start + 1, ops[start : start + at_once], 0, ())
        while batch.next < len(batch.ops):
            batch.next, answer = on.run(batch, perf_counter() + 60)
            errors += [answer.error] if answer is not None and answer.error is not None else []
    return errors


def window(start: int, root: int = ROOT) -> View:
    return View(root, 8 * start, (6,), (8,), "<f8", "")


def store(start: int, value: int = MADE, root: int = ROOT) -> Op:
    return Op(STORE, 0, (window(start, root), Ref(value)))


def values(on: OpStream, handle: int) -> list[float]:
    batch = QueuedBatch(1, (Op(".same", 0, (Ref(handle),), None, Want.CONTENTS),), 0, ())
    answer = on.run(batch, perf_counter() + 60)[1]
    assert answer is not None
    assert isinstance(answer.value, wire.Buffer), answer.error
    found: list[float] = np.frombuffer(answer.value.data).tolist()
    return found


FORGET = Op(".nothing", 0, (), (MADE,))


def test_what_is_only_stored_is_computed_into_the_window() -> None:
    on, stores = stream(), []
    on._functions[STORE] = lambda *args: stores.append(args)
    assert run(on, Op("cupy.multiply", MADE, (Ref(OTHER), 5.0)), store(1), FORGET) == []
    assert values(on, ROOT) == [0, 5, 5, 5, 5, 5, 5, 7]
    assert stores == []
    assert MADE not in on.heap.objects


def test_time_that_is_up_ends_a_row_of_stores() -> None:
    on, pair = stream(), (Op("cupy.multiply", MADE, (Ref(OTHER), 5.0)), store(1))
    batch = QueuedBatch(1, (*pair, Op("cupy.negative", MADE + 1, (Ref(OTHER),), (MADE,)), FORGET), 0, ())
    assert on.run(batch, 0.0) == (2, None)


def test_what_is_needed_later_is_kept() -> None:
    on = stream()
    run(on, Op("cupy.multiply", MADE, (Ref(OTHER), 5.0)), store(1), Op("cupy.negative", 9, (Ref(MADE),), (4,)))
    assert values(on, ROOT) == [0, 5, 5, 5, 5, 5, 5, 7]
    assert values(on, MADE) == [5] * 6


@pytest.mark.parametrize(
    ("made", "stored", "behind"),
    [
        (Op("cupy.add", MADE, (window(0), window(2))), store(1), FORGET),  # CuPy would copy the operands
        (Op("cupy.arange", MADE, (6.0,)), store(1), FORGET),  # takes no output
        (Op("cupy.add", MADE, (1.0, Ref(OTHER))), store(1, OTHER), FORGET),
        (Op("cupy.add", MADE, (1.0, Ref(OTHER))), store(1, root=77), FORGET),
        (Op("cupy.add", MADE, (1.0, Ref(OTHER))), store(1), Op(".nothing", 0, (), (OTHER,))),
    ],
)
def test_what_cannot_be_is_left_alone(made: Op, stored: Op, behind: Op) -> None:
    on = stream()
    on._plan.learn(made.name)
    forwarding = StoreForwarding(on.heap, on._reader, on._plan)
    for ops in (made, stored, behind), (made, stored), (made,):
        assert forwarding.output(made, QueuedBatch(1, ops, 0, ()), 1) is None


def test_what_the_next_op_computes_with_and_into_is_made() -> None:
    """``t = v * 5; u[1:7] = t; t = t + 1``: the next op lets go of what it still has to read."""
    on = stream()
    again = Op("cupy.add", 4, (Ref(MADE), 1.0), reuse=MADE)
    assert run(on, Op("cupy.multiply", MADE, (Ref(OTHER), 5.0)), store(1), again) == []
    assert values(on, ROOT) == [0, 5, 5, 5, 5, 5, 5, 7]
    assert values(on, 4) == [6] * 6


def test_a_store_whose_array_goes_before_it_runs_fails_as_it_would_alone() -> None:
    for gone in (ROOT, MADE):
        on = stream()
        doomed = Op(STORE, 0, store(1).args, (gone,))
        (error,) = run(on, Op("cupy.multiply", MADE, (Ref(OTHER), 5.0)), doomed, FORGET)
        assert error.kind.endswith("SessionLost")
    on = stream()
    into = store(0, root=OTHER)
    (error,) = run(on, Op("cupy.negative", MADE, (window(0),), reuse=OTHER), into, FORGET)
    assert error.kind.endswith("SessionLost")


def test_a_failure_leaves_the_window_as_it_was_and_is_told_once_for_each_op() -> None:
    on = stream()
    errors = run(on, Op("cupy.multiply", MADE, (Ref(99), 5.0)), store(1), FORGET)
    assert len(errors) == 2
    assert errors[1].caused_by >= 0
    assert values(on, ROOT) == [0, 1, 2, 3, 4, 5, 6, 7]


OPERANDS = st.one_of(
    st.builds(window, st.integers(0, 2)),
    st.builds(Ref, st.integers(OTHER, OTHER + 5)),
    st.floats(-2, 2, allow_subnormal=False),
)


@st.composite
def programs(draw: st.DrawFn) -> list[Op]:
    """Ops on arrays of six elements: made, stored, dropped and used again in any order, some of them missing."""
    ops, handle = [], MADE
    for _ in range(draw(st.integers(1, 8))):
        drop = tuple(draw(st.sets(st.integers(MADE, MADE + 5), max_size=2)))
        if draw(st.booleans()):
            name, count = draw(st.sampled_from([("cupy.add", 2), ("cupy.multiply", 2), ("cupy.negative", 1)]))
            args = (draw(OPERANDS.filter(lambda one: not isinstance(one, float))), draw(OPERANDS))[:count]
            reuse = draw(st.sampled_from([0, 0, *range(MADE, handle)]))
            ops.append(Op(name, handle, args, drop or None, reuse=reuse))
            ops += [store(draw(st.integers(0, 2)), handle)] * draw(st.integers(0, 1))
            handle += 1
        else:
            ops.append(Op(".nothing", 0, (), drop))
    return ops


def without_reuse(op: Op) -> list[Op]:
    """Return ops that do the same in new memory."""
    gone = [Op(".nothing", 0, (), (op.reuse,))] if op.reuse else []
    return [Op(op.name, op.out, op.args, op.drop), *gone]


@given(programs())
def test_any_program_comes_out_as_op_by_op(ops: list[Op]) -> None:
    together, apart = stream(), stream()
    blamed = [error.message for error in run(together, *ops)]
    plain = [one for op in ops for one in without_reuse(op)]
    assert blamed == [error.message for error in run(apart, *plain, at_once=1)]
    assert {handle: values(together, handle) for handle in sorted(together.heap.objects)} == {
        handle: values(apart, handle) for handle in sorted(apart.heap.objects)
    }


def test_an_operand_that_is_forgotten_is_computed_into() -> None:
    on = stream()
    place = on.heap.objects[OTHER].ctypes.data
    assert run(on, Op("cupy.add", MADE, (Ref(OTHER), Ref(OTHER)), reuse=OTHER)) == []
    assert on.heap.objects[MADE].ctypes.data == place
    assert values(on, MADE) == [2] * 6


def test_a_chain_computes_into_the_same_memory() -> None:
    on, given = stream(), []
    add = DEVICE.resolve("cupy.add")
    on._functions["cupy.add"] = lambda *args: given.append(len(args)) or add(*args)
    chain = [Op("cupy.add", MADE + n, (Ref(MADE + n - 1), Ref(OTHER)), reuse=MADE + n - 1) for n in range(1, 5)]
    assert run(on, Op("cupy.add", MADE, (Ref(OTHER), 1.0)), *chain) == []
    assert given == [2, 3, 3, 3, 3]
    assert values(on, MADE + 4) == [6] * 6
