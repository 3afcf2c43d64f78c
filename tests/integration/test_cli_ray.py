"""A pool on Ray from the terminal: its head is started, a machine joins and is looked after, and all of it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpu_backend.pool import running, state
from tests.integration.conftest import processes_with, until
from tests.integration.terminal import Terminal, operating
from tests.ray_nodes import NEEDS_RAY
from tests.spare_ports import spare_ports

pytestmark = [pytest.mark.ray, NEEDS_RAY, pytest.mark.timeout(600)]


@pytest.fixture
def head() -> Iterator[Terminal]:
    ports = [str(port) for port in spare_ports(2)]
    options = ("--name", "lab", "--engine", "ray", "--head", "127.0.0.1")
    with TemporaryDirectory(prefix="gwb") as home:
        with operating(Path(home), *options, "--nodes-port", ports[0], "--ray-port", ports[1]) as terminal:
            yield terminal
        assert not processes_with(home)


@pytest.fixture
def machine(head: Terminal) -> Iterator[Terminal]:
    with TemporaryDirectory(prefix="gwb") as home:
        terminal = Terminal(Path(home))
        yield terminal
        terminal.run("node", "down", "--now")
        assert not processes_with(home)


def states(head: Terminal) -> dict[str, str]:
    return {one["name"]: one["state"] for one in head.json("node", "list")["nodes"]}


def cluster_seen(terminal: Terminal, status: int = 0) -> str:
    findings = {one["subject"]: one for one in terminal.json("doctor", status=status)["findings"]}
    return str(findings["Ray cluster"]["found"])


def roles(terminal: Terminal, what: str) -> set[str]:
    return {one.role for one in running.processes(state.at(terminal.home / "state" / "gpu-workbench" / what))}


def test_a_machine_joins_is_looked_after_and_outlives_the_pool(head: Terminal, machine: Terminal) -> None:
    (own,) = states(head)
    assert head.json("pool", "status")["engine"] == "ray"
    assert "engine" in head.run("pool", "status").stdout
    invited = head.json("node", "invite", "m")
    words = ("node", "join", invited["address"], "--listen", "127.0.0.2", "--devices", "cpu")
    joined = machine.json(*words, typed=invited["token"] + "\n")
    assert (joined["name"], joined["pool"], joined["state"], joined["devices"]) == ("m", "lab", "up", 1)
    assert states(head) == {own: "up", "m": "up"}
    assert "lets this machine in" in cluster_seen(head)
    assert "lets this machine in" in cluster_seen(machine)
    head.json("node", "drain", "m")
    assert states(head) == {own: "up", "m": "draining"}
    head.json("node", "resume", "m")
    machine.json("node", "down")
    assert not roles(machine, "node")
    assert machine.json("node", "up")["name"] == "m"
    head.json("pool", "down")
    assert not roles(head, "pool")
    assert roles(machine, "node") == {"supervisor", "ray"}, "what its own operator started"
    assert head.json("pool", "up")["engine"] == "ray"
    until(lambda: states(head) == {own: "up", "m": "up"}, 180.0)


def test_settings_that_changed_count_on_all_machines_and_the_engine_stays(head: Terminal) -> None:
    settings = head.home / "state" / "gpu-workbench" / "pool" / "pool.toml"
    before = settings.read_text()
    settings.write_text(before.replace('# policy = "fair_share"', 'policy = "fifo"'))
    head.json("pool", "reload")
    until(lambda: [one["policy"] for one in head.json("pool", "status")["devices"]] == ["fifo"], 180.0)
    settings.write_text(before.replace('engine = "ray"', 'engine = "local"'))
    refused = head.run("pool", "reload")
    assert (refused.returncode, "The engine cannot change while the pool is up" in refused.stderr) == (1, True)
    settings.write_text(before)
