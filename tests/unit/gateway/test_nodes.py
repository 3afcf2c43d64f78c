"""What the gateway knows of its nodes, and that whoever waits for a report hears the very next one."""

from __future__ import annotations

import asyncio

import zmq.asyncio

from gpu_backend.gateway.nodes import Nodes
from gpu_backend.wire import control


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
