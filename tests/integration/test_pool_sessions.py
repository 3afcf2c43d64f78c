"""Sessions in a pool of real processes: from the request to a live executor, and back to nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gpu_backend.node import launcher
from gpu_backend.pool import commands, people
from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door, ask
from gpu_backend.transport.reaching import ProofFailed
from gpu_backend.wire import control
from gpu_backend.wire.errors import NotAuthorized, PoolRefusal, SessionLost
from kernelproxy.session.links import open_link
from tests.executor_of import directory_of

from .conftest import MakePool, RunningPool, until


@pytest.fixture(scope="module")
def pool(make_pool: MakePool) -> RunningPool:
    return make_pool(max_sessions_per_user=4, sessions_per_device=5)


@pytest.fixture(autouse=True)
def no_sessions_left(pool: RunningPool) -> None:
    for session in commands.status(pool.state).sessions:
        ask(commands.operator_door(pool.state), control.CloseSession(0, session.session))
    until(lambda: not pool.sessions())


class Client:
    """A notebook's line to its executor, from another host."""

    def __init__(self, ticket: control.Ticket) -> None:
        self.link, _ = open_link(msgspec.structs.replace(ticket, endpoints=ticket.endpoints[-1:]), 60.0)

    def say(self, word: bytes) -> None:
        assert self.link.send([word])

    def hears(self, word: bytes) -> bool:
        self.say(word)
        return self.link.receive(60.0) == [word]

    def close(self) -> None:
        self.link.close()


def test_a_ticket_leads_to_an_executor_that_admits_only_who_has_it(pool: RunningPool) -> None:
    ticket = pool.open()
    assert pool.executor(ticket).is_running
    client = Client(ticket)
    assert client.hears(b"hello")
    with pytest.raises(ProofFailed, match="does not know this ticket"):
        Client(msgspec.structs.replace(ticket, secret="00" * 32))
    client.close()


def test_a_session_is_opened_at_once_when_an_executor_is_warm(pool: RunningPool) -> None:
    pool.wait_warm()
    warm = pool.warm()
    ticket = pool.open()
    assert directory_of(ticket) in warm


def test_executors_are_private(pool: RunningPool) -> None:
    directory = directory_of(pool.open())
    for path in (directory, *directory.iterdir()):
        assert path.lstat().st_mode & 0o077 == 0 or path.is_socket(), path
    command = Path(f"/proc/{launcher.process_in(directory).pid}/cmdline").read_bytes()  # type: ignore[union-attr]
    assert command.split(b"\0")[-2] == str(directory).encode(), "nothing but its directory is on its command line"


def test_a_full_quota_and_a_full_pool_are_refused_in_words(pool: RunningPool) -> None:
    for _ in range(4):
        pool.open()
    with pytest.raises(PoolRefusal, match="4 of 4 sessions"):
        pool.open()
    other = pool.add_user("bob")
    pool.open(door=other)
    with pytest.raises(PoolRefusal, match="5 of 5 places"):
        pool.open(door=other)


def test_a_closed_session_leaves_no_process(pool: RunningPool) -> None:
    ticket = pool.open()
    executor = pool.executor(ticket)
    ask(pool.ada, control.CloseSession(0, ticket.session))
    until(lambda: not executor.is_running)
    until(lambda: ticket.session not in pool.sessions())
    with pytest.raises(SessionLost):
        pool.renew(ticket)


def test_a_notebook_that_says_bye_frees_its_session(pool: RunningPool) -> None:
    ticket = pool.open()
    client = Client(ticket)
    assert client.hears(b"hello")
    client.say(b"bye")
    until(lambda: ticket.session not in pool.sessions())
    client.close()


def test_a_restart_keeps_the_session_and_changes_the_executor(pool: RunningPool) -> None:
    ticket = pool.open()
    old = pool.executor(ticket)
    fresh = pool.restart(ticket)
    assert (fresh.session, fresh.epoch) == (ticket.session, 2)
    assert fresh.secret != ticket.secret
    assert fresh.certificate != ticket.certificate
    until(lambda: not old.is_running)
    assert pool.executor(fresh).is_running


def test_the_wrong_key_is_told_at_once(pool: RunningPool) -> None:
    with pytest.raises(NotAuthorized):  # else it would be unreachable, or its answer overdue, in the end
        ask(Door(pool.ada.endpoint, pool.ada.server_key, curve.generate()), control.AskPool(0))
    with pytest.raises(NotAuthorized):
        ask(Door(pool.ada.endpoint, curve.generate().public, pool.ada.keys), control.AskPool(0))


def test_a_revoked_key_loses_its_sessions_and_its_way_in(pool: RunningPool) -> None:
    door = pool.add_user("gone")
    ticket = pool.open(door=door)
    executor = pool.executor(ticket)
    people.revoke_key(pool.state, door.keys.public.decode())
    until(lambda: not executor.is_running)
    with pytest.raises(NotAuthorized):
        pool.open(door=door)


def test_a_notebook_that_vanished_loses_its_lease(make_pool: MakePool) -> None:
    pool = make_pool(lease_seconds=15)  # more than a neighbour is kept from the processor
    attached = pool.open()
    executors = [pool.executor(attached)]
    client = Client(attached)
    assert client.hears(b"hello")
    client.close()
    executors.append(pool.executor(pool.open()))  # each is looked for at once: no lease runs while another starts
    until(lambda: not any(executor.is_running for executor in executors))
    until(lambda: not pool.sessions())


def test_a_pool_with_several_devices_spreads_its_sessions(make_pool: MakePool) -> None:
    pool = make_pool(cpu_devices=2, warm_executors_per_device=0, sessions_per_device=1)
    for _ in range(2):
        pool.open()
    assert [device.sessions for device in commands.status(pool.state).devices] == [1, 1]
    with pytest.raises(PoolRefusal, match="2 of 2 places"):
        pool.open()
