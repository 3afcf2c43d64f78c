"""What the gateway knows of its nodes, and that whoever waits for a report hears the very next one."""

from __future__ import annotations

import asyncio

import pytest
import zmq.asyncio

from gpu_backend.gateway.loads import Wanted
from gpu_backend.gateway.nodes import Nodes
from gpu_backend.gateway.placement import place
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.wire import control
from gpu_backend.wire.devices import DeviceReport


def test_a_report_made_while_somebody_begins_to_wait_is_heard() -> None:
    async def story() -> None:
        with zmq.asyncio.Context() as context, context.socket(zmq.ROUTER) as socket:
            nodes = Nodes(socket, silence_seconds=10.0, capacity=1)
            waiting = asyncio.create_task(nodes.reports.wait(60.0))
            # Right after its first step: it has begun, and nothing more.
            asyncio.get_running_loop().call_soon(nodes.note, "n", b"route", control.NodeReport((), (), 0))
            async with asyncio.timeout(5):
                await waiting
            assert nodes.names() == ["n"]

    asyncio.run(story())


def test_a_device_that_is_withheld_takes_no_new_sessions_and_is_named() -> None:
    reports = [
        DeviceReport(n, "cuda", "a part", f"MIG-{n}", 1 << 30, 0, is_part=True, is_withheld=n == 0) for n in (0, 1)
    ]
    with zmq.asyncio.Context() as context, context.socket(zmq.ROUTER) as socket:
        nodes = Nodes(socket, silence_seconds=10.0, capacity=1)
        nodes.note("n", b"route", control.NodeReport(tuple(reports), (), 0))
        withheld, other = nodes.devices()
    assert (withheld.drained, other.drained) == ("n/cuda0", "")
    assert withheld.is_part
    found = place([withheld, other], "", 0, Wanted())
    assert not isinstance(found, Refusal)
    assert found.ordinal == 1
    refused = place([withheld], "", 0, Wanted())
    assert isinstance(refused, Refusal)
    assert "n/cuda0 takes no new sessions, by the word of the pool's operator" in refused.message


def test_an_order_that_cannot_be_said_is_no_more_given_again_and_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with zmq.asyncio.Context() as context, context.socket(zmq.ROUTER) as socket:
        nodes = Nodes(socket, silence_seconds=10.0, capacity=1)
        nodes.note("n", b"route", control.NodeReport((), (), 0))
        assert nodes.send("n", control.SetTerms("s", control.Terms(priority=1 << 64)))
    assert "an order for n cannot be said" in caplog.text
