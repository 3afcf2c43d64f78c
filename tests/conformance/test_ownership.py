"""Nobody computes into memory that something still sees: every kind of holder, on every device."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device
from gpu_backend.executor.program.plan import CHECKED, KEEPS, new_memory
from gpu_backend.opstream.draws import is_draw
from gpu_backend.opstream.surface import load
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import SMALL_BYTES, Buffer, Callback, DType, Ref, Tuple, View
from tests.unit.executor.program.played import PlayedNotebook, added

X, OTHER, HELD = 1, 2, 5
BITS = np.arange(6.0).tobytes()
INDICES = Op("cupy.arange", 3, (6,))
POINTERS = Op("cupy.array", 4, (Buffer(-1, "<i8", (2,), np.array([0, 6]).tobytes()),))
MATRIX = Op("cupyx.scipy.sparse.csr_matrix", HELD, (Tuple((Ref(X), Ref(3), Ref(4))), Tuple((1, 6))))

OF_OTHER = Op(MATRIX.name, HELD, (Tuple((Ref(OTHER), Ref(3), Ref(4))), Tuple((1, 6))))


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Device:
    os.environ.setdefault("CUPY_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
    return open_device(request.param)


@pytest.fixture
def on(device: Device) -> PlayedNotebook:
    played = PlayedNotebook(device=device)
    played.run(Op("cupy.arange", X, (6.0,)), Op("cupy.full", OTHER, (6, 7.0)))
    return played


def overwrite(on: PlayedNotebook) -> None:
    """Drop `X`, and compute something of the same layout that may go into its memory."""
    assert [one.error for one in on.run(added(90, Ref(OTHER), 1.0, reuse=X))] == []
    assert on.contents(Ref(90)).tolist() == [8.0] * 6


def part(handle: int, name: str) -> list[Op]:
    return [Op(".getattr", 50, (Ref(handle), name), None, Want.DESCRIPTION)]


WHOLE = View(X, 0, (6,), (8,), "<f8", "")
#: What takes hold of the array, and how its contents are seen after that: ops, and the handle that these give.
HOLDERS: dict[str, tuple[list[Op], list[Op], int]] = {
    "a second handle": ([Op(".same", HELD, (Ref(X),))], [], HELD),
    "a view with a handle": ([Op(".window", HELD, (WHOLE,))], [], HELD),
    "a view of a view": ([Op(".window", 6, (WHOLE,)), Op("cupy.ravel", HELD, (Ref(6),))], [], HELD),
    "a result that is its argument": ([Op("cupy.asarray", HELD, (Ref(X),), None, Want.DESCRIPTION)], [], X),
    "a result in its argument": ([Op("cupy.reshape", HELD, (Ref(X), Tuple((3, 2))), None, Want.DESCRIPTION)], [], HELD),
    "a proved result in its argument": ([Op("cupy.ravel", HELD, (Ref(X),))], [], HELD),
    "several results in it": ([Op("cupy.split", HELD, (Ref(X), 2), None, Want.DESCRIPTION)], [], HELD + 1),
    "a method's result": ([Op(".method", HELD, (Ref(X), "reshape", 6), None, Want.DESCRIPTION)], [], HELD),
    "a window of no function's": ([Op("cupy.lib.stride_tricks.as_strided", HELD, (Ref(X),))], [], HELD),
    "a sparse matrix": ([INDICES, POINTERS, MATRIX], part(HELD, "data"), 50),
    "a polynomial": ([Op("cupy.poly1d", HELD, (Ref(X),))], part(HELD, "coeffs"), 50),
    "an attribute that was set": (
        [INDICES, POINTERS, OF_OTHER, Op(".setattr", 0, (Ref(HELD), "data", Ref(X)))],
        part(HELD, "data"),
        50,
    ),
}  # fmt: skip


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_holds_an_array_sees_it_as_it_was(on: PlayedNotebook, holder: str) -> None:
    takes, looks, seen = HOLDERS[holder]
    assert [one.error for one in on.run(*takes) if one.error] == []
    if seen == X:  # the notebook knows it by that handle alone, and does not drop it
        return
    overwrite(on)
    assert [one.error for one in on.run(*looks) if one.error] == []
    assert on.contents(Ref(seen)).tobytes() == BITS[-on.contents(Ref(seen)).nbytes :]


def test_the_memory_of_an_array_that_only_a_pointer_refers_to_is_not_used_again(on: PlayedNotebook) -> None:
    (answer,) = on.run(Op(".getattr", HELD, (Ref(X), "data"), None, Want.DESCRIPTION))
    assert answer.error is None
    shown = {"dtype": DType("<f8"), "memptr": Ref(HELD)}
    overwrite(on)
    (answer,) = on.run(Op("cupy.ndarray", 60, (Tuple((6,)),), None, Want.DESCRIPTION, shown))
    assert answer.error is None
    assert on.contents(Ref(60)).tobytes() == BITS


def test_an_answer_that_is_still_to_be_sent_is_a_copy(on: PlayedNotebook) -> None:
    """Large ones go as frames, which lie in the outbox until the notebook reads."""
    count = SMALL_BYTES // 8 + 1
    on.run(Op("cupy.arange", X, (float(count),)), Op("cupy.full", OTHER, (count, 7.0)))
    (answer,) = on.run(Op(".same", 0, (Ref(X),), None, Want.CONTENTS))
    (frame,) = answer.buffers
    on.run(added(90, Ref(OTHER), 1.0, reuse=X))
    assert frame.tolist() == np.arange(float(count)).tolist()


def test_a_call_that_waits_for_the_notebook_keeps_its_arguments(on: PlayedNotebook) -> None:
    begun = (".begin", "cupy.apply_along_axis", Callback(1), 0, Ref(X))
    (answer,) = on.run(Op(begun[0], HELD, begun[1:], None, Want.DESCRIPTION))
    assert answer.error is None
    overwrite(on)
    (answer,) = on.run(Op("cupy.sum", 0, (Ref(HELD + 1),), None, Want.CONTENTS))  # of what it was called with
    assert answer.error is None
    assert isinstance(answer.value, Buffer)
    assert np.frombuffer(answer.value.data).tolist() == [15.0]


def is_alone(on: PlayedNotebook, handle: int) -> bool:
    return handle in on.stream.heap.ownership.alone


def test_memory_is_free_again_when_the_last_other_entry_in_it_goes(on: PlayedNotebook) -> None:
    assert is_alone(on, X)
    on.run(Op(".same", HELD, (Ref(X),)), Op(".window", 6, (Ref(HELD),)))
    assert not is_alone(on, X)
    on.run(Op(".nothing", 0, (), (HELD,)))
    assert not is_alone(on, X)
    on.run(Op(".nothing", 0, (), (6,)))
    assert is_alone(on, X)


def test_generators_and_kernels_remember_nothing(on: PlayedNotebook) -> None:
    source = ("float64 x", "float64 y", "y = x + 1", "plus_one")
    kernel = Op("cupy.ElementwiseKernel", HELD, source, None, Want.DESCRIPTION)
    called = Op(".call", 6, (Ref(HELD), Ref(X)), None, Want.DESCRIPTION)
    generator = Op("cupy.random.RandomState", 7, (1,), None, Want.DESCRIPTION)
    drawn = Op(".method", 8, (Ref(7), "uniform", Ref(X), 9.0, 6), None, Want.DESCRIPTION)
    assert [one.error for one in on.run(kernel, called, generator, drawn) if one.error] == []
    assert is_alone(on, X)
    assert is_alone(on, 6)
    assert is_alone(on, 8)


def test_an_op_that_failed_may_have_left_its_argument_behind(on: PlayedNotebook) -> None:
    on.run(Op(".setattr", 0, (Ref(OTHER), "shape", Ref(X))))
    assert not is_alone(on, X)


#: What functions that create arrays are given, by how many arguments.
_CREATING: dict[str, tuple[list[Any], ...]] = {
    **{f"cupy.{name}": ([6], [6, "f8"]) for name in ("zeros", "ones", "empty", "identity")},
    "cupy.eye": ([6], [6, 6]),
    "cupy.arange": ([6.0], [1.0, 6.0], [1.0, 6.0, 2.0]),
    "cupy.full": ([6], [6, 1.0], [6, 1.0, "f8"]),
}

# --- the lists --------------------------------------------------------------------------------------------------------

NEW = [name for name in load() if new_memory(name) is not KEEPS and new_memory(name) is not CHECKED]
NEW = [name for name in NEW if not is_draw(name)]  # see `test_draws`
SHAPES: list[tuple[int, ...]] = [(), (1,), (6,), (2, 3), (1, 1)]


@pytest.mark.parametrize("name", NEW)
def test_what_is_said_to_be_new_memory_is(device: Device, name: str) -> None:
    """Each time anew, whatever the shape: a function that returned an argument, or kept a result, would be found."""
    function = device.resolve(name)
    counts = [count for count in range(1, 5) if count in new_memory(name)]
    assert counts
    tried = 0
    for count in counts:
        for dtype in ("f8", "i4", "?", "c16"):
            for shape in SHAPES:
                args: list[Any] = [device.upload(np.ones(shape, dtype)) for _ in range(count)]
                if name == "cupy.ndarray.astype":
                    args[1:] = [dtype] * (count - 1)
                elif name in _CREATING:
                    args = _CREATING[name][count - 1]
                try:
                    results = [function(*args) for _ in range(2)]
                except Exception:  # of a dtype or shape that it does not take
                    continue
                tried += 1
                arrays = [one for one in (*args, *results) if device.is_array(one)]
                for place, one in enumerate(arrays):
                    assert all(device.shares_base(one, other) is None for other in arrays[:place]), (dtype, shape)
                assert all(device.owns_memory(one) or one.size < 2 for one in results)
    assert tried
