"""A process that is kept: what it is given, and what is done before it is started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from gpu_backend.engine.detached import read_identity
from gpu_backend.engine.kept_process import KeptProcess

_NOTE = "import os, pathlib, signal; pathlib.Path(os.environ['NOTE']).touch(); signal.pause()"


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_what_is_left_of_one_that_was_killed_is_cleared_before_the_next_is_started(tmp_path: Path) -> None:
    note, cleared = tmp_path / "started", []

    def clear() -> None:
        cleared.append(note.exists())
        note.unlink(missing_ok=True)

    async def story() -> None:
        command, variables = [sys.executable, "-c", _NOTE], {**os.environ, "NOTE": str(note)}
        kept = KeptProcess("it", command, tmp_path, tmp_path / "log", variables, clear)
        kept.want()
        keeping = asyncio.create_task(anext(kept.keep()))
        await until(note.exists)
        first = read_identity(tmp_path / "it.json")
        assert first is not None
        os.kill(first.pid, signal.SIGKILL)
        await keeping  # it was started again
        await until(note.exists)
        assert read_identity(tmp_path / "it.json") not in (None, first)
        adopted = KeptProcess("it", command, tmp_path, tmp_path / "log", variables, clear)
        adopted.want()
        assert cleared == [False, True], "nothing is cleared from under one that runs"
        await adopted.stop()
        assert read_identity(tmp_path / "it.json") is None

    asyncio.run(story())
