"""A hostile node, admitted at the agents' door, says whatever it likes: it harms no session but those it was given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import time

import msgspec
import pytest

from gpu_backend.gateway.directory import Directory
from gpu_backend.transport import curve
from gpu_backend.transport.curve import KeyPair
from gpu_backend.wire import control
from gpu_backend.wire.codec import encode
from tests.unit.gateway.played_pool import ADA, AGENT, BOSS, DEVICE, PlayedAgent, World, play, until

MALLORY = curve.generate()
_TRAP = "tls://trap.example:1"

Attack = Callable[[World, PlayedAgent, PlayedAgent, control.Ticket], Awaitable[None]]


def attacked(tmp_path: Path, attack: Attack) -> None:
    """Have ada's session on the node ``n`` survive what the node ``m`` does."""

    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        records = Directory(tmp_path / "directory.sqlite")
        records.set_node("m", MALLORY.public.decode())
        records.close()
        mallory = PlayedAgent(world.context, world.agents_endpoint, MALLORY)
        playing = asyncio.create_task(mallory.serve())
        try:
            await attack(world, agent, mallory, ticket)
            renewed = await world.renew(ticket.session)
            assert isinstance(renewed, control.Ticket)
            assert (renewed.epoch, renewed.endpoints, renewed.secret) == (1, ticket.endpoints, ticket.secret)
            (session,) = (await world.view()).sessions
            assert (session.node, session.state, session.gpu_seconds) == ("n", "serving", 0.0)
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)

    play(tmp_path, story)


def claimed(session: str, epoch: int = 1, seal: str = "", idle_seconds: float = 0.0) -> control.ExecutorReport:
    """Return ada's session as the hostile node claims to have it."""
    return control.ExecutorReport(
        session, epoch, 0, ADA.public.decode(), (_TRAP,), "6" * 64, "d" * 64, 0, 60.0, 0, 0, idle_seconds,
        control.Usage(1_000.0), control.Booked(1_000.0, 1_000.0, 1_000.0), seal,
    )  # fmt: skip


async def said(agent: PlayedAgent, *lines: control.ExecutorReport) -> None:
    """Have a node say that it has these executors, until the gateway has told it to end every one of them."""
    await agent.send(control.NodeReport((DEVICE,), lines, len(lines)))
    wanted = {(line.session, line.epoch) for line in lines}

    async def all_refused() -> bool:
        return wanted <= {(one.session, one.epoch) for one in agent.heard if isinstance(one, control.StopExecutor)}

    await until(all_refused)


@pytest.mark.parametrize(("epoch", "idle_seconds"), [(1, 0.0), (2, 0.0), (1 << 40, 0.0), (1, 1e9), (2, 1e9)])
def test_another_nodes_session_is_not_taken_over_or_ended(tmp_path: Path, epoch: int, idle_seconds: float) -> None:
    async def attack(world: World, agent: PlayedAgent, mallory: PlayedAgent, ticket: control.Ticket) -> None:
        await said(mallory, claimed(ticket.session, epoch, idle_seconds=idle_seconds))

    attacked(tmp_path, attack)


def test_the_seal_of_another_node_is_good_for_nothing(tmp_path: Path) -> None:
    async def attack(world: World, agent: PlayedAgent, mallory: PlayedAgent, ticket: control.Ticket) -> None:
        seal = agent.executors[ticket.session, 1].seal
        assert seal
        await said(mallory, claimed(ticket.session, 1, seal), claimed(ticket.session, 2, seal))

    attacked(tmp_path, attack)


def test_another_nodes_session_is_not_said_to_have_ended(tmp_path: Path) -> None:
    async def attack(world: World, agent: PlayedAgent, mallory: PlayedAgent, ticket: control.Ticket) -> None:
        for cause in control.EndCause:
            await mallory.send(control.ExecutorEnded(ticket.session, 1, cause, "It is gone."))
        await mallory.send(control.LaunchFailed(ticket.session, 1, "No."))
        await said(mallory, claimed(ticket.session))

    attacked(tmp_path, attack)


def test_no_session_is_made_up_for_a_user(tmp_path: Path) -> None:
    async def attack(world: World, agent: PlayedAgent, mallory: PlayedAgent, ticket: control.Ticket) -> None:
        await said(mallory, claimed("made-up", 3), claimed("made-up-too", 1, "f" * 64))
        assert [one.session for one in (await world.view(BOSS)).sessions] == [ticket.session]
        assert all(not row.gpu_seconds for row in (await world.usage(BOSS)).rows)

    attacked(tmp_path, attack)


@pytest.mark.parametrize(("keys", "door"), [(AGENT, "users"), (ADA, "agents")], ids=["node", "user"])
def test_who_is_known_at_one_door_is_unknown_at_the_other(tmp_path: Path, keys: KeyPair, door: str) -> None:
    async def attack(world: World, agent: PlayedAgent, mallory: PlayedAgent, ticket: control.Ticket) -> None:
        await world.is_turned_away(world.users_endpoint if door == "users" else world.agents_endpoint, keys)

    attacked(tmp_path, attack)


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), -1.0, 1e300])
def test_figures_that_cannot_be_are_not_reckoned_with(tmp_path: Path, figure: float) -> None:
    async def attack(world: World, agent: PlayedAgent, mallory: PlayedAgent, ticket: control.Ticket) -> None:
        await mallory.send(control.NodeReport((msgspec.structs.replace(DEVICE, ordinal=5),), (), 1, "1", figure))
        for usage, booked in ((figure, 0.0), (0.0, figure)):
            line = msgspec.structs.replace(
                claimed("x"), usage=control.Usage(usage), booked=control.Booked(0.0, booked, 1.0)
            )
            await mallory.send(control.NodeReport((DEVICE,), (line,), 1))
        await said(mallory, claimed("made-up"))
        assert {one.ordinal for one in (await world.view()).devices} == {0}

    attacked(tmp_path, attack)


def test_what_a_terminal_would_obey_is_not_shown(tmp_path: Path) -> None:
    async def attack(world: World, agent: PlayedAgent, mallory: PlayedAgent, ticket: control.Ticket) -> None:
        mallory.speaks = False
        device = msgspec.structs.replace(DEVICE, name="\x1b]0;owned\x07GPU", ordinal=3, unseen="a" * 10_000)
        report = control.NodeReport((device,), (), 0, "\x1b[2J1.0\n")
        with world.raw(world.agents_endpoint, MALLORY) as socket:
            await socket.send_multipart(encode(report))

            async def is_shown() -> bool:
                return any(one.ordinal == 3 for one in (await world.view()).devices)

            await until(is_shown)
        view = await world.view()
        (shown,) = (one for one in view.devices if one.ordinal == 3)
        assert (shown.name, len(shown.unseen)) == ("]0;owned GPU", 300)
        assert next(one.version for one in view.nodes if one.name == "m") == "[2J1.0"

    attacked(tmp_path, attack)


def test_more_devices_and_executors_than_can_be_are_not_looked_at(tmp_path: Path) -> None:
    async def attack(world: World, agent: PlayedAgent, mallory: PlayedAgent, ticket: control.Ticket) -> None:
        many = tuple(msgspec.structs.replace(DEVICE, ordinal=number) for number in range(300))
        for devices in (many, (DEVICE, DEVICE)):
            await mallory.send(control.NodeReport(devices, (), 0))
        await mallory.send(control.NodeReport((DEVICE,), tuple(claimed(f"x{n}") for n in range(5_000)), 0))
        await said(mallory, claimed("made-up"))
        assert {one.ordinal for one in (await world.view()).devices} == {0}
        assert not any(isinstance(one, control.StopExecutor) and one.session == "x1" for one in mallory.heard)

    attacked(tmp_path, attack)


def test_a_seal_that_was_kept_brings_no_session_back_that_the_records_have_dropped(tmp_path: Path) -> None:
    kept: list[control.Launch] = []

    async def before(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        kept.extend(agent.executors.values())
        await world.ask(ADA, control.CloseSession(0, ticket.session))

        async def closed() -> bool:
            return not (await world.view()).sessions

        await until(closed)

    async def after(world: World, agent: PlayedAgent) -> None:
        (order,) = kept
        await said(agent, claimed(order.session, order.epoch, order.seal))
        assert not (await world.view()).sessions
        assert not any(row.gpu_seconds for row in (await world.usage(BOSS)).rows)

    play(tmp_path, before)
    records = Directory(tmp_path / "directory.sqlite")
    records.forget_closed(time() + 1.0)
    records.close()
    play(tmp_path, after)
