"""A pool that needs time for an executor: the notebook waits, and need not be told to try again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gpu_backend.pool import commands
from gpu_backend.pool.state import PoolState
from gpu_backend.transport.asking import ask
from gpu_backend.wire.control import (
    CloseSession,
    Denied,
    FromGateway,
    OpenSession,
    RenewTicket,
    RestartSession,
    ToGateway,
)
from gpu_backend.wire.errors import ExecutorStarting, RefusalCode
from kernelproxy import settings
from kernelproxy.session.handover import TICKET_VARIABLE, write
from kernelproxy.sessions import open_session
from kernelproxy.settings import ClientSettings
from tests.integration.notebook_pool import cpu_pool
from tests.unit.workbench.scripted_gateway import ScriptedGateway

from .conftest import granted


class SlowGateway(ScriptedGateway):
    """Says "not yet" to the first two requests, then passes them on to a real pool."""

    def __init__(self, pool: PoolState) -> None:
        self.door = commands.operator_door(pool)
        super().__init__()
        self.allowed.replace([self.door.keys.public])
        self.answer = self._slowly

    def _slowly(self, message: ToGateway) -> FromGateway:
        if not isinstance(message, CloseSession) and len(self.asked) <= 2:
            return Denied(0, RefusalCode.STARTING, "Its executor is still starting.")
        try:
            return ask(self.door, message)
        except ExecutorStarting as not_yet:  # the real one may be slow as well
            return Denied(0, RefusalCode.STARTING, str(not_yet))


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[SlowGateway]:
    with cpu_pool(tmp_path) as pool:
        gateway = SlowGateway(pool)
        wanted = ClientSettings(
            gateway=gateway.endpoint, server_key=gateway.keys.public.decode(), key_file=pool.operator_key
        )
        settings.save(wanted)
        yield gateway
        gateway.close()


def test_a_notebook_waits_for_its_executor(slow: SlowGateway) -> None:
    session = open_session()
    assert session.memory()["total_bytes"] > 0
    session.close(release=True)
    assert len(slow.asked_for(OpenSession)) >= 3


def test_a_restarted_notebook_waits_for_the_executor_of_its_session(
    slow: SlowGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = granted(slow.door, OpenSession(0, "a.ipynb"))
    with suppress(ExecutorStarting):
        ask(slow.door, RestartSession(0, held.session))
    handed = tmp_path / "handed.json"
    write(RenewTicket(0, held.session), handed)
    monkeypatch.setenv(TICKET_VARIABLE, str(handed))

    session = open_session()

    assert (session.ticket.session, session.epoch) == (held.session, 2)
    assert session.memory()["total_bytes"] > 0
    assert not session.is_ours
    session.close(release=True)
