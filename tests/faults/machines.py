"""Machines that join a pool, on one host: each with a state directory and an address of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from gpu_backend.engine.detached import ProcessId, read_identity
from gpu_backend.pool import commands, joining, machines, running, state
from gpu_backend.pool.state import PoolState
from gpu_backend.wire.views import Membership, NodeView, SessionView
from tests.integration.conftest import kill_and_wait, processes_with, until

ADDRESS = "127.0.0.2"


class Machine:
    """A machine with the CPU device, as a node of the pool of ``head``."""

    def __init__(self, head: PoolState, root: Path, name: str = "m") -> None:
        self.head = head
        self.name = name
        self.state = state.at(root)

    def join(self, **settings: object) -> Membership:
        """Join the pool by an invitation; the node ends with the test."""
        invited = machines.invite(self.head, self.name, 1.0)
        given = {"executor_host": ADDRESS, "devices": "cpu", **settings}
        return joining.join(self.state, invited.address, invited.token, given, ProcessId.mine())

    def process(self, name: str) -> ProcessId | None:
        """Return "supervisor", which is its keeper, or "agent", if it runs."""
        return read_identity(self.state.process_file(name))

    def processes(self) -> list[ProcessId]:
        """Return what runs on it."""
        return [one.identity for one in running.processes(self.state)]

    def kill(self) -> None:
        """Cut the power."""
        kill_and_wait([one.identity for one in running.processes(self.state) if one.role == "supervisor"])
        while left := self.processes():  # one may have been started since they were looked for: a warm executor
            kill_and_wait(left)

    def end(self) -> None:
        """Leave nothing behind."""
        commands.end_processes(self.state)
        shutil.rmtree(self.state.runtime, ignore_errors=True)
        assert not processes_with(str(self.state.root))


def node(head: PoolState, name: str = "m") -> NodeView:
    """Return how the head sees a machine."""
    return next(one for one in commands.status(head).nodes if one.name == name)


def sessions_on(head: PoolState, name: str) -> list[SessionView]:
    """Return the sessions that are on a machine."""
    return [one for one in commands.status(head).sessions if one.node == name]


@contextmanager
def only(head: PoolState, name: str) -> Iterator[None]:
    """Have new sessions go to the machine ``name`` alone."""
    others = [one.name for one in commands.status(head).nodes if one.name != name]
    for other in others:
        machines.drain(head, other)
    yield
    for other in others:
        machines.resume(head, other)


@contextmanager
def machine(head: PoolState, name: str = "m") -> Iterator[Machine]:
    """Have a machine that can join, and is no member in the end."""
    with TemporaryDirectory(prefix="gwb") as directory:
        one = Machine(head, Path(directory, name), name)
        try:
            yield one
        finally:
            one.end()
            if any(known.name == name for known in commands.status(head).nodes):
                machines.remove(head, name)
                until(lambda: {one.state for one in sessions_on(head, name)} <= {"lost"})
