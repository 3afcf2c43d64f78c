"""Which results are sure to be had: by counting, never by hoping."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernelproxy.stream.memory_model import MemoryModel


def test_what_is_left_shrinks_and_grows() -> None:
    model = MemoryModel(1 << 20)
    assert model.is_sure(1 << 17, [])
    model.note(1, 1 << 19)
    assert not model.is_sure(1 << 17, [])
    assert model.is_sure(1 << 16, [])
    assert model.is_sure(1 << 17, [1]), "a handle that is about to go counts as gone"
    model.forget(1)
    model.forget(1)
    assert model.held_bytes == 0


def test_a_limit_can_be_lowered() -> None:
    model = MemoryModel(1 << 30)
    assert model.is_sure(1 << 24, [])
    model.set_limit(1 << 24)
    assert not model.is_sure(1 << 24, [])
    model.note(1, 1 << 25)
    assert not model.is_sure(1 << 14, [])


def test_without_a_limit_what_the_device_has_counts_and_large_results_are_waited_for() -> None:
    model = MemoryModel(0, 1 << 36)
    assert model.is_sure(1 << 30, [])
    assert not model.is_sure((1 << 30) + 1, [])
    model.set_limit(1 << 36)
    assert model.is_sure((1 << 30) + 1, [])


@given(st.lists(st.integers(1, 1 << 18), max_size=40))
def test_sure_results_never_pass_the_limit(sizes: list[int]) -> None:
    model = MemoryModel(1 << 20)
    for handle, size in enumerate(sizes):
        if model.is_sure(size, []):
            model.note(handle, size)
    assert model.held_bytes <= min(sum(sizes), model.limit_bytes)
