"""A pool with two tenants: one who only computes, and one with native code in an executor of their own."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.engine.detached import ProcessId, read_identity
from gpu_backend.gate.reports import ReportView
from gpu_backend.gate.roster import name_of
from gpu_backend.gate.tally import Tally, counted_seconds
from gpu_backend.node import arbiter, launcher
from gpu_backend.transport.asking import Door, ask
from gpu_backend.wire.control import AskUsage, Ticket
from gpu_backend.wire.values import Ref
from gpu_backend.wire.views import UsageView
from tests.attack.hostile import Hostile, hostile_session
from tests.attack.native import ByKernel, ByTraitor, Intruder
from tests.executor_of import directory_of
from tests.integration.conftest import MakePool, RunningPool, make_pool

__all__ = ["make_pool"]

_TRAITOR = (sys.executable, str(Path(__file__).with_name("traitor.py")))
#: How often the secret lies in the victim's array.
_COPIES = 512
#: Sums of the same time may differ by so much, seconds: each part is written down in nanoseconds.
_ROUNDED = 1e-6


class Tenants:
    """The pool, the one who only computes (ada), and the door of the one who does not (eve)."""

    def __init__(self, pool: RunningPool, kind: str, is_traitor: bool) -> None:
        self.pool, self.kind, self.is_traitor = pool, kind, is_traitor
        self.eve = pool.add_user("eve")
        #: What only ada's arrays hold, and this process.
        self.secret = secrets.token_bytes(32)
        self.held = ExitStack()
        self.ada, self.ada_ticket = self.held.enter_context(hostile_session(pool.ada, kind, "thesis"))
        self.array = self.ada.upload(np.frombuffer(self.secret * 4, np.uint8))
        self.array = self.ada.make("cupy.tile", Ref(self.array), _COPIES // 4)

    @contextmanager
    def intruder(self) -> Iterator[tuple[Intruder, Hostile, Ticket]]:
        """Have a session of eve's, with code of hers in its executor."""
        with hostile_session(self.eve, self.kind) as (hostile, ticket):
            yield self.traitor(ticket) if self.is_traitor else ByKernel(hostile), hostile, ticket

    def traitor(self, ticket: Ticket) -> ByTraitor:
        """Return the way into an executor that is a traitor."""
        return ByTraitor(self.directory_of(ticket), self.pool.executor(ticket))

    def directory_of(self, ticket: Ticket) -> Path:
        """Return the directory of an executor."""
        return directory_of(ticket)

    def others(self, but: Ticket) -> dict[str, int]:
        """Return the processes of the pool, and this one, without the executor of ``but``."""
        state = self.pool.state
        names = ("supervisor", "gateway", "agent")
        found = {name: one.pid for name in names if (one := read_identity(state.process_file(name))) is not None}
        found |= {f"arbiter {one.pid}": one.pid for one in arbiter.processes(state.runtime)}
        for directory in launcher.directories(str(state.runtime)):
            process = launcher.process_in(directory)
            if process is not None:
                found[f"executor {directory.name}"] = process.pid
        found["notebook"] = os.getpid()
        mine = self.pool.executor(but).pid
        return {name: pid for name, pid in found.items() if pid != mine}

    def files(self, but: Ticket) -> list[str]:
        """Return every file and folder of the pool, users' keys too, but for those of the executor of ``but``."""
        own = str(self.directory_of(but))
        state = self.pool.state
        found = [str(state.root), str(state.runtime)]
        for root in tuple(found):  # not by a pattern, which may not be looked for in a folder that is just removed
            found += sorted(os.path.join(at, name) for at, *names in os.walk(root) for name in chain(*names))
        return [path for path in found if path != own and not path.startswith(own + os.sep)]

    def used_seconds(self, door: Door, user: str) -> float:
        """Return the device time that is on the books of ``user``."""
        view = ask(door, AskUsage(0, "user", ""))
        assert isinstance(view, UsageView)
        return sum(row.gpu_seconds for row in view.rows if row.user == user)

    def has_all_on_its_books(self) -> bool:
        """Tell whether what ada has used is on her books: she rests, and each who counts has the word of the former."""
        executor, config = self.pool.executor(self.ada_ticket), launcher.config_in(self.directory_of(self.ada_ticket))
        assert config is not None
        number = config.descriptors.report
        with closing(ReportView(executor.pid, number)) as page:
            said = page.report()
        if said is None or said.queued_ops or said.in_flight_ops:
            return False
        directory = arbiter.directory_of(str(self.pool.state.runtime), 0)
        name = name_of(executor.pid, executor.start_time, number)
        with closing(Tally(directory, name)) as tally:
            taken = tally.reported_ns / 1e9
        used = said.used_ns / 1e9
        counted = max(used, counted_seconds(directory, name))
        return taken > used - _ROUNDED and self.used_seconds(self.pool.ada, "ada") > counted - _ROUNDED

    def computes(self, rounds: int = 20) -> None:
        """Have ada compute, and assert that it comes out right and that her array is as it was."""
        number = self.ada.upload(np.arange(8.0))
        for _ in range(rounds):
            number = self.ada.make("cupy.add", Ref(number), 1.0)
        assert (self.ada.download(number) == np.arange(8.0) + rounds).all()
        assert self.ada.download(self.array).tobytes() == self.secret * _COPIES

    def keeps_its_processes(self, before: dict[str, int]) -> None:
        """Assert that what ran ``before`` runs: nobody of the pool was ended or had to be started anew."""
        gone = {name: pid for name, pid in before.items() if ProcessId.of(pid) is None}
        assert not gone


WAYS = [
    pytest.param(("cpu", False), id="kernel"),
    pytest.param(("cpu", True), id="traitor"),
    pytest.param(("cuda", True), id="traitor-cuda", marks=pytest.mark.gpu),
]


@pytest.fixture(scope="module", params=WAYS)
def tenants(request: pytest.FixtureRequest, make_pool: MakePool) -> Iterator[Tenants]:
    """Two tenants of one device; the module's own."""
    kind, is_traitor = request.param
    usual = {"devices": kind, "executor_command": _TRAITOR if is_traitor else (), "max_sessions_per_user": 0}
    pool = make_pool(**usual, sessions_per_device=16, start_seconds=60.0, warm_executors_per_device=2)
    made = Tenants(pool, kind, is_traitor)
    with made.held:
        yield made


@pytest.fixture(scope="module")
def break_in(tenants: Tenants) -> Iterator[tuple[Intruder, Ticket]]:
    """One intruder for all tests of the module that harm nobody who is not meant to be harmed."""
    with tenants.intruder() as (intruder, _, ticket):
        yield intruder, ticket
