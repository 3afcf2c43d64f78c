"""Places of a pool that nobody uses are free again soon, whatever became of those who were given them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpu_backend.transport import local
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.wire import control
from gpu_backend.wire.errors import PoolUnreachable
from kernelproxy.session import lease, links
from kernelproxy.sessions import open_session
from kernelproxy.settings import CONFIG_VARIABLE, ClientSettings, save
from tests.integration.conftest import MakePool, RunningPool, granted, make_pool, until

__all__ = ["make_pool"]

#: Asks for a session in the name of a notebook, and is killed before it can come for it.
ASKER = """
import os, signal, sys
from kernelproxy.sessions import open_session
from kernelproxy.session import opening
opening.Lease = lambda *args, **more: os.kill(os.getpid(), signal.SIGKILL)
open_session("gone")
"""


@pytest.fixture
def pool(make_pool: MakePool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunningPool:
    """A pool of one place, and this process as ada's notebook."""
    made = make_pool(sessions_per_device=1, warm_executors_per_device=1)
    settings = ClientSettings(
        gateway=made.ada.endpoint, server_key=made.ada.server_key.decode(), key_file=made.state.root / "ada.key"
    )
    monkeypatch.setenv(CONFIG_VARIABLE, str(save(settings, tmp_path / "client.toml")))
    monkeypatch.setattr(lease, "_GREET_SECONDS", 0.5)
    return made


def test_a_firewall_that_opens_only_the_gateways_port_does_not_fill_the_pool(
    pool: RunningPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blocked(endpoint: str, *_: object) -> None:
        raise ConnectionLost(f"{endpoint}: timed out")

    monkeypatch.setattr(links, "reach_far", blocked)
    monkeypatch.setattr(local, "here", lambda: "another host")
    for _ in range(3):  # each finds the one place free
        with pytest.raises(PoolUnreachable, match="firewall"):
            open_session()
        until(lambda: pool.sessions() == {})
    monkeypatch.undo()
    assert granted(pool.ada, control.OpenSession(0, "a colleague's")).epoch == 1


def test_a_notebook_that_is_killed_before_it_comes_loses_its_place(
    pool: RunningPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-c", ASKER], check=False, timeout=200)
    assert len(pool.sessions()) == 1
    until(lambda: pool.sessions() == {})
