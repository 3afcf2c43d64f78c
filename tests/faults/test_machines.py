"""A second machine: it joins under load, takes no more sessions, is killed; its neighbours notice nothing."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpu_backend.pool import commands, joining, machines
from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door
from gpu_backend.wire.errors import NotAuthorized, PoolRefusal, PoolUnreachable
from tests.integration.conftest import MakePool
from tests.spare_ports import spare_ports

from .conftest import Faulty, until
from .machines import ADDRESS, Machine, machine, node, only, sessions_on
from .notebook import Notebook

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("undisturbed")]

_ELSEWHERE = "from gpu_backend.transport import local; local.here = lambda: 'another machine'"
_BEGIN = "old = cp.arange(5); float(old[1])"
_GO_ON = "(old + 1).tolist()"


@pytest.fixture(scope="module")
def faulty(make_pool: MakePool) -> Iterator[Faulty]:
    ports = spare_ports(2)
    with TemporaryDirectory(prefix="gwb") as directory:
        yield Faulty(
            make_pool, Path(directory), listen_host="127.0.0.1", listen_port=ports[0], nodes_host="127.0.0.1",
            nodes_port=ports[1], node_lost_seconds=15.0,  # more than an agent is kept from the processor
        )  # fmt: skip


@pytest.fixture
def other(faulty: Faulty, undisturbed: None) -> Iterator[Machine]:
    """A machine that has joined while the neighbour computes, on the head."""
    with machine(faulty.pool.state) as one:
        one.join()
        yield one


@pytest.fixture
def there(faulty: Faulty, other: Machine) -> Iterator[Notebook]:
    """A notebook whose session is on that machine, and which sees it as from a third."""
    with only(faulty.pool.state, other.name), Notebook(faulty.config()) as notebook:
        notebook.run(_ELSEWHERE)
        notebook.value(_BEGIN)
        assert [one.node for one in sessions_on(faulty.pool.state, other.name)] == [other.name]
        yield notebook


def test_the_sessions_of_a_joined_machine_are_reached_at_its_own_address(there: Notebook) -> None:
    assert there.value("[e.rpartition(':')[0] for e in current_session().ticket.endpoints][-1]") == f"'tls://{ADDRESS}'"
    there.run("import os, socket; end = os.dup(current_session().pipeline.connection._link._socket.fileno())")
    assert there.value("socket.socket(fileno=end).getpeername()[0]") == f"'{ADDRESS}'"
    assert there.value(_GO_ON) == "[1, 2, 3, 4, 5]"


def test_a_drained_machine_keeps_its_sessions_and_gets_no_new_ones(
    faulty: Faulty, other: Machine, there: Notebook
) -> None:
    head = faulty.pool.state
    machines.drain(head, other.name)
    for one in commands.status(head).nodes:
        if one.name != other.name:
            machines.resume(head, one.name)
    with Notebook(faulty.config("eve")) as newcomer:
        newcomer.value(_BEGIN)
        assert len(sessions_on(head, other.name)) == 1
    assert (node(head).state, there.value(_GO_ON)) == ("draining", "[1, 2, 3, 4, 5]")
    with pytest.raises(PoolRefusal, match="1 sessions run on this machine"):
        joining.down(other.state)
    there.end()
    until(lambda: not sessions_on(head, other.name))
    joining.down(other.state)
    assert not other.processes()
    assert joining.up(other.state).node.state == "draining"


def test_the_notebooks_of_a_machine_that_is_lost_are_told_so_in_one_sentence(
    faulty: Faulty, other: Machine, there: Notebook
) -> None:
    other.kill()
    machines.resume(faulty.pool.state, next(n.name for n in commands.status(faulty.pool.state).nodes if n.name != "m"))
    lost = there.run(_GO_ON)
    assert (lost.error, lost.notes) == ("SessionLost", "")
    first, rest = lost.text.split(" s. ", 1)
    assert first.rpartition(" ")[0] == "The node m was lost: nothing was heard of it for"
    assert rest == (
        "The arrays made so far are lost; a fresh executor (epoch 2) has taken over. Run the cells again that make "
        "your arrays."
    )
    assert there.value(f"{_BEGIN}; {_GO_ON}") == "[1, 2, 3, 4, 5]"
    assert node(faulty.pool.state).state == "lost"


def test_a_gateway_that_is_killed_finds_the_machine_and_its_sessions_again(
    faulty: Faulty, other: Machine, there: Notebook
) -> None:
    epoch = there.value("current_session().epoch")
    faulty.pool.kill("gateway")
    until(lambda: node(faulty.pool.state).state == "up" and len(sessions_on(faulty.pool.state, "m")) == 1)
    assert there.value(_GO_ON) == "[1, 2, 3, 4, 5]"
    assert there.value("current_session().epoch") == epoch


def test_records_restored_from_an_old_copy_learn_what_the_machine_was_given(
    faulty: Faulty, other: Machine, tmp_path: Path
) -> None:
    head = faulty.pool.state
    config = faulty.config()  # whose user is known to the copy
    copy = tmp_path / "old.sqlite"
    shutil.copy(head.directory_file, copy)
    for part in ("-wal", "-shm"):
        shutil.copy(f"{head.directory_file}{part}", f"{copy}{part}")
    with only(head, other.name), Notebook(config) as notebook:
        notebook.value(_BEGIN)
        (session,) = sessions_on(head, other.name)
        supervisor, gateway = faulty.pool.process("supervisor"), faulty.pool.process("gateway")
        os.kill(supervisor.pid, signal.SIGSTOP)
        os.kill(gateway.pid, signal.SIGKILL)
        until(lambda: not gateway.is_running)
        for part in ("", "-wal", "-shm"):
            shutil.copy(f"{copy}{part}", f"{head.directory_file}{part}")
        os.kill(supervisor.pid, signal.SIGCONT)
        until(lambda: [one.session for one in sessions_on(head, other.name)] == [session.session])
        assert notebook.value(_GO_ON) == "[1, 2, 3, 4, 5]"


def test_an_agent_that_is_killed_is_kept_by_its_own_machine(other: Machine, there: Notebook) -> None:
    agent = other.process("agent")
    os.kill(agent.pid, signal.SIGKILL)
    until(lambda: other.process("agent") not in (None, agent))
    assert there.value(_GO_ON) == "[1, 2, 3, 4, 5]"


def test_the_notebooks_of_a_machine_that_is_taken_down_hear_that_from_its_head(
    faulty: Faulty, other: Machine, there: Notebook
) -> None:
    head = faulty.pool.state
    for one in commands.status(head).nodes:
        if one.name != other.name:
            machines.resume(head, one.name)
    assert joining.down(other.state, is_at_once=True)
    assert node(head).state == "down"
    assert not sessions_on(head, other.name)[1:]
    assert not other.processes()
    told = there.run("float(old[1])")
    assert "The operator of m took that machine out of the pool for now." in told.text
    there.value(_BEGIN)
    assert not [one for one in sessions_on(head, other.name) if one.state == "serving"]
    assert joining.up(other.state).node.state == "up"


def test_a_machine_whose_head_does_not_answer_goes_down_all_the_same(
    other: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        joining, "_door", lambda _: Door("tcp://127.0.0.1:1", curve.generate().public, curve.generate())
    )
    assert not joining.down(other.state)
    assert not other.processes()


def test_a_machine_that_is_removed_is_told_and_its_sessions_go_elsewhere(
    faulty: Faulty, other: Machine, there: Notebook
) -> None:
    head = faulty.pool.state
    machines.remove(head, other.name)
    machines.resume(head, commands.status(head).nodes[0].name)
    told = there.run(_GO_ON)
    while not told.error:  # until the gateway has seen it, within a second
        told = there.run(_GO_ON)
    assert told.error == "SessionLost"
    assert told.text.startswith("The node m was removed from the pool by its operator.")
    with pytest.raises(NotAuthorized, match="does not know this machine: it was removed there"):
        joining.seen(other.state)


def test_what_keeps_a_machine_from_joining_is_told_in_one_sentence(faulty: Faulty) -> None:
    head = faulty.pool.state
    given = {"executor_host": ADDRESS, "devices": "cpu"}
    with machine(head) as one:
        invited = machines.invite(head, "m", 1.0)
        with pytest.raises(PoolRefusal, match="no token of an invitation"):
            joining.join(one.state, invited.address, invited.token[:-5], given)
        with pytest.raises(PoolRefusal, match="with --listen HOST"):
            joining.join(one.state, invited.address, invited.token, {"devices": "cpu"})
        with pytest.raises(PoolRefusal, match=r"Executors cannot be heard at executor_host = '192\.0\.2\.1'"):
            joining.join(one.state, invited.address, invited.token, {**given, "executor_host": "192.0.2.1"})
        with pytest.raises(PoolUnreachable, match="nodes_host and nodes_port"):
            joining.join(one.state, "tcp://127.0.0.1:9", invited.token, given)
        machines.invite(head, "m", 1.0)
        with pytest.raises(NotAuthorized, match="does not know this token: it is too old, or another one was made"):
            joining.join(one.state, invited.address, invited.token, given)
        with pytest.raises(PoolUnreachable, match="has joined no pool"):
            joining.up(one.state)
        with pytest.raises(PoolRefusal, match="is this machine, which has the pool's gateway"):
            machines.invite(head, commands.status(head).nodes[0].name, 1.0)
