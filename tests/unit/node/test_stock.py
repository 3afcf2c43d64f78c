"""How many executors to start and to let go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.node.stock import pause_after, to_let_go, to_start

COUNT = st.integers(0, 12)


def test_a_device_at_rest_keeps_its_stock() -> None:
    assert to_start(waiting=0, starting=0, warm=0, target=1) == 1
    assert to_start(waiting=0, starting=1, warm=0, target=1) == 0
    assert to_start(waiting=0, starting=0, warm=1, target=1) == 0


def test_whoever_waits_gets_one_beyond_the_stock() -> None:
    assert to_start(waiting=1, starting=0, warm=0, target=1) == 2
    assert to_start(waiting=1, starting=0, warm=0, target=0) == 1


@given(COUNT, COUNT, COUNT, COUNT)
def test_never_more_than_are_missing_nor_too_many_at_a_time(
    waiting: int, starting: int, warm: int, target: int
) -> None:
    count = to_start(waiting, starting, warm, target)
    assert count >= 0
    assert starting + count <= max(4, starting)
    assert count == 0 or starting + warm + count <= waiting + target
    assert count > 0 or starting >= 4 or starting + warm >= waiting + target


@given(st.lists(st.floats(0, 100), max_size=8), COUNT, COUNT)
def test_only_stale_surplus_is_let_go(idle: list[float], waiting: int, target: int) -> None:
    count = to_let_go(idle, waiting, target, linger_seconds=50.0)
    assert 0 <= count <= sum(seconds > 50.0 for seconds in idle)
    assert count == 0 or len(idle) - count >= target + waiting


def test_failing_starts_are_tried_ever_later() -> None:
    assert pause_after(0) == 0.0
    pauses = [pause_after(failures) for failures in range(1, 12)]
    assert pauses == sorted(pauses)
    assert pauses[0] <= 1.0
    assert pauses[-1] == 30.0
