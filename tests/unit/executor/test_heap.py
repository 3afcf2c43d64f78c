"""The handle table: what is there, what is missing and why."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.executor.heap import Failure, Heap
from gpu_backend.wire.errors import ErrorRecord
from gpu_backend.wire.values import View


def failure(seq: int) -> Failure:
    return Failure(seq, ErrorRecord("builtins.ValueError", f"op {seq}"))


def test_what_failed_is_blamed_for_all_its_results() -> None:
    heap = Heap()
    heap.objects[1] = "there"
    heap.fail(10, failure(4))
    heap.fail(20, failure(5))
    assert heap.why_missing(5) is None
    assert [heap.why_missing(handle) for handle in (10, 12, 20, 25)] == [failure(n) for n in (4, 4, 5, 5)]


def test_what_is_dropped_leaves_nothing() -> None:
    heap = Heap()
    heap.objects[1] = "there"
    heap.fail(2, failure(1))
    for handle in (1, 2, 3):
        heap.drop(handle)
        heap.drop(handle)
    assert not heap.objects
    assert heap.why_missing(2) is None


@given(st.lists(st.tuples(st.sampled_from(["set", "fail", "drop"]), st.integers(1, 12))))
def test_the_nearest_failure_below_is_found(steps: list[tuple[str, int]]) -> None:
    heap, failed, held = Heap(), set(), set()
    for seq, (step, handle) in enumerate(steps):
        if step == "set":
            heap.objects[handle] = handle
            held.add(handle)
        elif step == "fail":
            heap.fail(handle, failure(seq))
            failed.add(handle)
        else:
            heap.drop(handle)
            failed -= {handle} - held
            held.discard(handle)
    for handle in range(14):
        found = heap.why_missing(handle)
        assert (found is None) == (not any(one <= handle for one in failed))
    assert set(heap.objects) == held


def test_clearing_forgets_failures_too() -> None:
    heap = Heap()
    heap.objects[1] = "there"
    heap.fail(2, failure(1))
    heap.clear()
    assert not heap.objects
    assert heap.why_missing(2) is None


def test_dropping_many_failed_handles_takes_no_time() -> None:
    """An interrupt cancels thousands of ops at once, and the notebook drops their arrays in any order."""
    heap = Heap()
    for handle in range(50_000):
        heap.fail(handle, failure(0))
    for handle in reversed(range(50_000)):
        heap.drop(handle)
    assert heap.why_missing(49_999) is None


def test_views_go_with_their_root() -> None:
    heap, view = Heap(), View(1, 8, (2,), (8,), "<f8", "")
    heap.objects[1] = "root"
    heap.keep_view(view, "window")
    assert heap.view(View(1, 8, (2,), (8,), "<f8", "")) == "window"
    assert heap.view(View(1, 0, (2,), (8,), "<f8", "")) is None
    assert heap.take(1) == "root"
    assert heap.view(view) is None
    heap.keep_view(view, "window")
    heap.clear()
    assert heap.view(view) is None


def test_few_views_of_an_array_are_remembered() -> None:
    heap = Heap()
    for start in range(1_000):
        heap.keep_view(View(1, start, (), (), "<f8", ""), start)
    assert sum(heap.view(View(1, start, (), (), "<f8", "")) is not None for start in range(1_000)) <= 32
