"""For how long the start of a kernel waits for its pool, and what becomes of it then."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest
from tornado.web import HTTPError

from gpu_backend.wire.control import OpenSession
from gpu_backend.wire.errors import AnswerOverdue
from kernelproxy import settings
from kernelproxy.session.gateway_client import request_async
from kernelproxy.session.handover import TICKET_VARIABLE, read
from tests.unit.workbench.scripted_gateway import ScriptedGateway
from tests.unit.workbench.test_provisioner import environment, provisioner
from workbench.provisioner import RemoteGpuProvisioner

__all__ = ["provisioner"]


@pytest.fixture
def given(provisioner: RemoteGpuProvisioner, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each request may take, seconds, of a dialog that waits for a fifth of one."""
    provisioner.lease_timeout = 0.2
    given = []

    async def noting(settings: Any, message: Any, seconds: float) -> Any:
        given.append(seconds)
        return await request_async(settings, message, seconds)

    monkeypatch.setattr("workbench.provisioner.request_async", noting)
    return given


def test_silence_is_given_as_long_as_the_dialog_may_wait(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway, given: list[float]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        wanted = settings.load()
        settings.save(msgspec.structs.replace(wanted, gateway=f"tcp://127.0.0.1:{silent.getsockname()[1]}"))
        with pytest.raises(HTTPError, match="The GPU pool cannot be reached"):
            asyncio.run(provisioner.pre_launch(env=environment()))
    assert given == [0.2]


def test_a_busy_pool_is_the_kernels_to_wait_for(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway, given: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has taken the request, and answers too late for the dialog: no fault that anybody could do something about."""

    def overdue(*_: object) -> NoReturn:
        raise AnswerOverdue("The pool took the request and did not answer.")

    monkeypatch.setattr("kernelproxy.session.gateway_client.ask_async", overdue)
    kwargs = asyncio.run(provisioner.pre_launch(env=environment("a")))
    handed = read(Path(kwargs["env"][TICKET_VARIABLE]))
    assert isinstance(handed, OpenSession)
    assert handed.label == "a"
    assert given == [0.2]
