"""A second machine from the terminal: invited on the head, joined on the machine, looked at, drained, taken out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.integration.conftest import processes_with, until
from tests.integration.terminal import Terminal, operating
from tests.spare_ports import spare_port

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    options = ("--name", "lab", "--head", "127.0.0.1", "--nodes-port", str(spare_port()))
    with operating(tmp_path_factory.mktemp("head"), *options) as terminal:
        yield terminal


@pytest.fixture
def machine(head: Terminal) -> Iterator[Terminal]:
    with TemporaryDirectory(prefix="gwb") as home:
        terminal = Terminal(Path(home))
        yield terminal
        terminal.run("node", "down", "--now")
        assert not processes_with(home)


def states(head: Terminal) -> dict[str, str]:
    return {one["name"]: one["state"] for one in head.json("node", "list")["nodes"]}


def findings(terminal: Terminal, status: int = 0) -> dict[str, dict[str, str]]:
    return {one["subject"]: one for one in terminal.json("doctor", status=status)["findings"]}


def join(head: Terminal, machine: Terminal) -> dict[str, object]:
    invited = head.json("node", "invite", "m")
    assert invited["token"] not in invited["command"]
    words = ("node", "join", invited["address"], "--listen", "127.0.0.2", "--devices", "cpu")
    return machine.json(*words, typed=invited["token"] + "\n")


def test_a_machine_joins_and_is_looked_after(head: Terminal, machine: Terminal) -> None:
    own = next(iter(states(head)))
    joined = join(head, machine)
    assert (joined["name"], joined["pool"], joined["state"], joined["devices"]) == ("m", "lab", "up", 1)
    assert states(head) == {own: "up", "m": "up"}
    told = head.run("pool", "status").stdout
    assert "m/cpu0" in told
    assert "Machines" in told
    assert findings(machine)["this machine as a node"]["found"] == "m of lab: up"
    head.json("node", "drain", "m")
    assert states(head) == {own: "up", "m": "draining"}
    head.json("node", "resume", "m")
    assert states(head) == {own: "up", "m": "up"}
    machine.json("node", "down")
    assert findings(machine, status=1)["this machine as a node"]["remedy"] == "Run `workbench node up`."
    assert machine.json("node", "up")["name"] == "m"
    head.json("node", "remove", "m")
    assert states(head) == {own: "up"}
    assert "it was removed there" in findings(machine, status=1)["this machine as a node"]["found"]
    machine.json("node", "down")
    assert join(head, machine)["state"] == "up"


def test_a_pool_that_is_down_finds_its_machine_ready_when_it_is_up_again(head: Terminal, machine: Terminal) -> None:
    join(head, machine)
    head.json("pool", "down")
    shut = findings(machine, status=1)["head's port"]
    assert "connection refused" in shut["found"]
    assert "`nodes_port`" in shut["remedy"]
    machine.json("node", "down")
    begun = machine.run("node", "up")  # as after a power cut, sooner than the head
    assert begun.returncode == 1
    assert "The node is up, and goes on trying to reach its pool. Nobody answers at tcp://" in begun.stderr
    head.json("pool", "up")
    until(lambda: states(head).get("m") == "up")
    (own,) = (name for name in states(head) if name != "m")
    head.json("node", "drain", own)
    opened = findings(head)
    assert opened["session"]["state"] == "ok"  # it was on the machine: nowhere else is one to be had
    head.json("node", "resume", own)


def test_a_pool_of_one_machine_invites_nobody(tmp_path: Path) -> None:
    with operating(tmp_path) as alone:
        refused = alone.run("node", "invite", "m")
        assert refused.returncode == 1
        assert "This pool hears no other machines. Set nodes_host" in refused.stderr
        assert "Machines" not in alone.run("pool", "status").stdout
    assert "no record in" in alone.run("node", "up").stderr
