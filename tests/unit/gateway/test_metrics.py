"""What Prometheus is told of a pool."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import ExitStack, closing, suppress
from math import inf
from pathlib import Path
from time import monotonic
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpu_backend.gateway import metrics_door
from gpu_backend.gateway.metrics import Figures, Metrics
from gpu_backend.gateway.metrics_door import MetricsDoor
from gpu_backend.wire.control import CloseSession, OpenSession, Queued
from gpu_backend.wire.errors import PoolFull, PoolRefusal
from gpu_backend.wire.views import PoolView, SessionView
from tests.integration.notebook_pool import wait_until
from tests.spare_ports import spare_port

from .played_pool import ADA, BOSS, EVE, PlayedAgent, World, play, until

Samples = dict[str, float]


def fetch(port: int) -> Samples:
    """Return every sample as "name{label=value,...}", labels of devices left out."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()) if name != "name")
            samples[f"{sample.name}{{{labels}}}"] = sample.value
    return samples


def test_all_of_it(tmp_path: Path) -> None:
    port = spare_port()

    async def story(world: World, agent: PlayedAgent) -> None:
        tickets = [await world.open(keys) for keys in (ADA, ADA, EVE)]
        with pytest.raises(PoolFull):
            await world.open(BOSS)
        with pytest.raises(PoolRefusal):
            await world.open(ADA)
        await agent.use(tickets[0].session, 2.5, by_class=(2.0, 0.0, 0.5))
        for waiter in ("w1", "w2"):
            assert isinstance(await world.ask(BOSS, OpenSession(0, "x", waiter=waiter)), Queued)
        await world.ask(EVE, CloseSession(0, tickets[2].session))
        while isinstance(await world.ask(BOSS, OpenSession(0, "x", waiter="w1")), Queued):
            pass

        async def told() -> bool:
            found.update(await asyncio.to_thread(fetch, port))
            return found.get("gpu_workbench_queue_wait_seconds_count{}") == 1.0

        await until(told)

    found: Samples = {}
    began = monotonic()
    play(tmp_path, story, metrics_port=port, metrics_by_user=True)
    device = "{device=0,kind=cpu,node=n}"
    assert found[f"gpu_workbench_device_memory_total_bytes{device}"] == float(1 << 34)
    assert found[f"gpu_workbench_device_places{device}"] == 3.0
    assert found[f"gpu_workbench_device_sessions{device}"] == 3.0
    assert {f"gpu_workbench_device_{name}{device}" for name in ("busy_ratio", "memory_used_bytes")} <= found.keys()
    assert found["gpu_workbench_sessions{state=serving,user=ada}"] == 2.0
    assert found["gpu_workbench_memory_bytes{user=ada}"] == 0.0
    assert found["gpu_workbench_queue_length{}"] == 1.0
    assert 0 < found["gpu_workbench_queue_wait_seconds_sum{}"] <= monotonic() - began
    assert found["gpu_workbench_gpu_seconds_total{user=ada}"] == 2.5
    classes = {name.partition("{")[2]: seconds for name, seconds in found.items() if "op_seconds_total" in name}
    assert classes == {"op_class=elementwise,user=ada}": 2.0, "op_class=linalg,user=ada}": 0.5}
    assert found["gpu_workbench_refusals_total{code=pool_full}"] == 1.0
    assert found["gpu_workbench_refusals_total{code=quota}"] == 1.0


def told(names_users: bool) -> dict[str, float]:
    """Return what is told of two users, by metric and labels."""
    sessions = tuple(
        SessionView(f"s{number}", user, "", "serving", 1, "n", 0, 0, 0.0, False, used_bytes=5)
        for number, user in enumerate(("ada", "ada", "eve"))
    )
    metrics = Metrics(names_users)
    view = PoolView(0, "p", "1", "", 0.0, (), sessions)
    classes = {("ada", "linalg"): 1.0, ("eve", "linalg"): 2.0, ("eve", "other"): 0.5}
    metrics.figures = Figures(view, {"ada": 1.0, "eve": 2.5}, classes)
    samples = [sample for family in metrics.collect() for sample in family.samples]
    return {f"{one.name}{sorted(one.labels.values())}": one.value for one in samples if "queue" not in one.name}


def test_users_are_not_told_apart_unless_the_operator_says_so() -> None:
    """Every account of the machine can read the port."""
    assert told(names_users=False) == {
        "gpu_workbench_sessions['serving']": 3.0,
        "gpu_workbench_memory_bytes[]": 15.0,
        "gpu_workbench_gpu_seconds_total[]": 3.5,
        "gpu_workbench_op_seconds_total['linalg']": 3.0,
        "gpu_workbench_op_seconds_total['other']": 0.5,
    }
    by_user = told(names_users=True)
    assert by_user["gpu_workbench_gpu_seconds_total['eve']"] == 2.5
    assert by_user["gpu_workbench_sessions['ada', 'serving']"] == 2.0


def heard_to_its_end(connected: socket.socket) -> bytes:
    """Return what is said until the other side hangs up."""
    with suppress(ConnectionError):
        return b"".join(iter(lambda: connected.recv(4096), b""))
    return b""


def test_connections_are_few_and_none_is_kept_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_door, "_MOST_SECONDS", inf)
    port, most = spare_port(), metrics_door._MOST_CONNECTIONS
    door = MetricsDoor(Metrics(), port)
    with closing(door), ExitStack() as stack:

        def stranger(says: bytes) -> socket.socket:
            connected = stack.enter_context(socket.create_connection(("127.0.0.1", port), 90))
            connected.sendall(says)
            return connected

        held = [stranger(b"GET / HT") for _ in range(most)]  # and no more for ever
        assert heard_to_its_end(stranger(b"")) == b"", "there is no place for it, nor a thread"
        server = door._server
        assert server is not None
        assert len(server._until) == most
        for connection in list(server._until):
            server._until[connection] = 0.0  # as when their time has passed
        for connected in held:
            assert b"200 OK" not in heard_to_its_end(connected)
        wait_until(lambda: not server._until)  # their threads are about to end
        assert fetch(port) == {}


def test_only_this_machine_is_answered_and_only_while_open() -> None:
    port = spare_port()
    door = MetricsDoor(Metrics(), port)
    assert fetch(port) == {}
    door.close()
    with pytest.raises(OSError):
        fetch(port)


def test_a_port_that_is_taken_is_logged_and_the_pool_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as other, caplog.at_level(logging.ERROR):
        other.bind(("127.0.0.1", 0))
        other.listen()
        MetricsDoor(Metrics(), other.getsockname()[1]).close()
    assert "cannot be had" in caplog.text
