"""Why an agent did not start is told of that start, and of no later one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpu_backend.engine.detached import ProcessId, write_identity
from gpu_backend.pool import commands, setup, state
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.wire.errors import PoolUnreachable
from gpu_backend.wire.views import PoolView


@pytest.mark.parametrize("begin", [commands.reload, commands.up])
def test_an_agent_that_starts_now_is_not_told_by_the_failure_of_one_before(
    begin: Callable[[state.PoolState], PoolView], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = state.at(tmp_path / "pool")
    setup.prepare(pool, PoolSettings())
    pool.problem_note.write_text("The former settings were wrong.")
    is_up = PoolView(0, "pool", "1", "ada", 0.0, (object(),), ())  # type: ignore[arg-type]
    answers: Iterator[PoolView | None] = iter([None, is_up])

    def status(_: state.PoolState) -> PoolView:
        if (answer := next(answers)) is None:
            raise PoolUnreachable("It is not up yet.")
        return answer

    monkeypatch.setattr(commands, "status", status)
    write_identity(pool.process_file("supervisor"), ProcessId.mine())
    monkeypatch.setattr(commands, "end_servants", lambda *_: None)
    assert begin(pool) is is_up
