"""Two notebooks attached to one kernel: one session, and both see what either does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import sessions, warm_pool
from tests.integration.running_kernel import Notebook, notebook

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with warm_pool(tmp_path_factory.mktemp("shared")) as own:
        yield own


@pytest.fixture(scope="module")
def both(pool: PoolState) -> Iterator[tuple[Notebook, Notebook]]:
    with notebook() as one:
        other = Notebook(one.manager)
        yield one, other
        other.client.stop_channels()


def test_what_one_computes_both_see_and_can_use(pool: PoolState, both: tuple[Notebook, Notebook]) -> None:
    one, other = both
    cell = one.client.execute("import cupy as cp\nx = cp.arange(10)\nprint(float(x.sum()))")
    assert "45.0" in one.collect(cell)
    assert "45.0" in other.collect(cell)
    assert "90.0" in other.run("print(float((x * 2).sum()))")
    assert len(sessions(pool)) == 1


def test_an_error_of_one_is_seen_by_both_and_is_told_once(both: tuple[Notebook, Notebook]) -> None:
    one, other = both
    cell = one.client.execute("cp.concatenate([cp.zeros((2, 3)), cp.zeros((4, 5))])")
    assert "All arrays must have same shape" in one.collect(cell)
    assert "All arrays must have same shape" in other.collect(cell)
    assert "45.0" in other.run("print(float(x.sum()))")


def test_either_may_ask_for_the_status(both: tuple[Notebook, Notebook]) -> None:
    for mine in both:
        assert "connected" in mine.run("%gpu status")


def test_one_interrupts_what_the_other_waits_for(both: tuple[Notebook, Notebook]) -> None:
    one, other = both
    cell = one.start("while True: float(x.sum())")
    other.manager.interrupt_kernel()
    assert "KeyboardInterrupt" in one.collect(cell)
    assert "KeyboardInterrupt" in other.collect(cell)
    assert "45.0" in other.run("print(float(x.sum()))")
