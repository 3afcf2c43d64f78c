"""A pool's own beginning and end: up, down, embedded, over the network, with the real executor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.pool import commands, people, state
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door, ask
from gpu_backend.wire import control
from gpu_backend.wire.errors import PoolRefusal, PoolUnreachable
from kernelproxy import settings as client_settings
from tests.spare_ports import spare_port

from .conftest import PLAIN_EXECUTOR, MakePool, granted, processes_with, until

OWNER = """
import sys, signal
from pathlib import Path
from gpu_backend.pool import commands, settings, state
plain = settings.PoolSettings(devices="cpu", executor_command=tuple(sys.argv[2:]))
print(commands.embedded(state.at(Path(sys.argv[1])), plain), flush=True)
signal.pause()
"""


def test_up_twice_is_up_once(make_pool: MakePool) -> None:
    pool = make_pool()
    before = [pool.process(name) for name in ("supervisor", "gateway", "agent")]
    commands.up(pool.state)
    assert [pool.process(name) for name in ("supervisor", "gateway", "agent")] == before


def test_down_ends_everything_and_up_starts_afresh(make_pool: MakePool) -> None:
    pool = make_pool()
    ticket = pool.open()
    executor = pool.executor(ticket)
    commands.down(pool.state)
    assert not executor.is_running
    assert processes_with(str(pool.state.root)) == []
    assert processes_with(str(pool.state.runtime)) == []
    assert not pool.state.runtime.exists()
    with pytest.raises(PoolUnreachable):
        commands.status(pool.state)
    commands.down(pool.state)  # again, and nothing happens
    commands.up(pool.state)
    assert pool.sessions() == {}
    assert pool.open().epoch == 1  # ada is still known


def test_down_ends_a_pool_of_several_sessions_without_killing_its_agent(make_pool: MakePool) -> None:
    pool = make_pool()
    executors = [pool.executor(pool.open()) for _ in range(3)]  # their ends are news to the agent as it is stopped
    agent = pool.process("agent")
    commands.down(pool.state)
    assert not any(process.is_running for process in [agent, *executors])
    log = (pool.state.logs / "gateway.log").read_text()
    assert f"started agent, pid {agent.pid}" in log
    assert "killed" not in log


def test_down_ends_a_pool_whose_processes_were_killed(make_pool: MakePool) -> None:
    pool = make_pool()
    executor = pool.executor(pool.open())
    for name in ("supervisor", "gateway", "agent"):
        os.kill(pool.process(name).pid, signal.SIGKILL)
    commands.down(pool.state)
    assert not executor.is_running
    assert processes_with(str(pool.state.runtime)) == []


def test_a_pool_that_cannot_come_up_quotes_its_log(make_pool: MakePool) -> None:
    with pytest.raises(PoolRefusal, match="No GPU can be offered here"):
        make_pool(devices="cuda")


def test_an_embedded_pool_ends_with_its_owner(make_pool: MakePool) -> None:
    root = make_pool().state.root.with_name("embedded")
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(root), *PLAIN_EXECUTOR], stdout=subprocess.PIPE, text=True
    )
    try:
        assert owner.stdout is not None
        with owner.stdout as lines:
            settings = client_settings.load(Path(lines.readline().strip()))
        owners = Door(settings.gateway, settings.server_key.encode(), curve.load(settings.key_file))
        assert granted(owners, control.OpenSession(0, "x")).epoch == 1
        pool = state.at(root)
        supervisor = read_identity(pool.process_file("supervisor"))
    finally:
        owner.kill()
        owner.wait()
    assert supervisor is not None
    until(lambda: processes_with(str(pool.root)) == [] and processes_with(str(pool.runtime)) == [])


def test_a_pool_on_the_network_is_reached_by_its_address(make_pool: MakePool) -> None:
    pool = make_pool(listen_host="127.0.0.1", listen_port=spare_port(), advertise_host="localhost")
    where = people.address(pool.state)
    assert where.gateway.startswith("tcp://localhost:")
    view = ask(Door(where.gateway, where.server_key.encode(), pool.ada.keys), control.AskPool(0))
    assert isinstance(view, control.PoolView)
    assert view.user == "ada"


def test_the_real_executor_serves_in_a_pool(make_pool: MakePool) -> None:
    pool = make_pool(executor_command=(), listen_host="127.0.0.1", listen_port=spare_port(), advertise_host="localhost")
    pool.wait_warm()
    ticket = pool.open()
    assert ticket.device_kind == "cpu"
    network = [endpoint for endpoint in ticket.endpoints if endpoint.startswith("tls:")]
    assert [endpoint.rpartition(":")[0] for endpoint in network] == ["tls://localhost"]
    executor = pool.executor(ticket)
    fresh = pool.restart(ticket)
    assert fresh.epoch == 2
    until(lambda: not executor.is_running)
    ask(pool.ada, control.CloseSession(0, ticket.session))
    until(lambda: pool.sessions() == {})


def test_no_secret_is_in_any_command_line_environment_or_log(make_pool: MakePool) -> None:
    pool = make_pool()
    pool.open("secret plan.ipynb")
    secrets = [path.read_bytes().split()[1] for path in pool.state.root.rglob("*.key")]
    assert len(secrets) == 4  # gateway, agent, operator, ada
    shown = b"".join(path.read_bytes() for path in pool.state.logs.iterdir())
    for line in processes_with(str(pool.state.root)) + processes_with(str(pool.state.runtime)):
        shown += line.encode()
    for name in ("supervisor", "gateway", "agent"):
        shown += Path(f"/proc/{pool.process(name).pid}/environ").read_bytes()
    assert not [secret for secret in secrets if secret in shown]
    assert b"secret plan" not in shown


def test_settings_are_kept_from_the_first_start(make_pool: MakePool) -> None:
    pool = make_pool(name="the lab's")
    commands.down(pool.state)
    view = commands.up(pool.state, PoolSettings(name="another"))
    assert view.pool == "the lab's"
