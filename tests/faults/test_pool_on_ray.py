"""A pool whose machines Ray keeps together: what is killed comes back, and running notebooks notice nothing of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpu_backend.engine.detached import ProcessId, read_identity
from gpu_backend.pool import commands, joining, machines, running
from gpu_backend.pool.state import PoolState
from gpu_backend.wire.errors import PoolRefusal
from tests.integration.conftest import MakePool, kill_and_wait
from tests.ray_nodes import NEEDS_RAY
from tests.spare_ports import spare_ports
from workbench import cluster_diagnosis
from workbench.finding import Finding, State

from .conftest import Faulty, until
from .machines import Machine, machine, node, only, sessions_on
from .notebook import Notebook

pytestmark = [pytest.mark.ray, NEEDS_RAY, pytest.mark.timeout(600), pytest.mark.usefixtures("undisturbed")]

_ELSEWHERE = "from gpu_backend.transport import local; local.here = lambda: 'another machine'"
_BEGIN = "old = cp.arange(5); float(old[1])"
_GO_ON = "(old + 1).tolist()"
_GONE_ON = "[1, 2, 3, 4, 5]"


@pytest.fixture(scope="module")
def faulty(make_pool: MakePool) -> Iterator[Faulty]:
    ports = spare_ports(3)
    with TemporaryDirectory(prefix="gwb") as directory:
        yield Faulty(
            make_pool, Path(directory), engine="ray", listen_host="127.0.0.1", listen_port=ports[0],
            nodes_host="127.0.0.1", nodes_port=ports[1], ray_port=ports[2], node_lost_seconds=15.0,
        )  # fmt: skip


@pytest.fixture
def other(faulty: Faulty, undisturbed: None) -> Iterator[Machine]:
    """A machine that has joined while the neighbour computes, on the head."""
    with machine(faulty.pool.state) as one:
        one.join()
        yield one


@pytest.fixture
def there(faulty: Faulty, other: Machine) -> Iterator[Notebook]:
    """A notebook whose session is on that machine."""
    with notebook_on(faulty, other.name) as notebook:
        yield notebook


@contextmanager
def notebook_on(faulty: Faulty, name: str) -> Iterator[Notebook]:
    """Have a notebook whose session is on one machine, and which sees it as from a third."""
    head = faulty.pool.state
    before = {one.session for one in sessions_on(head, name)}
    with only(head, name):
        notebook = Notebook(faulty.config())
        notebook.run(_ELSEWHERE)
        notebook.value(_BEGIN)
    with notebook:
        assert len({one.session for one in sessions_on(head, name)} - before) == 1
        yield notebook


def own_name(faulty: Faulty) -> str:
    """Return what the head is called in its pool."""
    return next(one.name for one in commands.status(faulty.pool.state).nodes if one.name != "m")


def ray_of(state: PoolState) -> list[ProcessId]:
    return [one.identity for one in running.processes(state) if one.role == "ray"]


def wait_for_both(faulty: Faulty) -> None:
    """Wait until both machines are heard, and Ray keeps their agents: one that is killed is started again."""
    until(lambda: {one.state for one in commands.status(faulty.pool.state).nodes} == {"up"})


def test_sessions_are_admitted_on_both_machines(faulty: Faulty, there: Notebook) -> None:
    assert commands.status(faulty.pool.state).engine == "ray"
    with notebook_on(faulty, own_name(faulty)) as here:
        assert here.value(_GO_ON) == there.value(_GO_ON) == _GONE_ON


def test_a_drained_machine_keeps_its_sessions_and_gets_no_new_ones(
    faulty: Faulty, other: Machine, there: Notebook
) -> None:
    head = faulty.pool.state
    machines.drain(head, other.name)
    with Notebook(faulty.config("eve")) as newcomer:
        newcomer.value(_BEGIN)
        assert len(sessions_on(head, other.name)) == 1
    assert (node(head).state, there.value(_GO_ON)) == ("draining", _GONE_ON)
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
    lost = there.run(_GO_ON)
    assert (lost.error, lost.notes) == ("SessionLost", "")
    assert lost.text.startswith("The node m was lost")
    assert lost.text.endswith("Run the cells again that make your arrays.")
    assert there.value(f"{_BEGIN}; {_GO_ON}") == _GONE_ON


def test_rays_head_that_is_killed_comes_back_and_nobody_notices(
    faulty: Faulty, other: Machine, there: Notebook
) -> None:
    head = faulty.pool.state
    with notebook_on(faulty, own_name(faulty)) as here:
        nodes_part, old = ray_of(other.state), ray_of(head)
        assert kill_and_wait(old)
        assert here.value(_GO_ON) == there.value(_GO_ON) == _GONE_ON
        until(lambda: cluster_diagnosis_of(head) is State.OK, 180.0)
        assert not set(ray_of(head)) & set(old)
        assert {one.pid for one in nodes_part} & {one.pid for one in ray_of(other.state)}, "the node's part went on"
        for state in (head, other.state):  # whose agents are kept as before
            agent = read_identity(state.process_file("agent"))
            assert agent is not None
            os.kill(agent.pid, signal.SIGKILL)
            until(
                lambda state=state, agent=agent: read_identity(state.process_file("agent")) not in (None, agent), 180.0
            )
        assert here.value(_GO_ON) == there.value(_GO_ON) == _GONE_ON
    wait_for_both(faulty)


def test_a_gateway_that_is_killed_finds_its_engine_and_the_sessions_again(
    faulty: Faulty, other: Machine, there: Notebook
) -> None:
    epoch = there.value("current_session().epoch")
    agents = [read_identity(state.process_file("agent")) for state in (faulty.pool.state, other.state)]
    faulty.pool.kill("gateway")
    wait_for_both(faulty)
    assert commands.status(faulty.pool.state).engine == "ray"
    assert (there.value(_GO_ON), there.value("current_session().epoch")) == (_GONE_ON, epoch)
    assert agents == [read_identity(state.process_file("agent")) for state in (faulty.pool.state, other.state)]
    with notebook_on(faulty, other.name) as newcomer:
        assert newcomer.value(_GO_ON) == _GONE_ON


def test_a_machine_that_is_removed_stays_out_though_its_ray_goes_on(
    faulty: Faulty, other: Machine, there: Notebook
) -> None:
    head = faulty.pool.state
    machines.remove(head, other.name)
    told = there.run(_GO_ON)
    while not told.error:  # until the gateway has seen it, within a second
        told = there.run(_GO_ON)
    assert told.text.startswith("The node m was removed from the pool by its operator.")
    faulty.pool.kill("gateway")  # the next one hears of that node again
    until(lambda: commands.status(head).nodes[0].state == "up")
    assert [one.name for one in commands.status(head).nodes] == [own_name(faulty)]


def test_the_doctor_finds_a_token_that_is_refused_and_one_command_mends_it(other: Machine) -> None:
    assert found_on(other) == []
    token = other.state.ray_token.read_text()
    other.state.ray_token.write_text(token[::-1])
    (finding,) = found_on(other)
    assert finding.found.endswith(f"refuses the token in {other.state.ray_token}")
    assert "`workbench node up`" in finding.remedy
    joining.up(other.state)
    assert other.state.ray_token.read_text() == token
    assert found_on(other) == []


def found_on(machine: Machine) -> list[Finding]:
    return [one for one in cluster_diagnosis.of_node(machine.state) if one.state is not State.OK]


def cluster_diagnosis_of(head: PoolState) -> State:
    (finding,) = cluster_diagnosis.of_head(head)
    return finding.state
