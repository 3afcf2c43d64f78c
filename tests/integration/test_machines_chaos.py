"""Two machines of one pool, on which something dies again and again: whoever was not struck notices nothing."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator

import pytest

from gpu_backend.engine.detached import ProcessId
from gpu_backend.pool import commands, joining, machines
from gpu_backend.transport.asking import ask
from gpu_backend.wire import control
from tests.faults.machines import Machine, machine, node, only, sessions_on
from tests.spare_ports import spare_port

from .conftest import PLAIN_EXECUTOR, MakePool, RunningPool, granted, kill_and_wait, until

FEW, MANY = 12, 100


class Bystander:
    """A session that nobody strikes."""

    def __init__(self, pool: RunningPool) -> None:
        self._pool = pool
        self._ticket = pool.open()
        self._executor = pool.executor(self._ticket)

    def has_noticed_nothing(self) -> bool:
        """Tell whether its ticket is what it was; a gateway that is just away may be asked again."""
        assert self._executor.is_running
        now = self._pool.renew(self._ticket)
        ways = (self._ticket.epoch, self._ticket.endpoints, self._ticket.secret)
        assert (now.epoch, now.endpoints, now.secret) == ways
        return True


class World:
    """A head, another machine, two bystanders on each, and what can happen to either."""

    def __init__(self, pool: RunningPool, other: Machine) -> None:
        self.pool, self.other, self.head = pool, other, pool.state
        self._own = next(one.name for one in commands.status(self.head).nodes if one.name != other.name)
        self.bystanders = []
        for name in (self._own, other.name):
            with only(self.head, name):
                self.bystanders += [Bystander(pool), Bystander(pool)]
        self._count = 0

    def gateway(self) -> None:
        self.pool.kill("gateway")

    def agent_of_the_head(self) -> None:
        self.pool.kill("agent")

    def agent_of_the_machine(self) -> None:
        before = self.other.process("agent")
        assert before is not None
        os.kill(before.pid, signal.SIGKILL)
        until(lambda: self.other.process("agent") not in (None, before))

    def keeper_of_the_machine(self) -> None:
        keeper = self.other.process("supervisor")
        assert keeper is not None
        kill_and_wait([keeper])
        joining.up(self.other.state, ProcessId.mine())

    def executor(self) -> None:
        """Kill the executor of a session on either machine, which is told so and gets another."""
        ticket = self.pool.open()
        kill_and_wait([self.pool.executor(ticket)])
        until(lambda: self.pool.renew(ticket).epoch == 2)
        ask(self.pool.ada, control.CloseSession(0, ticket.session))

    def drained(self) -> None:
        until(lambda: node(self.head, self._own).state == "up")  # else nothing is left to go to
        machines.drain(self.head, self.other.name)
        ticket = self.pool.open()
        assert ticket.session not in {one.session for one in sessions_on(self.head, self.other.name)}
        ask(self.pool.ada, control.CloseSession(0, ticket.session))
        machines.resume(self.head, self.other.name)

    def power_of_a_third(self) -> None:
        """Have another machine join, be given a session, and lose its power."""
        self._count += 1
        with machine(self.head, f"third{self._count}") as third:
            third.join(executor_command=PLAIN_EXECUTOR)
            with only(self.head, third.name):
                ticket = self.pool.open()
            third.kill()
            machines.remove(self.head, third.name)
            until(lambda: self.pool.renew(ticket).epoch == 2)
        ask(self.pool.ada, control.CloseSession(0, ticket.session))


@pytest.fixture
def world(make_pool: MakePool) -> Iterator[World]:
    pool = make_pool(
        max_sessions_per_user=0, listen_host="127.0.0.1", listen_port=spare_port(), nodes_host="127.0.0.1",
        nodes_port=spare_port(), node_lost_seconds=30.0,
    )  # fmt: skip
    with machine(pool.state) as other:
        other.join(executor_command=PLAIN_EXECUTOR)
        yield World(pool, other)


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(FEW, marks=pytest.mark.timeout(600)),
        pytest.param(MANY, marks=[pytest.mark.soak, pytest.mark.timeout(3600)]),
    ],
)
def test_what_is_not_struck_notices_nothing(world: World, count: int) -> None:
    chance = random.Random(7)
    faults = [
        world.gateway, world.agent_of_the_head, world.agent_of_the_machine, world.keeper_of_the_machine,
        world.executor, world.drained, world.power_of_a_third,
    ]  # fmt: skip
    order = [fault for _ in range(-(-count // len(faults))) for fault in chance.sample(faults, len(faults))][:count]
    for fault in order:
        fault()
        for bystander in world.bystanders:
            until(bystander.has_noticed_nothing)
    until(lambda: node(world.head).state == "up" and len(world.pool.sessions()) == len(world.bystanders))
    assert granted(world.pool.ada, control.OpenSession(0, "b.ipynb")).epoch == 1
