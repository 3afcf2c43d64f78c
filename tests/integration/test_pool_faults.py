"""What dies in a pool, one after the other, and what a notebook notices of it."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpu_backend.node import launcher
from gpu_backend.pool import commands
from gpu_backend.transport.asking import ask
from gpu_backend.wire import control
from gpu_backend.wire.errors import ExecutorStarting, PoolRefusal, PoolUnreachable, SessionLost
from tests.executor_of import name_of
from tests.integration.notebook_pool import STATE_SECONDS
from tests.spare_ports import spare_port
from workbench import head_diagnosis

from .conftest import PLAIN_EXECUTOR, MakePool, RunningPool, until
from .test_pool_sessions import Client

#: After so long a request that was taken counts as lost, seconds.
_LOST_SECONDS = 20.0


@pytest.fixture(scope="module")
def pool(make_pool: MakePool) -> RunningPool:
    return make_pool(max_sessions_per_user=0, sessions_per_device=32)


def kill(process: object) -> None:
    os.kill(process.pid, signal.SIGKILL)  # type: ignore[attr-defined]


def test_a_killed_agent_is_back_and_has_all_executors_again(pool: RunningPool) -> None:
    tickets = [pool.open() for _ in range(3)]
    executors = [pool.executor(ticket) for ticket in tickets]
    pool.kill("agent")
    until(lambda: pool.open().epoch == 1)  # and new sessions work again
    assert all(executor.is_running for executor in executors)
    assert [pool.renew(ticket).epoch for ticket in tickets] == [1, 1, 1]
    ask(pool.ada, control.CloseSession(0, tickets[0].session))  # adopted means obedient
    until(lambda: not executors[0].is_running)
    kill(executors[1])  # and watched, although none of them is the new agent's child
    until(lambda: pool.sessions()[tickets[1].session] == "lost")


def test_a_killed_gateway_is_back_and_knows_all_sessions(pool: RunningPool) -> None:
    tickets = [pool.open(f"{number}.ipynb") for number in range(3)]
    agent = pool.process("agent")
    pool.kill("gateway")
    until(lambda: [pool.renew(ticket) for ticket in tickets] != [])
    assert [pool.renew(ticket).secret for ticket in tickets] == [ticket.secret for ticket in tickets]
    assert pool.process("agent") == agent
    until(lambda: pool.open().epoch == 1)  # once its agent is heard


def test_gateway_and_agent_may_die_together(pool: RunningPool) -> None:
    ticket = pool.open()
    executor = pool.executor(ticket)
    gateway, agent = pool.process("gateway"), pool.process("agent")
    kill(gateway)
    kill(agent)
    pool.successor("gateway", gateway)
    pool.successor("agent", agent)
    until(lambda: pool.renew(ticket).epoch == 1)
    assert executor.is_running
    until(lambda: pool.open().epoch == 1)


def test_a_killed_supervisor_is_noticed_by_nobody_and_replaced_by_the_next_up(pool: RunningPool) -> None:
    gateway, supervisor = pool.process("gateway"), pool.process("supervisor")
    kill(supervisor)
    ticket = pool.open()
    until(lambda: not supervisor.is_running)
    commands.up(pool.state)
    assert pool.process("gateway") == gateway  # adopted
    pool.kill("gateway")  # and kept
    until(lambda: pool.renew(ticket).epoch == 1)
    until(lambda: pool.open().epoch == 1)  # once its agent is heard: the next test opens at once


def test_without_a_supervisor_a_pool_on_the_network_is_not_reloaded_and_up_starts_one(make_pool: MakePool) -> None:
    pool = make_pool(listen_host="127.0.0.1", listen_port=spare_port())
    ticket, gateway, supervisor = pool.open(), pool.process("gateway"), pool.process("supervisor")
    assert list(head_diagnosis.findings(pool.state)) == []
    kill(supervisor)
    until(lambda: not supervisor.is_running)
    with pytest.raises(PoolRefusal, match=r"nobody supervises it.*`workbench pool up`.*Nothing was changed\."):
        commands.reload(pool.state)
    assert pool.process("gateway") == gateway
    (found,) = head_diagnosis.findings(pool.state)
    assert "nobody supervises it" in found.found
    commands.up(pool.state)
    assert pool.process("gateway") == gateway  # adopted, whose port it is
    assert list(head_diagnosis.findings(pool.state)) == []
    commands.reload(pool.state)
    assert pool.renew(ticket).epoch == 1


def test_an_up_that_fails_leaves_a_gateway_that_was_there(make_pool: MakePool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = make_pool()
    executor, gateway, supervisor = pool.executor(pool.open()), pool.process("gateway"), pool.process("supervisor")
    kill(supervisor)
    until(lambda: not supervisor.is_running)

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(commands, "_wait_until_up", interrupted)
        with pytest.raises(KeyboardInterrupt):
            commands.up(pool.state)
    assert not commands.is_supervised(pool.state)
    assert pool.process("gateway") == gateway
    assert executor.is_running
    commands.up(pool.state)


def test_a_killed_executor_loses_its_session_and_no_other(pool: RunningPool) -> None:
    ticket, other = pool.open(), pool.open()
    kill(pool.executor(ticket))
    until(lambda: pool.sessions()[ticket.session] == "lost")
    renewed = pool.renew(ticket)
    assert (renewed.session, renewed.epoch) == (ticket.session, 2)
    assert pool.executor(renewed).is_running
    assert pool.renew(other).epoch == 1


def test_an_executor_killed_while_its_agent_is_away_is_missed_by_the_next_agent(pool: RunningPool) -> None:
    ticket = pool.open()
    executor = pool.executor(ticket)
    agent = pool.process("agent")
    os.kill(agent.pid, signal.SIGSTOP)
    kill(executor)
    kill(agent)
    until(lambda: pool.sessions()[ticket.session] == "lost")
    assert pool.renew(ticket).epoch == 2


def test_a_killed_warm_executor_is_replaced(pool: RunningPool) -> None:
    pool.wait_warm()
    warm = pool.warm()
    for directory in warm:
        process = launcher.process_in(directory)
        if process is not None:
            kill(process)
    until(lambda: not any(directory.exists() for directory in warm))
    pool.wait_warm()
    assert pool.open().epoch == 1


def test_the_log_of_a_crashed_executor_is_kept(pool: RunningPool) -> None:
    ticket = pool.open()
    name = name_of(ticket)
    kill(pool.executor(ticket))
    until((pool.state.logs / f"executor-{name}.log").exists)


def test_requests_made_while_the_gateway_is_away_are_answered_or_end_in_words(pool: RunningPool) -> None:
    gateway, supervisor = pool.process("gateway"), pool.process("supervisor")
    os.kill(supervisor.pid, signal.SIGSTOP)  # so it is away until we say
    try:
        kill(gateway)
        until(lambda: not gateway.is_running)
        with pytest.raises(PoolUnreachable, match="Nobody answers"):
            ask(pool.ada, control.AskPool(0), 0.2)
        with ThreadPoolExecutor(4) as people:
            asked = [people.submit(ask, pool.ada, control.AskPool(0), STATE_SECONDS) for _ in range(4)]
            os.kill(supervisor.pid, signal.SIGCONT)
            assert {type(one.result()) for one in asked} == {control.PoolView}
    finally:
        os.kill(supervisor.pid, signal.SIGCONT)


def test_a_request_on_its_way_when_the_gateway_dies_is_the_only_one_that_is_lost(pool: RunningPool) -> None:
    outcomes: list[str] = []

    def keep_asking() -> None:
        for _ in range(30):
            try:
                outcomes.append(type(ask(pool.ada, control.AskPool(0), _LOST_SECONDS)).__name__)
            except PoolUnreachable as error:  # one that was not taken is not lost: it found nobody all the time
                outcomes.append(type(error).__name__)

    asking = threading.Thread(target=keep_asking)
    asking.start()
    for _ in range(2):
        pool.kill("gateway")
    asking.join()
    assert len(outcomes) == 30
    assert outcomes.count("AnswerOverdue") <= 2
    assert "PoolView" in outcomes


def test_a_session_that_ends_while_the_gateway_is_away_is_over_and_not_lost(pool: RunningPool) -> None:
    ticket = pool.open()
    executor, supervisor, gateway = pool.executor(ticket), pool.process("supervisor"), pool.process("gateway")
    notebook = Client(ticket)
    os.kill(supervisor.pid, signal.SIGSTOP)  # so it is away until we say
    try:
        kill(gateway)
        until(lambda: not gateway.is_running)
        notebook.say(b"bye")
        until(lambda: not executor.is_running)
    finally:
        os.kill(supervisor.pid, signal.SIGCONT)
        notebook.close()
    until(lambda: ticket.session not in pool.sessions())


def test_what_a_gateway_was_told_and_died_before_it_noted_is_told_again(pool: RunningPool) -> None:
    ticket = pool.open()
    executor, gateway, log = pool.executor(ticket), pool.process("gateway"), pool.state.logs / "agent.log"
    notebook = Client(ticket)
    os.kill(gateway.pid, signal.SIGSTOP)  # so it hears nothing, and is there
    try:
        notebook.say(b"bye")
        until(lambda: not executor.is_running)
        until(lambda: f"{name_of(ticket)} ended" in log.read_text())
    finally:
        kill(gateway)
        notebook.close()
    until(lambda: ticket.session not in pool.sessions())


def test_executors_without_an_agent_end_by_themselves(make_pool: MakePool) -> None:
    pool = make_pool(orphan_seconds=8)
    ticket = pool.open()
    executor = pool.executor(ticket)
    for name in ("supervisor", "gateway", "agent"):
        kill(pool.process(name))
    until(lambda: not executor.is_running)
    commands.up(pool.state)
    until(lambda: pool.sessions() == {ticket.session: "lost"})


def test_an_executor_that_cannot_start_says_why_at_once(make_pool: MakePool) -> None:
    refusal = "GPU_WORKBENCH_TEST_REFUSAL=No CuPy here; install gpu-workbench[cuda13]."
    pool = make_pool(warm_executors_per_device=0, executor_command=("env", refusal, *PLAIN_EXECUTOR))
    with pytest.raises(PoolRefusal, match="No CuPy here"):
        pool.open()
    assert pool.sessions() == {}


def test_a_slow_start_is_refused_while_it_lasts_and_succeeds_later(make_pool: MakePool, tmp_path: Path) -> None:
    start = tmp_path / "start"
    slow = ("env", f"GPU_WORKBENCH_TEST_START_AT={start}", *PLAIN_EXECUTOR)
    pool = make_pool(warm_executors_per_device=0, executor_command=slow)
    with pytest.raises(ExecutorStarting, match="still starting"):
        ask(pool.ada, control.OpenSession(0, "a.ipynb"))
    until(lambda: not pool.sessions())  # else the executor might still be given to it, and end with it
    start.touch()
    pool.wait_warm()  # the start went on
    assert pool.open().epoch == 1


def test_the_place_of_a_lost_session_is_kept_for_as_long_as_its_lease(make_pool: MakePool) -> None:
    pool = make_pool(max_sessions_per_user=1)
    ticket = pool.open()
    kill(pool.executor(ticket))
    until(lambda: pool.sessions() == {ticket.session: "lost"})
    with pytest.raises(PoolRefusal, match="1 of 1 sessions"):
        pool.open()


def test_a_lost_session_is_freed_when_nobody_comes_back_for_it(make_pool: MakePool) -> None:
    pool = make_pool(lease_seconds=15, max_sessions_per_user=1)  # more than a neighbour is kept from the processor
    ticket = pool.open()
    kill(pool.executor(ticket))
    until(lambda: pool.sessions() == {})
    with pytest.raises(SessionLost):
        pool.renew(ticket)
    assert pool.open().epoch == 1
