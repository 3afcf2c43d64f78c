"""`kill -9` of everything there is, each in the middle of work."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kernelproxy.session import handover
from tests.integration.conftest import MakePool

from .conftest import Faulty, is_running, until
from .notebook import Notebook

#: Takes a second or two on the device, and is asked for in an instant.
MUCH_WORK = "for _ in range(3000): big = big * 1.0000001 + 1"


def test_a_killed_executor_is_told_in_one_sentence_and_replaced(mine: Notebook) -> None:
    mine.value("old = cp.arange(5); big = cp.ones(200_000); float(big[0])")
    epoch, pid = int(mine.value("current_session().epoch")), mine.executor_pid()
    mine.run(MUCH_WORK)
    os.kill(pid, signal.SIGKILL)
    lost = mine.run("float(big[0])")
    assert (lost.error, lost.notes) == ("SessionLost", "")
    assert lost.text == (
        "The process that held this notebook's arrays ended unexpectedly. The arrays made so far are lost; a fresh "
        f"executor (epoch {epoch + 1}) has taken over. Run the cells again that make your arrays."
    )
    assert mine.value("(cp.arange(5) * 2).tolist(), current_session().epoch") == f"([0, 2, 4, 6, 8], {epoch + 1})"
    old = mine.run("(old + 1).tolist()")
    assert old.error == "SessionLost"
    assert "lost with an earlier executor" in old.text
    assert mine.value("cp.arange(3).tolist()") == "[0, 1, 2]"


def test_an_executor_killed_while_the_notebook_waits(mine: Notebook) -> None:
    mine.value("big = cp.ones(200_000); float(big[0])")
    pid = mine.executor_pid()
    mine.begin(f"while True:\n    {MUCH_WORK}\n    float(big[0])")  # until it is killed, however late that is
    os.kill(pid, signal.SIGKILL)
    assert mine.finish().error == "SessionLost"
    assert mine.value("float(cp.ones(3).sum())") == "3.0"


def test_an_executor_killed_while_the_notebook_sleeps(mine: Notebook) -> None:
    mine.value("cp.random.seed(1); x = cp.arange(5); float(x[0])")
    os.kill(mine.executor_pid(), signal.SIGKILL)
    told = mine.run("float(cp.ones(3).sum())")  # silence would hide that the seed is lost too
    assert told.error == "SessionLost"
    assert mine.value("cp.arange(3).tolist()") == "[0, 1, 2]"


@pytest.mark.parametrize("name", ["agent", "gateway"])
def test_a_killed_agent_or_gateway_is_not_noticed_by_a_session(mine: Notebook, faulty: Faulty, name: str) -> None:
    epoch = mine.value("x = cp.zeros(100, 'i8'); float(x[0]); current_session().epoch")
    mine.begin("for n in range(30_000):\n    x += n\nx[0].item(), current_session().epoch")
    faulty.pool.kill(name)
    assert mine.finish().value == f"({sum(range(30_000))}, {epoch})"
    until(lambda: faulty.pool.open().epoch == 1)  # and new sessions can be had, once it is heard


@pytest.fixture(scope="module")
def forgetful(make_pool: MakePool) -> Iterator[Faulty]:
    """A pool that frees sessions soon after they were last heard of; later than a machine keeps one from speaking."""
    with TemporaryDirectory(prefix="gwb") as directory:
        made = Faulty(make_pool, Path(directory), lease_seconds=15.0)
        yield made
        made.end_notebooks()


def test_the_session_of_a_stopped_notebook_is_freed_and_that_of_an_idle_one_is_not(forgetful: Faulty) -> None:
    mine, other = forgetful.notebook(), forgetful.notebook()
    mine.value("big = cp.ones(30_000_000); float(big[0])")
    other.value("x = cp.arange(5); float(x[0])")
    executor, theirs = mine.executor_pid(), other.executor_pid()
    mine.begin(MUCH_WORK)
    os.kill(mine.pid, signal.SIGSTOP)  # as on a laptop that sleeps
    until(lambda: not is_running(executor))  # and its memory is free
    until(lambda: len(forgetful.pool.sessions()) == 1)
    assert other.value("(x * 2).tolist()") == "[0, 2, 4, 6, 8]"
    assert is_running(theirs)
    mine.kill()


def test_a_killed_program_gives_its_place_back_at_once(faulty: Faulty, notebook: Callable[..., Notebook]) -> None:
    """A kernel whose starter holds the ticket does not: the kernel after it goes on with the session."""
    ticket = faulty.pool.open()
    handed = faulty.directory / "ticket"
    handover.write(ticket, handed)
    kernel, program, idle = notebook(**{handover.TICKET_VARIABLE: str(handed)}), notebook(), notebook()
    executors = []
    for one in (kernel, program, idle):
        one.value("big = cp.ones(200_000); float(big[0])")
        executors.append(one.executor_pid())
    program.begin(MUCH_WORK)
    for one in (kernel, program, idle):
        one.kill()
    until(lambda: not any(map(is_running, executors[1:])))
    until(lambda: set(faulty.pool.sessions().values()) == {"serving"})
    assert is_running(executors[0])
    again = faulty.pool.restart(ticket)
    assert again.epoch == ticket.epoch + 1
    handover.write(again, handed)
    assert notebook(**{handover.TICKET_VARIABLE: str(handed)}).value("float(cp.ones(3).sum())") == "3.0"


def test_a_terminated_program_gives_its_place_back_at_once(faulty: Faulty, notebook: Callable[..., Notebook]) -> None:
    """In the middle of work, and it still ends by the signal."""
    program = notebook()
    program.value("big = cp.ones(200_000); float(big[0])")
    executor = program.executor_pid()
    program.begin(f"{MUCH_WORK}\nfloat(big[0])")
    os.kill(program.pid, signal.SIGTERM)
    until(lambda: not is_running(executor))
    assert program.end() == -signal.SIGTERM
