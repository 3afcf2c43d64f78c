"""What every engine must do: one file, run over all of them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpu_backend.engine.base import Engine, NodeChange, NodeEvent
from gpu_backend.engine.detached import ProcessId, read_identity
from gpu_backend.engine.local import LocalEngine
from gpu_backend.engine.ray import RayEngine
from gpu_backend.engine.ray_cluster import RayCluster, make_token
from tests.ray_nodes import NEEDS_RAY, RayHead, head_of_ray, running
from tests.spare_ports import spare_port

#: An agent as far as an engine can tell. It notes each start in the directory it is started in.
AGENT = "import os, signal; open(f'started.{os.getpid()}', 'w').close(); signal.pause()"


#: What prepares a node of Ray for such an agent, in the directory that it is told.
PREPARE = f"""
import json, os, sys
node, address, directory = json.load(sys.stdin)
if node != "n":
    directory = os.path.join(directory, node)
    os.makedirs(directory, exist_ok=True)
command = [sys.executable, "-c", {AGENT!r}]
print(json.dumps(dict(command=command, directory=directory, log_file=directory + "/log", key="key of " + node)))
"""


@dataclass
class Cluster:
    """Where engines of one kind work, and what can be seen of their agents from outside."""

    directory: Path

    def engine(self) -> Engine:
        """Return an engine as a newly started gateway makes it."""
        return LocalEngine("n", [sys.executable, "-c", AGENT], self.directory, self.directory / "log")

    def end(self) -> None:
        """Leave nothing running."""
        agent = self.agent()
        if agent is not None:
            os.kill(agent.pid, signal.SIGKILL)

    def agent(self) -> ProcessId | None:
        """Return the agent of the node ``n``, if it runs."""
        return read_identity(self.directory / "agent.json")

    def starts(self) -> int:
        """Return how often an agent was started."""
        return len(list(self.directory.glob("started.*")))


@dataclass
class ClusterOfRay(Cluster):
    """One node of Ray, the head."""

    head: RayHead
    admitted: list[tuple[str, str]] = field(default_factory=list)

    def engine(self) -> Engine:
        log = self.directory / "driver.log"
        return RayEngine(
            self.head.cluster, ["-c", PREPARE], str(self.directory), log, lambda *one: self.admitted.append(one)
        )

    def end(self) -> None:
        """End keeper and agent, for the next test has others on the same node."""

        async def stop(watcher: Watcher) -> None:
            await until(lambda: len(watcher.events) > 0)
            await watcher.engine.stop_agent("n")

        run(self, stop)
        assert self.agent() is None


@pytest.fixture(scope="module")
def ray_head() -> Iterator[RayHead]:
    with head_of_ray("n") as head:
        yield head


@pytest.fixture(params=["local", pytest.param("ray", marks=[pytest.mark.ray, NEEDS_RAY])])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    if request.param == "ray":
        made: Cluster = ClusterOfRay(tmp_path, request.getfixturevalue("ray_head"))
    else:
        made = Cluster(tmp_path)
    yield made
    made.end()


class Watcher:
    """Keeps an engine's agents by watching it, as a gateway does, and remembers what it said."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.events: list[NodeEvent] = []

    async def watch(self) -> None:
        async for event in self.engine.watch():
            self.events.append(event)
            if event.change is NodeChange.JOINED:
                await self.engine.ensure_agent(event.node)

    def changes(self) -> list[NodeChange]:
        return [event.change for event in self.events]


def run(cluster: Cluster, story: Callable[[Watcher], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        watcher = Watcher(cluster.engine())
        watching = asyncio.create_task(watcher.watch())
        try:
            async with asyncio.timeout(280):
                await story(watcher)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    asyncio.run(all_of_it())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_the_nodes_that_are_there_join_first(cluster: Cluster) -> None:
    async def story(watcher: Watcher) -> None:
        await until(lambda: len(watcher.events) > 0)
        assert watcher.events[0] == NodeEvent("n", NodeChange.JOINED)
        assert await watcher.engine.nodes() == ("n",)

    run(cluster, story)


def test_a_node_has_one_agent_however_often_it_is_wanted(cluster: Cluster) -> None:
    async def story(watcher: Watcher) -> None:
        await until(lambda: cluster.starts() == 1)
        agent = cluster.agent()
        for _ in range(3):
            await watcher.engine.ensure_agent("n")
        assert cluster.agent() == agent
        assert cluster.starts() == 1

    run(cluster, story)


def test_an_agent_that_dies_is_started_again(cluster: Cluster) -> None:
    async def story(watcher: Watcher) -> None:
        await until(lambda: cluster.starts() == 1)
        first = cluster.agent()
        assert first is not None
        os.kill(first.pid, signal.SIGKILL)
        await until(lambda: NodeChange.AGENT_STARTED in watcher.changes())
        await until(lambda: cluster.starts() == 2)
        second = cluster.agent()
        assert second is not None
        assert second != first

    run(cluster, story)


def test_an_agent_outlives_its_engine_and_is_adopted_by_the_next(cluster: Cluster) -> None:
    async def first(watcher: Watcher) -> None:
        await until(lambda: cluster.starts() == 1)

    async def second(watcher: Watcher) -> None:
        agent = cluster.agent()
        await until(lambda: watcher.changes() == [NodeChange.JOINED])
        await watcher.engine.ensure_agent("n")
        assert cluster.agent() == agent
        assert cluster.starts() == 1
        assert agent is not None
        os.kill(agent.pid, signal.SIGKILL)  # adopted means kept
        await until(lambda: cluster.starts() == 2)

    run(cluster, first)
    run(cluster, second)


def test_a_stopped_agent_stays_stopped_until_it_is_wanted_again(cluster: Cluster) -> None:
    async def story(watcher: Watcher) -> None:
        await until(lambda: cluster.starts() == 1)
        for _ in range(2):
            await watcher.engine.stop_agent("n")
        assert cluster.agent() is None
        assert NodeChange.AGENT_STARTED not in watcher.changes()
        await watcher.engine.ensure_agent("n")
        await until(lambda: cluster.starts() == 2)

    run(cluster, story)


def test_an_unknown_node_is_named(cluster: Cluster) -> None:
    async def story(watcher: Watcher) -> None:
        with pytest.raises(LookupError, match="elsewhere"):
            await watcher.engine.ensure_agent("elsewhere")
        with pytest.raises(LookupError, match="elsewhere"):
            await watcher.engine.stop_agent("elsewhere")

    run(cluster, story)


def test_asking_for_capacity_says_what_to_expect(cluster: Cluster) -> None:
    async def story(watcher: Watcher) -> None:
        assert await watcher.engine.ask_capacity(4) >= 0

    run(cluster, story)


@pytest.fixture
def cluster_of_ray(ray_head: RayHead, tmp_path: Path) -> Iterator[ClusterOfRay]:
    made = ClusterOfRay(tmp_path, ray_head)
    yield made
    made.end()


@pytest.mark.ray
@NEEDS_RAY
def test_a_node_that_joins_is_kept_and_its_loss_is_told(cluster_of_ray: ClusterOfRay) -> None:
    directory, ray = cluster_of_ray.directory, cluster_of_ray.head.cluster
    second = Cluster(directory / "m")

    async def story(watcher: Watcher) -> None:
        command = ray.node_command("m", "127.0.0.1", cluster_of_ray.head.directory / "m")
        with running(command, ray.environment(), directory / "m.log") as kill:
            await until(lambda: NodeEvent("m", NodeChange.JOINED) in watcher.events)
            await until(lambda: second.agent() is not None)
            await until(lambda: ("m", "key of m") in cluster_of_ray.admitted)
            kill()
            await until(lambda: NodeChange.LOST in watcher.changes())
        assert watcher.events[-1].node == "m"
        assert await watcher.engine.nodes() == ("n",)
        assert second.agent() is not None  # what runs on a node needs no Ray

    try:
        run(cluster_of_ray, story)
    finally:
        second.end()


@pytest.mark.ray
@NEEDS_RAY
def test_a_driver_ends_with_its_gateway_though_no_head_is_there(tmp_path: Path) -> None:
    cluster = RayCluster(f"127.0.0.1:{spare_port()}", tmp_path / "token")
    make_token(cluster.token_file)
    command = [sys.executable, "-m", "gpu_backend.engine.ray_driver", cluster.address, "-c", PREPARE]
    ended = subprocess.run(command, env=cluster.environment(), stdin=subprocess.DEVNULL, capture_output=True)
    assert ended.returncode == 0
    assert ended.stdout == b""
