"""Memory that is kept for results to come: who finds it given back, and who runs again behind that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.executor.answer import Answer
from gpu_backend.executor.program import direct
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref, View
from tests.unit.executor.program.played import PlayedNotebook, added, window
from tests.unit.executor.program.test_replay import notebook


@pytest.fixture(autouse=True)
def captured_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have little come before there is memory to spare."""
    monkeypatch.setattr(direct, "_WANTED", 2)


def run_short_of_memory(on: PlayedNotebook, name: str) -> list[tuple[Any, ...]]:
    """Have ops with this ``name`` find no memory; return the arguments of each, as it goes on."""
    calls = []

    def short(*args: Any) -> Any:
        calls.append(args)
        raise MemoryError("the pool is empty, and half of it is done")

    functions: dict[str, Any] = on.stream._functions
    functions[name] = short
    return calls


def test_an_op_for_which_memory_is_short_runs_again_when_what_is_spare_is_given_back() -> None:
    on = notebook()
    on.run(*(added(20 + one, Ref(3), 1.0, drop=(19 + one,)) for one in range(4)))
    assert on.stream.heap.places.spare
    functions: dict[str, Any] = on.stream._functions
    real = functions["cupy.ndarray.copy"] = on.stream._resolve("cupy.ndarray.copy")

    def short(*args: Any) -> Any:
        if on.stream.heap.places.spare:
            raise MemoryError("the pool is empty")
        return real(*args)

    functions["cupy.ndarray.copy"] = short
    assert on.run(Op("cupy.ndarray.copy", 40, (Ref(3),))) == []
    assert on.contents(Ref(40)).tolist() == on.contents(Ref(3)).tolist()
    functions["cupy.ndarray.copy"] = lambda *args: (_ for _ in ()).throw(MemoryError("there is none"))
    other = Op("cupy.ndarray.copy", 41, (window(1, 0, 4),))
    *_, answer = on.run(other, Op(".same", 0, (Ref(41),), None, Want.CONTENTS))
    assert answer.error is not None


@pytest.mark.parametrize(
    "drawn",
    [Op("cupy.random.normal", 41, (0.0, 1.0, 6)), Op(".method", 41, (Ref(40), "normal"))],
    ids=lambda one: str(one.name),
)
def test_what_draws_random_numbers_is_not_run_twice_for_want_of_memory(drawn: Op) -> None:
    on = notebook()
    on.run(Op("cupy.random.RandomState", 40, (7,)))
    on.run(*(added(20 + one, Ref(3), 1.0, drop=(19 + one,)) for one in range(4)))
    calls = run_short_of_memory(on, drawn.name)
    assert on.stream.heap.places.spare
    *_, answer = on.run(drawn, Op(".same", 0, (Ref(41),), None, Want.CONTENTS))
    assert answer.error is not None
    assert len(calls) == 1
    assert not on.stream.heap.places.spare, "so that there is some the next time"


def test_what_writes_into_an_array_is_not_run_twice_for_want_of_memory() -> None:
    on = notebook()
    on.run(*(added(20 + one, Ref(3), 1.0, drop=(19 + one,)) for one in range(4)))
    calls = run_short_of_memory(on, "cupy.ndarray.sort")
    assert on.stream.heap.places.spare
    on.run(Op("cupy.ndarray.sort", 0, (Ref(3),)), Op("cupy.ndarray.sort", 0, (Ref(4),)))
    assert len(calls) == 2
    assert not on.stream.heap.places.spare


def test_methods_of_generators_and_matrices_leave_the_memory_that_is_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    on = notebook()
    on.run(*(added(20 + one, Ref(3), 1.0, drop=(19 + one,)) for one in range(4)))
    spare = on.stream.heap.places.spare_bytes
    assert spare
    on.run(Op("cupy.random.RandomState", 40, (7,)), Op(".method", 41, (Ref(40), "standard_normal", 6)))
    on.run(Op("cupyx.scipy.sparse.csr_matrix", 42, (View(3, 0, (1, 6), (48, 8), "<f8", ""),)))
    on.run(*(added(20 + one, Ref(3), 1.0, drop=(19 + one,)) for one in range(4)))
    spare = on.stream.heap.places.spare_bytes
    on.run(Op(".method", 43, (Ref(42), "__matmul__", Ref(4))))
    assert on.stream.heap.places.spare_bytes == spare
    assert 4 in on.stream.heap.ownership.alone, "what a matrix is multiplied by it does not remember"
    on.run(Op(".method", 44, (Ref(42), "setdiag", Ref(4))))
    assert not on.stream.heap.places.spare
    on.run(*(added(20 + one, Ref(3), 1.0, drop=(19 + one,)) for one in range(4)))
    monkeypatch.setattr("gpu_backend.executor.program.spare_memory._LITTLE_BYTES", 8)  # less than is spare now
    on.run(Op(".method", 45, (Ref(40), "standard_normal", 6)))
    assert not on.stream.heap.places.spare


def test_what_a_matrix_is_multiplied_by_is_multiplied_again_when_memory_is_given_back() -> None:
    on = notebook()
    on.run(Op("cupyx.scipy.sparse.csr_matrix", 42, (View(3, 0, (1, 6), (48, 8), "<f8", ""),)))
    on.run(*(added(20 + one, Ref(4), 1.0, drop=(19 + one,)) for one in range(4)))
    functions: dict[str, Any] = on.stream._functions
    real = functions[".method"]

    def short(*args: Any) -> Any:
        if on.stream.heap.places.spare:
            raise MemoryError("the pool is empty")
        return real(*args)

    functions[".method"] = short
    assert on.stream.heap.places.spare
    assert on.run(Op(".method", 43, (Ref(42), "__matmul__", Ref(4)))) == []
    assert on.contents(Ref(43)).tolist() == [float(on.contents(Ref(3)) @ on.contents(Ref(4)))]


@pytest.mark.parametrize("is_lent", [True, False])
def test_what_runs_again_finds_what_it_would_have_computed_into(is_lent: bool) -> None:
    on = notebook()
    on.run(*(added(20 + one, Ref(3), 1.0, drop=(19 + one,)) for one in range(4)))
    on.stream.heap.put(50, np.arange(6.0))
    if not is_lent:
        on.stream.heap.ownership.own(50)
    functions: dict[str, Any] = on.stream._functions
    real, calls = on.stream._resolve("cupy.hypot"), []

    def short(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 1:
            raise MemoryError("the pool is empty")
        return real(*args)

    functions["cupy.hypot"] = short
    assert on.stream.heap.places.spare
    assert on.run(Op("cupy.hypot", 51, (Ref(50), 1), reuse=50)) == []
    assert len(calls[0]) == (2 if is_lent else 3), "it was to be computed into, unless others may hold it"
    assert on.contents(Ref(51)).tolist() == np.hypot(np.arange(6.0), 1).tolist()
    assert 50 not in on.stream.heap.objects


def test_what_may_remember_its_arguments_is_not_run_twice_for_want_of_memory() -> None:
    on = notebook()
    op = Op("cupyx.scipy.sparse.random", 41, (4, 4))
    calls = run_short_of_memory(on, op.name)
    device: Any = on.device
    device.replays.held = True  # what memory is kept by, and can be let go of
    *_, answer = on.run(op, Op(".same", 0, (Ref(41),), None, Want.CONTENTS))
    assert answer.error is not None
    assert len(calls) == 1


def test_who_waits_for_the_device_leaves_the_memory_that_is_spare() -> None:
    on = notebook()
    on.run(*(added(20 + one, Ref(3), 1.0, drop=(19 + one,)) for one in range(4)))
    spare = on.stream.heap.places.spare_bytes
    assert spare
    (answer,) = on.run(added(30, Ref(3), 2.0), Op(".synchronize", 99, (), None, Want.CONTENTS))  # as a notebook asks
    assert answer == Answer(is_synchronized=True)
    assert 99 not in on.stream.heap.objects
    assert on.stream.heap.places.spare
    assert on.contents(Ref(30)).tolist() == (on.contents(Ref(3)) + 2.0).tolist()
    (answer,) = on.run(Op(".synchronize", 0, (1,), None, Want.CONTENTS))
    assert answer.error is not None


def test_who_waits_for_the_device_lets_go_of_what_is_dropped_and_of_much_that_is_spare(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on = notebook()
    on.run(*(added(20 + one, Ref(3), 1.0, drop=(19 + one,)) for one in range(4)))
    places = on.stream.heap.places
    assert on.run(Op(".synchronize", 0, (), (23,), Want.CONTENTS)) == [Answer(is_synchronized=True)]
    assert places.spare
    assert not places.kept
    monkeypatch.setattr("gpu_backend.executor.heap.places.MOST_SPARE_BYTES", 8)
    on.run(Op(".synchronize", 0, (), None, Want.CONTENTS))
    assert not places.spare
