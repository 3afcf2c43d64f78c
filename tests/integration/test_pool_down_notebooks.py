"""Notebooks whose pool goes down under them: told what happened, and at work again when it is up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.pool import commands
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from gpu_backend.wire.errors import PoolRefusal, PoolUnreachable
from tests.faults.notebook import Notebook
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until
from tests.integration.running_kernel import notebook as kernel

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[PoolState]:
    with cpu_pool(tmp_path, PoolSettings(devices="cpu")) as own:
        yield own


@pytest.fixture
def notebook(pool: PoolState) -> Iterator[Callable[[], Notebook]]:
    with ExitStack() as stack:

        def begin() -> Notebook:
            one = stack.enter_context(Notebook(pool.root / "client.toml"))
            assert one.value("import cupy as cp; x = cp.arange(1000.0); float(x.sum())") == "499500.0"
            return one

        yield begin


def is_told_what_happened(told: object) -> None:
    assert "The pool was stopped by its operator. The arrays of this notebook are lost with it." in str(told)
    assert "run your cells again from the top" in str(told)
    assert "keeps your arrays" not in str(told)  # a promise for a network that is gone, made after a minute of trying


def test_a_notebook_is_told_what_happened_and_comes_back_by_itself(
    pool: PoolState, notebook: Callable[[], Notebook]
) -> None:
    mine = notebook()
    commands.down(pool)
    for _ in range(2):
        told = mine.run("float(x.sum())")
        assert told.error == "PoolUnreachable"
        is_told_what_happened(told)

    commands.up(pool)
    lost = mine.run("float(x.sum())")
    assert lost.error == "SessionLost"
    assert lost.text.startswith(
        "The pool was stopped by its operator. The arrays made so far are lost; a fresh executor"
    )
    assert "is not in this session" in mine.run("float(x.sum())").text
    assert mine.value("y = cp.ones(10); float(y.sum())") == "10.0"
    assert len(sessions(pool)) == 1
    mine.end()
    wait_until(lambda: not sessions(pool))


def test_notebooks_that_slept_meanwhile_hear_of_it_once_and_go_on(
    pool: PoolState, notebook: Callable[[], Notebook]
) -> None:
    both = [notebook(), notebook()]
    commands.down(pool)
    commands.up(pool)
    for one in both:
        assert one.run("float(x.sum())").text.startswith("The pool was stopped by its operator.")
        assert one.value("float(cp.ones(3).sum())") == "3.0"
    assert len(sessions(pool)) == 2


def test_who_computes_while_the_pool_goes_down_is_told(pool: PoolState, notebook: Callable[[], Notebook]) -> None:
    mine = notebook()
    mine.begin("while True: x = x + 1; float(x[0])")
    commands.down(pool)
    told = mine.finish()
    assert told.error in ("PoolUnreachable", "SessionLost", "PoolRefusal")
    assert "stopped by its operator" in str(told)
    commands.up(pool)
    mine.run("float(x.sum())")  # told once more, if it was not told of its successor yet
    assert mine.value("float(cp.ones(3).sum())") == "3.0"


def test_a_kernel_comes_back_and_its_session_is_given_back(pool: PoolState) -> None:
    with kernel() as running:
        assert running.run("import cupy as cp\nprint(float(cp.arange(10).sum()))") == "45.0\n"
        (before,) = sessions(pool)
        commands.down(pool)
        is_told_what_happened(running.run("float(cp.ones(3).sum())"))
        commands.up(pool)
        assert "SessionLost: The pool was stopped by its operator." in running.run("float(cp.ones(3).sum())")
        assert running.run("float(cp.ones(3).sum())") == "3.0"
        (after,) = sessions(pool)
        assert after.session != before.session
        running.restart()
        (kept,) = sessions(pool)
        assert (kept.session, kept.epoch) == (after.session, 2)
    wait_until(lambda: sessions(pool) == ())  # it is closing until its executor has ended


def test_settings_are_reloaded_and_no_session_ends(pool: PoolState, notebook: Callable[[], Notebook]) -> None:
    mine = notebook()
    (before,) = sessions(pool)
    wait_until(lambda: commands.status(pool).sessions)
    pool.settings_file.write_text('devices = "cpu"\nname = "renamed"\npolicy = "tgs"\nmax_sessions_per_user = 1\n')
    view = commands.reload(pool)
    assert view.pool == "renamed"
    wait_until(lambda: {device.policy for device in commands.status(pool).devices} == {"tgs"})
    wait_until(lambda: [one.state for one in sessions(pool)] == ["serving"])
    assert mine.value("float(x.sum())") == "499500.0"
    assert [(one.session, one.epoch) for one in sessions(pool)] == [(before.session, 1)]
    with Notebook(pool.root / "client.toml") as other:
        assert "1 of 1 sessions" in other.run("import cupy as cp; cp.ones(1)").text


def test_what_cannot_be_reloaded_changes_nothing(pool: PoolState, notebook: Callable[[], Notebook]) -> None:
    mine = notebook()
    running = {role: read_identity(pool.process_file(role)) for role in ("supervisor", "gateway", "agent")}
    for text, said in (
        ("sessions_per_device = 0", "sessions_per_device"),
        ("nonsense = 1", "nonsense"),
        ("cpu_devices = 2", "cannot change while there are sessions"),
    ):
        pool.settings_file.write_text(f'devices = "cpu"\n{text}\n')
        with pytest.raises(PoolRefusal, match=said):
            commands.reload(pool)
    assert {role: read_identity(pool.process_file(role)) for role in running} == running
    assert mine.value("float(x.sum())") == "499500.0"


def test_only_a_pool_that_is_up_is_reloaded(pool: PoolState) -> None:
    commands.down(pool)
    with pytest.raises(PoolUnreachable, match="is not up"):
        commands.reload(pool)
