"""Pools of real processes for the tests, each with everything of its own, and nothing left of them afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

from gpu_backend.engine.detached import ProcessId, read_identity
from gpu_backend.node import launcher
from gpu_backend.pool import commands, people, state
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door, ask
from gpu_backend.wire import control
from gpu_backend.wire.errors import ExecutorStarting, PoolError
from tests.executor_of import directory_of
from tests.integration.notebook_pool import STATE_SECONDS, be_patient, wait_until

#: How long a session's executor may take to start on a busy machine.
_START_SECONDS = 120.0
#: How much of each log of a pool is shown where a test fails.
_LOG_LINES = 60
PLAIN_EXECUTOR = (sys.executable, str(Path(__file__).with_name("plain_executor.py")))


class RunningPool:
    """A pool of real processes, and a user ``ada`` of it."""

    def __init__(self, root: Path, settings: PoolSettings) -> None:
        self.state = state.at(root)
        commands.up(self.state, settings, ProcessId.mine())  # whatever becomes of the test, the pool ends with it
        self.ada = self.add_user("ada")

    def add_user(self, name: str) -> Door:
        """Add a user and return their way in."""
        people.add_user(self.state, name)
        path = self.state.root / f"{name}.key"
        people.make_key(self.state, name, path)
        operators = commands.operator_door(self.state)
        return Door(operators.endpoint, operators.server_key, curve.load(path))

    def open(self, label: str = "a.ipynb", door: Door | None = None) -> control.Ticket:
        """Open a session, by ada unless said otherwise."""
        return granted(door or self.ada, control.OpenSession(0, label))

    def renew(self, ticket: control.Ticket) -> control.Ticket:
        """Ask for the ticket of ada's session again."""
        return granted(self.ada, control.RenewTicket(0, ticket.session))

    def restart(self, ticket: control.Ticket) -> control.Ticket:
        """Give ada's session a fresh executor."""
        return granted(self.ada, control.RestartSession(0, ticket.session))

    def sessions(self) -> dict[str, str]:
        """Return the state of each session that is not closed."""
        return {session.session: session.state for session in commands.status(self.state).sessions}

    def process(self, name: str) -> ProcessId:
        """Return "supervisor", "gateway" or "agent"; it runs."""
        identity = read_identity(self.state.process_file(name))
        assert identity is not None, f"no {name} runs"
        return identity

    def executor(self, ticket: control.Ticket) -> ProcessId:
        """Return the executor that a ticket leads to; it runs."""
        identity = launcher.process_in(directory_of(ticket))
        assert identity is not None, "the executor does not run"
        return identity

    def kill(self, name: str) -> ProcessId:
        """Kill a process of the pool without warning, wait for its successor and return it."""
        old = self.process(name)
        os.kill(old.pid, signal.SIGKILL)
        return self.successor(name, old)

    def successor(self, name: str, old: ProcessId) -> ProcessId:
        """Wait until another process has the place of ``old`` and return it."""
        until(lambda: read_identity(self.state.process_file(name)) not in (None, old))
        return self.process(name)

    def wait_warm(self, count: int = 1) -> None:
        """Wait until so many executors listen and serve nobody."""
        until(lambda: len(self.warm()) >= count)

    def warm(self) -> list[Path]:
        """Return the directories of the executors that listen and serve nobody, but of those that are being removed."""
        directories = launcher.directories(str(self.state.runtime))
        ready = [d for d in directories if launcher.is_ready(d) and launcher.assignment_in(d) is None]
        return [d for d in ready if launcher.process_in(d) is not None]


def granted(door: Door, request: control.ToGateway) -> control.Ticket:
    """Ask for a ticket; while the executor starts, which on a busy machine takes its time, again, as notebooks do.

    A session is asked for without a name: one that has a name is closed after half a minute if no notebook comes.
    """
    deadline = monotonic() + _START_SECONDS
    while True:
        try:
            answer = ask(door, request)
        except ExecutorStarting:
            if monotonic() > deadline:
                raise
            if isinstance(request, control.RestartSession):
                request = control.RenewTicket(0, request.session)  # the restart is under way
            elif isinstance(request, control.OpenSession):  # it begins anew, and finds the executor that was started
                wait_until(lambda: not _is_closing(door))  # what is being given up has its place until then
        else:
            assert isinstance(answer, control.Ticket)
            return answer


def _is_closing(door: Door) -> bool:
    """Tell whether any session of whoever asks is closing."""
    view = ask(door, control.AskPool(0))
    assert isinstance(view, control.PoolView)
    return any(one.mine and one.state == "closing" for one in view.sessions)


def until(condition: Callable[[], bool], seconds: float = STATE_SECONDS) -> None:
    """Wait for a state of the pool. A gateway that is just away does not count against it."""
    said: list[str] = []

    def holds() -> bool:
        try:
            return condition()
        except PoolError as error:
            said.append(f"{monotonic():.1f}: {error}")
            return False

    try:
        wait_until(holds, seconds)
    except AssertionError as error:
        for word in said[-5:]:
            error.add_note(word)
        raise


def kill_and_wait(processes: Iterable[ProcessId]) -> bool:
    """Kill processes without warning and wait until nothing is left of them; tell whether there were any.

    They are stopped first, so that none sees another's end, however long we are kept from the processor meanwhile.
    """
    struck = list(processes)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in struck:
            with suppress(ProcessLookupError):  # it may have ended of itself
                os.kill(process.pid, number)
    wait_until(lambda: not any(process.is_running for process in struck))
    return bool(struck)


def processes_with(text: str) -> list[str]:
    """Return the command lines of all running processes that contain ``text``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and ProcessId.of(int(path.parent.name)) is not None:
            found.append(line)
    return found


def resident_bytes(pid: int) -> int:
    """Return how much memory the process ``pid`` holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


class MakePool:
    """Makes pools whose settings are given by keyword."""

    def __init__(self, base: Path) -> None:
        self.pools: list[state.PoolState] = []
        self._base = base

    def __call__(self, **settings: object) -> RunningPool:
        root = self._base / str(len(self.pools))
        self.pools.append(state.at(root))
        plain = {"devices": "cpu", "executor_command": PLAIN_EXECUTOR, "start_seconds": 60.0, "stop_seconds": 2.0}
        return RunningPool(root, PoolSettings(**{**plain, **settings}))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def make_pool() -> Iterator[MakePool]:
    """Make pools; they are ended, and that is checked, after the module."""
    base = Path(tempfile.mkdtemp(prefix="gwb"))  # pytest's own directories have paths too long for sockets
    make = MakePool(base)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("XDG_RUNTIME_DIR", raising=False)
        be_patient(patch)
        yield make
        for pool in make.pools:
            commands.down(pool)
            shutil.rmtree(pool.runtime, ignore_errors=True)
    left = [line for pool in make.pools for part in (pool.root, pool.runtime) for line in processes_with(str(part))]
    shutil.rmtree(base, ignore_errors=True)
    assert not left


def pytest_exception_interact(node: pytest.Item, report: pytest.TestReport) -> None:
    """Show beside a failure what the processes of the test's pools had to say."""
    make = getattr(node, "funcargs", {}).get("make_pool")
    for pool in make.pools if isinstance(make, MakePool) else ():
        for log in sorted(pool.logs.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()
            report.sections.append((str(log), "\n".join(lines[-_LOG_LINES:])))
