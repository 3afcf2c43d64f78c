"""Everything dies at random while notebooks come and go; afterwards nothing is lost, doubled or left behind."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.node import launcher
from gpu_backend.pool import commands
from gpu_backend.transport.asking import ask
from gpu_backend.wire import control
from gpu_backend.wire.errors import PoolError

from .conftest import MakePool, RunningPool, granted, kill_and_wait, until

CHAOS_SECONDS = 8.0
#: What each notebook gets: where the machine is slow, after the chaos.
LEAST_GRANTED = 3


class Notebook(threading.Thread):
    """Opens a session, asks for its ticket, restarts and closes it, in any order, and checks what it is told."""

    def __init__(self, pool: RunningPool, seed: int) -> None:
        super().__init__()
        self.pool, self.chance = pool, random.Random(seed)
        self.until = time.monotonic() + CHAOS_SECONDS
        self.epochs: dict[str, int] = {}
        self.wrong: list[str] = []
        self.granted = 0

    def run(self) -> None:
        ticket: control.Ticket | None = None
        while time.monotonic() < self.until or self.granted < LEAST_GRANTED:
            try:
                ticket = self.step(ticket)
            except PoolError:
                ticket = ticket if self.chance.random() < 0.7 else None

    def step(self, ticket: control.Ticket | None) -> control.Ticket | None:
        if ticket is None:
            message: control.ToGateway = control.OpenSession(0, "n")
        else:
            kinds = [control.RenewTicket, control.RenewTicket, control.RestartSession, control.CloseSession]
            message = self.chance.choice(kinds)(0, ticket.session)
        answer = ask(self.pool.ada, message)
        if isinstance(answer, control.Ticket):
            self.check(answer)
            return answer
        return None

    def check(self, ticket: control.Ticket) -> None:
        self.granted += 1
        if ticket.epoch < self.epochs.get(ticket.session, 0):
            self.wrong.append(f"epoch of {ticket.session} went back to {ticket.epoch}")
        self.epochs[ticket.session] = ticket.epoch


def executors(pool: RunningPool) -> dict[tuple[str, int], Path]:
    """Return the directories of running executors that were assigned, by session and epoch."""
    found = {}
    for directory in launcher.directories(str(pool.state.runtime)):
        order = launcher.assignment_in(directory)
        if order is not None and launcher.process_in(directory) is not None:
            assert (order.session, order.epoch) not in found, "two executors of one session and epoch"
            found[order.session, order.epoch] = directory
    return found


@pytest.mark.parametrize("seed", [1])
def test_random_deaths_leave_the_pool_in_order(make_pool: MakePool, seed: int) -> None:
    pool = make_pool(max_sessions_per_user=0, sessions_per_device=16, lease_seconds=120)
    chance = random.Random(seed)
    notebooks = [Notebook(pool, seed * 10 + number) for number in range(3)]
    for notebook in notebooks:
        notebook.start()
    while any(time.monotonic() < notebook.until for notebook in notebooks):
        kill_something(pool, chance)
        time.sleep(chance.uniform(0.1, 0.8))
    for notebook in notebooks:
        notebook.join()
    assert [line for notebook in notebooks for line in notebook.wrong] == []
    until(lambda: is_in_order(pool))
    check_the_rest_works(pool)


def kill_something(pool: RunningPool, chance: random.Random) -> None:
    victim = chance.choice(["gateway", "agent", "executor", "nothing"])
    if victim == "executor":
        victims = [launcher.process_in(d) for d in launcher.directories(str(pool.state.runtime))]
    else:
        victims = [read_identity(pool.state.process_file(victim))]
    alive = [process for process in victims if process is not None]
    if alive:
        kill_and_wait([chance.choice(alive)])


def is_in_order(pool: RunningPool) -> bool:
    """Every serving session has its one executor, and no executor serves a session that is not there."""
    sessions = {(s.session, s.epoch): s.state for s in commands.status(pool.state).sessions}
    serving = {key for key, state in sessions.items() if state == "serving"}
    return set(sessions.values()) <= {"serving", "lost"} and serving == set(executors(pool))


def check_the_rest_works(pool: RunningPool) -> None:
    for view in commands.status(pool.state).sessions:
        renewed = granted(pool.ada, control.RenewTicket(0, view.session))
        assert renewed.epoch == view.epoch + (view.state == "lost")
        ask(pool.ada, control.CloseSession(0, view.session))
    until(lambda: pool.sessions() == {} and executors(pool) == {})
