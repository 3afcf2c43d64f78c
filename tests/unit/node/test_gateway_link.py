"""What an agent makes of what its gateway says."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest
import zmq
import zmq.asyncio

from gpu_backend.node.gateway_link import _AGAIN_SECONDS, GatewayLink
from gpu_backend.transport import curve
from gpu_backend.transport.sockets import AGENTS_DOMAIN, as_server
from gpu_backend.transport.zap import LookedUpKeys, guard_async
from gpu_backend.wire import control
from gpu_backend.wire.codec import encode
from gpu_backend.wire.version import MAGIC, PROTOCOL_VERSION

GATEWAY, AGENT = curve.generate(), curve.generate()
PATIENT_SECONDS = 60.0
#: What opens a message of the next version, and nothing that any version could decode.
FOREIGN = bytes((MAGIC, PROTOCOL_VERSION + 1, 0xC1))


def test_a_gateway_of_another_version_is_told_of_once_and_its_orders_are_not_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        context = zmq.asyncio.Context()
        guard = guard_async(context, {AGENTS_DOMAIN: LookedUpKeys(lambda key: key == AGENT.public)})
        router = as_server(context.socket(zmq.ROUTER), GATEWAY, domain=AGENTS_DOMAIN)
        router.bind(f"ipc://{tmp_path}/agents")
        try:
            with closing(GatewayLink(context, AGENT, f"ipc://{tmp_path}/agents", GATEWAY.public)) as link:
                while not link.send(control.NodeReport((), (), 0)):
                    await link.receive(0.01)
                route = (await router.recv_multipart())[0]
                for message in (FOREIGN, FOREIGN, FOREIGN, bytes(encode(control.StopNode("It is over."))[0])):
                    await router.send_multipart([route, message])
                heard = [await link.receive(PATIENT_SECONDS) for _ in range(4)]
                assert heard == [None, None, None, control.StopNode("It is over.")]
        finally:
            guard.stop()
            context.destroy(linger=0)

    asyncio.run(asyncio.wait_for(story(), 2 * PATIENT_SECONDS))
    (line,) = caplog.messages
    assert f"The peer speaks protocol version {PROTOCOL_VERSION + 1}, this side speaks {PROTOCOL_VERSION}." in line


def test_a_line_that_was_lost_before_it_was_refused_has_been_away(tmp_path: Path) -> None:
    """A refused line is a new one, and what went into the one before may not have been heard."""
    context = zmq.asyncio.Context()
    with closing(GatewayLink(context, AGENT, f"ipc://{tmp_path}/agents", GATEWAY.public)) as link:
        assert not link.was_away()
        link._watch.disconnects, link._watch.failure = 1, "the key was refused"
        link._refused_at = monotonic() - 2 * _AGAIN_SECONDS
        before = link._watch
        link._look_after()
        assert link._watch is not before
        assert link.was_away()
        assert not link.was_away()
    context.destroy(linger=0)
