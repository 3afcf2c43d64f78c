"""Arrays are joined by copies that are gathered with other ops, and nobody can tell it from CuPy's way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.executor.config import PASSES
from gpu_backend.opstream.layout import strided
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import List, Ref, Tuple, Value, View
from tests.unit.executor.program.numpy_replays import GatheringCpu
from tests.unit.executor.program.played import PlayedNotebook, added

TABLE, ITEM = 50, 8
#: Windows of a table of 7 by 7, by shape, strides in elements, and the first element.
ROWS = [((7,), (1,), 7 * row) for row in range(7)]
COLUMNS = [((7,), (7,), column) for column in range(7)]
CORNERS = [((3, 3), (7, 1), 8), ((3, 3), (1, 7), 0), ((3, 3), (7, 2), 1)]


def notebook(most_ops: int = 100, passes: tuple[str, ...] = PASSES) -> tuple[PlayedNotebook, GatheringCpu]:
    """Return a notebook with a table."""
    device = GatheringCpu(most_ops)
    on = PlayedNotebook(passes, device)
    on.run(Op("cupy.arange", 40, (0.0, 49.0)), Op("cupy.reshape", 41, (Ref(40), Tuple((7, 7)))))
    on.run(Op("cupy.sin", TABLE, (Ref(41),)))
    device.runs.launched.clear()
    return on, device


def window(shape: tuple[int, ...], strides: tuple[int, ...], first: int) -> View:
    lies = strided(shape, tuple(step * ITEM for step in strides), np.dtype(float))
    return View(TABLE, first * ITEM, lies.shape, lies.strides, "<f8", "C")


def joined(name: str, parts: list[Any], *said: Value, into: int = 70, **words: Value) -> Op:
    return Op(name, into, (List(tuple(parts)), *said), None, kwargs=words or None)


def answers(on: PlayedNotebook, op: Op) -> Any:
    """Return what an op makes, or what it raises."""
    on.run(op)
    (answer,) = on.run(Op(".same", 0, (Ref(op.out),), None, Want.CONTENTS))
    if answer.error is not None:
        return str(answer.error)
    found = on.contents(Ref(op.out))
    (lies,) = on.run(Op(".layout", 0, (Ref(op.out),), None, Want.DESCRIPTION))
    return found.dtype.str, found.shape, found.tobytes(), lies


@pytest.mark.parametrize("name", ["cupy.stack", "cupy.concatenate"])
@pytest.mark.parametrize("parts", [ROWS, COLUMNS, CORNERS, [*ROWS, *COLUMNS]])
@pytest.mark.parametrize("most_ops", [1, 4, 100])
def test_joined_by_copies_in_as_few_launches_as_there_is_room_for(name: str, parts: list[Any], most_ops: int) -> None:
    on, device = notebook(most_ops)
    plain, _ = notebook(passes=())
    for one in (on, plain):
        one.run(joined(name, [window(*part) for part in parts]), added(71, Ref(70), 1.0))
    assert sum(device.runs.launched) == len(parts) + 1
    assert len(device.runs.launched) == -(-(len(parts) + 1) // most_ops)
    assert on.contents(Ref(71)).tobytes() == plain.contents(Ref(71)).tobytes()
    assert 70 not in on.stream.heap.objects, "an array was made of the result"


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
@pytest.mark.parametrize("name", ["cupy.stack", "cupy.concatenate"])
def test_along_each_axis_and_beyond(name: str, axis: int) -> None:
    parts = [window(*part) for part in CORNERS]
    (on, device), (plain, _) = notebook(), notebook(passes=())
    for op in (joined(name, parts, axis), joined(name, parts, into=72, axis=axis)):
        assert answers(on, op) == answers(plain, op)
    is_there = name == "cupy.stack" or -2 <= axis < 2
    assert sum(device.runs.launched) == (2 * len(parts) if is_there else 0)


@pytest.mark.parametrize(
    "op",
    [
        joined("cupy.concatenate", [window(*ROWS[0]), window(*CORNERS[0])]),
        joined("cupy.stack", [window(*ROWS[0]), window((3,), (1,), 0)]),
        joined("cupy.concatenate", [window(*ROWS[0]), window((0,), (1,), 0)]),
        joined("cupy.stack", [window((), (), 3), window((), (), 4)], dtype="<f4"),
        joined("cupy.concatenate", [window((), (), 3), window((), (), 4)]),
        joined("cupy.stack", [window(*ROWS[0])], None),
    ],
)
def test_what_is_refused_or_done_otherwise_goes_cupys_way(op: Op) -> None:
    (on, device), (plain, _) = notebook(), notebook(passes=())
    assert answers(on, op) == answers(plain, op)
    assert not device.runs.launched


def test_arrays_of_several_types_go_cupys_way() -> None:
    on, device = notebook()
    on.run(Op("cupy.zeros", 60, (Tuple((7,)), "<f4")), joined("cupy.stack", [window(*ROWS[0]), Ref(60)]))
    assert not device.runs.launched
    assert on.contents(Ref(70)).dtype == np.float64


def test_without_memory_or_compiled_copies_it_goes_cupys_way() -> None:
    for part in ("memory", "copies"):
        on, device = notebook()
        if part == "memory":
            device.blocks.left = 0
        else:
            device.runs.is_compiled = False
            device.runs.ready.clear()
        on.run(joined("cupy.stack", [window(*row) for row in ROWS]))
        device.blocks.left = 1 << 30
        assert not device.runs.launched
        assert np.array_equal(on.contents(Ref(70)), on.contents(Ref(TABLE)))


def test_what_is_gathered_still_is_joined_as_it_will_be() -> None:
    on, device = notebook()
    row = on.contents(Ref(TABLE))[0]
    on.run(
        added(60, window(*ROWS[0]), 1.0), added(61, Ref(60), Ref(60)), joined("cupy.concatenate", [Ref(60), Ref(61)]),
        Op(".nothing", 0, (), (60, 61)),
    )  # fmt: skip
    assert device.runs.launched == [4]
    assert np.array_equal(on.contents(Ref(70)), np.concatenate([row + 1, 2 * (row + 1)]))


_PARTS = st.sampled_from([*ROWS, *COLUMNS, *CORNERS, ((7, 7), (7, 1), 0), ((7, 1), (1, 1), 0), ((1, 7), (1, 1), 7)])


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["cupy.stack", "cupy.concatenate"]), st.lists(_PARTS, min_size=1, max_size=5), st.integers(-4, 3),
    st.booleans(),
)  # fmt: skip
def test_whatever_is_joined_is_what_cupy_makes_of_it(name: str, parts: list[Any], axis: int, by_word: bool) -> None:
    views = [window(*part) for part in parts]
    op = joined(name, views, axis=axis) if by_word else joined(name, views, axis)
    (on, _), (plain, _) = notebook(3), notebook(passes=())
    assert answers(on, op) == answers(plain, op)
