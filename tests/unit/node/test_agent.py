"""An agent's own loops, without a gateway or executors."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gpu_backend.engine.detached import ProcessId, end, write_identity
from gpu_backend.node import agent as node_agent
from gpu_backend.node import executor as node_executor
from gpu_backend.node import launcher
from gpu_backend.node.agent import Agent
from gpu_backend.node.inventory import Found
from gpu_backend.node.places import Place
from gpu_backend.node.settings import NO_GATE, NodeSettings
from gpu_backend.transport import curve
from gpu_backend.wire import control, orders

DEVICE = Found(0, "cpu", "a CPU", "cpu-0", 1 << 30)
LAUNCH = control.Launch("s", 1, 0, "k" * 40, 1 << 20, 60.0)


class Listener:
    """A gateway's line on which all is heard."""

    def __init__(self) -> None:
        self.heard = 0

    def send(self, message: object) -> bool:
        self.heard += 1
        return True

    def was_away(self) -> bool:
        return False


class Insisting(Listener):
    """A gateway's line on which each report is answered by an order, as the real one's while it misses something."""

    def __init__(self, order: control.ToAgent) -> None:
        super().__init__()
        self._orders: asyncio.Queue[control.ToAgent] = asyncio.Queue()
        self._order = order
        #: Orders that were taken.
        self.given = 0

    def send(self, message: object) -> bool:
        self._orders.put_nowait(self._order)
        return super().send(message)

    async def receive(self, seconds: float) -> control.ToAgent:
        order = await self._orders.get()
        self.given += 1
        return order

    def close(self) -> None:
        """Nothing is open."""


def settings_in(directory: Path, **others: object) -> NodeSettings:
    return NodeSettings(
        node="n", gateway="ipc://g", gateway_key="k" * 40, key_file="k", runtime_dir=str(directory),
        log_dir=str(directory), cache_dir=str(directory / "c"), **others,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize("turns", range(5))
def test_news_that_come_with_the_end_do_not_hide_it(tmp_path: Path, turns: int) -> None:
    async def story() -> None:
        agent, listener = Agent(settings_in(tmp_path), curve.generate(), ()), Listener()
        agent._link = listener  # type: ignore[assignment]
        attending = asyncio.create_task(agent._attend())
        while not listener.heard:
            await asyncio.sleep(0)
        agent._news.set()
        for _ in range(turns):  # of the loop, between the news and the end
            await asyncio.sleep(0)
        attending.cancel()
        await asyncio.wait({attending})
        assert attending.cancelled()

    asyncio.run(story())


def test_an_order_that_is_repeated_after_each_report_does_not_bring_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else agent and gateway would keep two cores busy while an executor starts, which then starts the slower."""
    starting_for_long = settings_in(tmp_path, executor_command=("/bin/sh", "-c", "sleep 60"), policy=NO_GATE)

    async def story() -> None:
        line = Insisting(LAUNCH)
        monkeypatch.setattr(node_agent, "GatewayLink", lambda *_: line)
        monkeypatch.setattr(node_agent, "_REPORT_SECONDS", 3_600.0)  # else it reports anyhow, every second
        agent = Agent(starting_for_long, curve.generate(), (DEVICE,))
        running = asyncio.create_task(agent.run())
        while not line.given:
            await asyncio.sleep(0)
        for _ in range(1000):  # turns of the loop
            await asyncio.sleep(0)
        assert 2 <= line.heard <= 4
        agent.stop()
        await running

    try:
        asyncio.run(story())
    finally:
        for directory in launcher.directories(str(tmp_path)):
            identity = launcher.process_in(directory)
            if identity is not None:
                end(identity, 1.0)


def test_an_executor_that_says_nothing_is_not_said_to_hear_its_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of an op it hears nobody: what it said last ages."""
    now = [100.0]
    monkeypatch.setattr(node_executor, "monotonic", lambda: now[0])
    executor = node_executor.Executor(tmp_path, ProcessId(1, 1), [Place(0, tmp_path)])
    now[0] = 130.0
    assert executor.idle_seconds == 30.0, "since it was found"
    executor._changed = lambda _: None
    executor._take_in(orders.Report(orders.Phase.SERVING, "s", 1, 1, 0, 0, 2.0))
    assert executor.idle_seconds == 2.0
    now[0] = 200.0
    assert executor.idle_seconds == 72.0


@pytest.mark.parametrize("is_told", [True, False])
def test_an_executor_whose_session_is_over_holds_none_while_its_process_still_ends(
    tmp_path: Path, is_told: bool
) -> None:
    """Else `workbench node down` would refuse for a session of which nobody can see anything any more."""
    write_identity(tmp_path / launcher.PROCESS, ProcessId.mine())
    launcher.note_assignment(tmp_path, orders.Assign("s", 1, "k" * 40, 5, 60.0))
    executor = node_executor.Executor(tmp_path, ProcessId.mine(), [Place(0, tmp_path)])
    assert launcher.has_session(tmp_path)
    seen_when_told = []
    executor._changed = lambda _: seen_when_told.append(launcher.has_session(tmp_path))
    if is_told:
        executor.stop("The notebook closed its session.")
    else:
        executor._take_in(orders.Report(orders.Phase.ENDING, "s", 1, 1, 0, 0, 0.0))
        assert seen_when_told == [False], "before the gateway hears of it"
    assert launcher.process_in(tmp_path) is not None
    assert not launcher.has_session(tmp_path)


class Away(Listener):
    """A line on which nothing can be sent until the gateway ``is_there``."""

    def __init__(self) -> None:
        super().__init__()
        self.is_there = False
        self.sent: list[object] = []

    def send(self, message: object) -> bool:
        if self.is_there:
            self.sent.append(message)
        return self.is_there

    def was_away(self) -> bool:
        return False


def test_why_an_executor_ended_while_the_gateway_was_away_is_told_before_it_is_missed(tmp_path: Path) -> None:
    """Else a session that its notebook gave back just then would be lost, and hold its place for its whole lease."""
    agent, line = Agent(settings_in(tmp_path), curve.generate(), ()), Away()
    agent._link = line  # type: ignore[assignment]
    write_identity(tmp_path / launcher.PROCESS, ProcessId.mine())
    launcher.note_assignment(tmp_path, orders.Assign("s", 1, "k" * 40, 5, 60.0))
    executor = node_executor.Executor(tmp_path, ProcessId.mine(), [Place(0, tmp_path)])
    executor._changed = agent._changed
    bye = orders.Report(
        orders.Phase.ENDING, "s", 1, 1, 0, 0, 0.0, "The notebook closed its session.", control.EndCause.RELEASED
    )
    executor._take_in(bye)
    line.is_there = True

    async def story() -> None:
        attending = asyncio.create_task(agent._attend())
        while len(line.sent) < 2:
            await asyncio.sleep(0)
        attending.cancel()
        await asyncio.wait({attending})

    asyncio.run(story())
    ended = control.ExecutorEnded("s", 1, control.EndCause.RELEASED, "The notebook closed its session.")
    assert line.sent[0] == ended
    assert isinstance(line.sent[1], control.NodeReport)
    assert line.sent.count(ended) == 1
