"""How long a supervisor waits before it starts another gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from gpu_backend.engine.detached import ProcessId, Watched, write_identity
from gpu_backend.pool import state, supervisor
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import REPLACED, PoolState

_GATEWAYS = 6


def pauses(pool: PoolState, monkeypatch: pytest.MonkeyPatch, ended: Callable[[ProcessId], None]) -> list[float]:
    """Return the pauses between gateways that end at once, of each of which ``ended`` is told."""
    waited: list[float] = []

    class Played(supervisor.Supervisor):
        _begun = 0

        def _adopt(self) -> Watched | None:
            return None

        def _start(self) -> Watched | None:
            self._begun += 1
            if self._begun == _GATEWAYS:
                pool.stopped_note.touch()
            return cast(Watched, SimpleNamespace(identity=ProcessId(self._begun, 1)))

        async def _follow(self, gateway: Watched) -> None:
            ended(gateway.identity)

    async def noted(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(supervisor.asyncio, "sleep", noted)
    asyncio.run(Played(pool, PoolSettings(), None)._keep_gateway())
    return waited


@pytest.fixture
def pool(tmp_path: Path) -> PoolState:
    made = state.at(tmp_path / "pool")
    made.make()
    return made


def test_gateways_that_end_by_themselves_are_started_ever_later(
    pool: PoolState, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = pauses(pool, monkeypatch, lambda identity: None)
    assert len(waited) == _GATEWAYS - 1
    assert waited == sorted(waited)
    assert waited[-1] > waited[0]


def test_a_gateway_that_was_ended_for_other_settings_is_followed_at_once(
    pool: PoolState, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pauses(pool, monkeypatch, lambda identity: write_identity(pool.process_file(REPLACED), identity)) == []
