"""The door of a gateway at which agents speak: for agents alone, and no trouble for anybody else."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
import zmq

from gpu_backend.gateway import service
from gpu_backend.transport.asking import Door, ask_async
from gpu_backend.transport.sockets import as_client
from gpu_backend.wire import control
from gpu_backend.wire.codec import encode
from gpu_backend.wire.errors import MalformedMessage, NotAuthorized

from .played_pool import ADA, AGENT, BOSS, DEVICE, GATEWAY, PATIENT_SECONDS, PlayedAgent, World, play, until


def test_the_agents_door_is_not_for_users_nor_the_users_door_for_agents(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        for door, keys in ((world.users_endpoint, AGENT), (world.agents_endpoint, ADA), (world.agents_endpoint, BOSS)):
            with pytest.raises(NotAuthorized, match="turned us away"):
                await ask_async(Door(door, GATEWAY.public, keys), control.AskPool(0), PATIENT_SECONDS)

        async def the_nodes_own() -> bool:
            return len((await world.view()).devices) == 1

        await until(the_nodes_own)

    play(tmp_path, story)


def test_agents_with_much_to_tell_do_not_keep_users_waiting(tmp_path: Path) -> None:
    lines = tuple(
        control.ExecutorReport(f"s{n}", 1, 0, "k" * 40, (), "5" * 64, "c" * 64, 0, 60.0, 0, 0, 0.0) for n in range(64)
    )
    frames = encode(control.NodeReport((DEVICE,), lines, len(lines)))

    async def story(world: World, agent: PlayedAgent) -> None:
        answered = threading.Event()

        def tell() -> None:
            with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
                as_client(socket, AGENT, GATEWAY.public).connect(world.agents_endpoint)
                while not answered.is_set():
                    socket.send_multipart(frames)

        telling = asyncio.create_task(asyncio.to_thread(tell))
        for _ in range(5):
            await world.view()
        assert not telling.done()
        answered.set()
        await telling

    play(tmp_path, story)


def test_what_is_dropped_at_the_agents_door_is_logged_once_a_second(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever becomes of it: a node may go on for ever with what cannot be read, or with what no code has foreseen."""
    monkeypatch.setattr(service, "monotonic", lambda: now[0])
    now = [100.0]
    gateway = object.__new__(service.Gateway)  # of which no more is needed here
    gateway._next_note = 0.0
    for _ in range(3):
        gateway._note_dropped(MalformedMessage("no"))
        gateway._note_dropped(KeyError("unforeseen"), has_traceback=True)
    now[0] += 2.0
    for _ in range(3):
        gateway._note_dropped(KeyError("unforeseen"), has_traceback=True)
    assert [record.exc_info is not None for record in caplog.records] == [False, True]
