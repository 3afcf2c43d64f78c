"""Machines that join a pool, take no more sessions, fall silent, are removed: in one process with the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import time

import msgspec
import pytest

from gpu_backend.engine.base import NodeChange, NodeEvent
from gpu_backend.gateway.directory import Directory
from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door, ask_async
from gpu_backend.transport.curve import KeyPair
from gpu_backend.wire import control
from gpu_backend.wire.codec import encode
from gpu_backend.wire.errors import NotAuthorized, PoolFull, PoolRefusal
from gpu_backend.wire.joining import AskNode, Join, Question
from gpu_backend.wire.views import Membership, NodeView

from .played_pool import ADA, AGENT, DEVICE, EVE, GATEWAY, PATIENT_SECONDS, PlayedAgent, World, play, until

INVITATION, JOINER = curve.generate(), curve.generate()
Story = Callable[[World, PlayedAgent, PlayedAgent], Awaitable[None]]


@contextmanager
def records(tmp_path: Path) -> Iterator[Directory]:
    with closing(Directory(tmp_path / "directory.sqlite")) as directory:
        yield directory


async def asked(world: World, keys: KeyPair, message: Question) -> Membership:
    answer = await ask_async(Door(world.agents_endpoint, GATEWAY.public, keys), message, PATIENT_SECONDS)
    assert isinstance(answer, Membership)
    return answer


async def joined(world: World, keys: KeyPair = JOINER, invitation: KeyPair = INVITATION) -> Membership:
    return await asked(world, invitation, Join(0, keys.public.decode()))


def play_two(tmp_path: Path, story: Story, **changes: object) -> None:
    """Have ``story`` happen in a pool which the machine ``m`` has joined."""

    async def all_of_it(world: World, agent: PlayedAgent) -> None:
        with records(tmp_path) as directory:
            directory.invite("m", INVITATION.public.decode(), time() + 60.0)
        await joined(world)
        other = PlayedAgent(world.context, world.agents_endpoint, JOINER)
        playing = asyncio.create_task(other.serve())
        try:
            await until(lambda: are_up(world, {"m", "n"}))
            await story(world, agent, other)
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)

    play(tmp_path, all_of_it, **changes)


async def are_up(world: World, nodes: set[str]) -> bool:
    return {device.node for device in (await world.view()).devices} == nodes


async def node(world: World, name: str) -> NodeView:
    return next(one for one in (await world.view()).nodes if one.name == name)


async def opened_on(world: World, name: str, keys: KeyPair = ADA) -> control.Ticket:
    """Open sessions until one is on that node, and keep only that."""
    ticket = await world.open(keys)
    where = {one.session: one.node for one in (await world.view(keys)).sessions}
    if where[ticket.session] == name:
        return ticket
    kept = await opened_on(world, name, keys)
    await world.ask(keys, control.CloseSession(0, ticket.session))
    return kept


def test_a_machine_that_was_invited_joins_with_a_key_of_its_own(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        assert (await joined(world)).node.name == "m"  # again, as when the first answer was lost
        seen = await asked(world, JOINER, AskNode(0))
        assert (seen.pool, seen.version, seen.node.name, seen.node.state, seen.node.devices) == (
            "test",
            "1",
            "m",
            "up",
            1,
        )
        assert (await opened_on(world, "m")).epoch == 1

    play_two(tmp_path, story)


def test_an_invitation_is_good_for_one_machine(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        with pytest.raises(NotAuthorized, match="used already"):
            await joined(world, curve.generate())
        await until(lambda: are_up(world, {"m", "n"}))

    play_two(tmp_path, story)


def test_a_token_that_was_made_up_or_is_too_old_is_turned_away(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        with records(tmp_path) as directory:
            directory.invite("m", INVITATION.public.decode(), time() - 1.0)
        for keys in (INVITATION, curve.generate(), ADA):
            with pytest.raises(NotAuthorized, match="turned us away"):
                await joined(world, invitation=keys)

    play(tmp_path, story)


def test_an_invitation_for_a_node_ends_the_one_before(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        with records(tmp_path) as directory:
            directory.invite("m", INVITATION.public.decode(), time() + 60.0)
            directory.invite("m", curve.generate().public.decode(), time() + 60.0)
        await world.is_turned_away(world.agents_endpoint, INVITATION)

    play(tmp_path, story)


@pytest.mark.parametrize("public", [ADA.public, AGENT.public, INVITATION.public, b"no key"], ids=str)
def test_no_machine_joins_with_a_key_that_others_have(tmp_path: Path, public: bytes) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        with records(tmp_path) as directory:
            directory.invite("m", INVITATION.public.decode(), time() + 60.0)
        with pytest.raises(NotAuthorized, match="known already"):
            await joined(world, KeyPair(public, b""))
        assert (await joined(world)).node.name == "m"  # the invitation is still good

    play(tmp_path, story)


def test_no_user_has_the_key_of_a_node_or_of_an_invitation(tmp_path: Path) -> None:
    with records(tmp_path) as directory:
        directory.add_user("eve", False, 0.0)
        directory.set_node("m", JOINER.public.decode(), 1.0)
        directory.invite("o", INVITATION.public.decode(), 1.0)
        for keys in (JOINER, INVITATION):
            with pytest.raises(PoolRefusal, match="no user can have it"):
                directory.add_key(keys.public.decode(), "eve", "", 1.0)


def test_an_invitation_opens_nothing_but_the_joining(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        with records(tmp_path) as directory:
            directory.invite("m", INVITATION.public.decode(), time() + 60.0)
        await world.node_is_heard()
        await said(world, INVITATION, control.NodeReport((DEVICE,), (), 0), Join(0, JOINER.public.decode()))
        assert await are_up(world, {"n"})
        await world.is_turned_away(world.users_endpoint, INVITATION)

    play(tmp_path, story)


async def said(world: World, keys: KeyPair, *messages: control.NodeReport | Question) -> None:
    """Say something at the agents' door over one connection, and wait for the answer to the last of it."""
    with world.raw(world.agents_endpoint, keys) as socket:
        for message in messages:
            await socket.send_multipart(encode(message))
        await asyncio.wait_for(socket.recv_multipart(), PATIENT_SECONDS)


def test_a_users_message_at_the_agents_door_is_none(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        await said(world, JOINER, control.StopPool(1), AskNode(2))
        await until(lambda: are_up(world, {"m", "n"}))

    play_two(tmp_path, story)


def test_a_drained_node_keeps_its_sessions_and_gets_no_new_ones(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        kept = await opened_on(world, "m")
        with records(tmp_path) as directory:
            directory.drain_node("m", time())
        assert (await node(world, "m")).state == "draining"
        placed = await world.open()
        where = {one.session: one.node for one in (await world.view()).sessions}
        assert where == {kept.session: "m", placed.session: "n"}
        with records(tmp_path) as directory:
            directory.drain_node("n", time())
        with pytest.raises(PoolFull, match="n takes no new sessions"):
            await world.open(world_user(tmp_path))
        again = await world.renew(kept.session)
        assert isinstance(again, control.Ticket)
        assert (again.epoch, again.endpoints) == (kept.epoch, kept.endpoints)

    play_two(tmp_path, story)


def world_user(tmp_path: Path) -> KeyPair:
    """Add a user, whose quota is not used yet."""
    keys = curve.generate()
    with records(tmp_path) as directory:
        directory.add_user("fay", False, 0.0)
        directory.add_key(keys.public.decode(), "fay", "", 0.0)
    return keys


def test_a_kernel_that_is_restarted_leaves_a_drained_node(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        ticket = await opened_on(world, "m")
        with records(tmp_path) as directory:
            directory.drain_node("m", time())
        fresh = await world.ask(ADA, control.RestartSession(0, ticket.session))
        assert isinstance(fresh, control.Ticket)
        assert (fresh.session, fresh.epoch) == (ticket.session, 2)
        assert [one.node for one in (await world.view()).sessions] == ["n"]

    play_two(tmp_path, story)


def test_a_joined_node_that_falls_silent_is_lost_and_its_sessions_are_told(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        there, here = await opened_on(world, "m"), await opened_on(world, "n")
        other.speaks = False

        async def lost() -> bool:
            return (await node(world, "m")).state == "lost" and "lost" in {
                s.state for s in (await world.view()).sessions
            }

        await until(lost)
        states = {one.session: one.state for one in (await world.view()).sessions}
        assert states == {there.session: "lost", here.session: "serving"}
        fresh = await world.renew(there.session)
        assert isinstance(fresh, control.Ticket)
        assert fresh.epoch == 2
        assert fresh.former_end.startswith("The node m was lost: nothing was heard of it for ")
        other.speaks = True  # it was cut off, and comes back with an executor that nobody wants any more

        async def is_stopped() -> bool:
            return (there.session, 1) not in other.executors

        await until(is_stopped)

    play_two(tmp_path, story, node_silence_seconds=1.0, node_lost_seconds=2.0)


def test_a_removed_node_is_heard_no_more_and_its_sessions_go_elsewhere(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        ticket = await opened_on(world, "m")
        with records(tmp_path) as directory:
            directory.remove_node("m")

        async def lost() -> bool:
            return [one.state for one in (await world.view()).sessions] == ["lost"]

        await until(lost)

        async def is_told() -> bool:
            return any(isinstance(one, control.StopNode) for one in other.heard)

        await until(is_told)
        fresh = await world.renew(ticket.session)
        assert isinstance(fresh, control.Ticket)
        assert fresh.former_end == "The node m was removed from the pool by its operator."
        await until(lambda: are_up(world, {"n"}))
        await world.is_turned_away(world.agents_endpoint, JOINER)

    play_two(tmp_path, story)


def test_a_node_tells_its_version_and_how_far_its_clock_is_off(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        with world.raw(world.agents_endpoint, JOINER) as socket:
            await socket.send_multipart(encode(control.NodeReport((DEVICE,), (), 0, "0.9", time() + 3_600.0)))

            async def told() -> bool:
                one = await node(world, "m")
                return one.version == "0.9" and 3_500 < one.ahead_seconds < 3_601

            other.speaks = False
            await until(told)

    play_two(tmp_path, story)


def test_the_views_of_nodes_hold_no_secret(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        view = msgspec.json.encode(await world.view())
        for keys in (INVITATION, JOINER, AGENT):
            assert keys.public not in view

    play_two(tmp_path, story)


def test_a_share_is_of_the_devices_of_all_nodes_each_by_its_own_clock(tmp_path: Path) -> None:
    """Who has the device of one node has little to ask for on that of another, where somebody has nothing else."""

    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        for one in (agent, other):
            one.device = msgspec.structs.replace(DEVICE, policy="fair_share")
        here, there = await opened_on(world, "n"), await opened_on(world, "m")
        beside = await opened_on(world, "m", EVE)
        begun = {agent: 1_000_000.0, other: 5.0}  # seconds since each was started
        seconds = 0.0

        def book(at: PlayedAgent, session: str, part: float) -> None:
            at.booked[session] = control.Booked(part * seconds, seconds, begun[at] + seconds)

        async def is_divided() -> bool:
            nonlocal seconds
            seconds += 1.0
            book(agent, here.session, 1.0)
            book(other, there.session, 0.5)
            book(other, beside.session, 0.5)
            await agent.report()
            await other.report()
            told = {one.session: one.terms.user_weight for one in other.heard if isinstance(one, control.SetTerms)}
            return told.get(there.session, 1.0) < 0.1 and told.get(beside.session, 1.0) > 0.9

        await until(is_divided)

    play_two(tmp_path, story, steered_policies=frozenset({"fair_share"}))


def test_nobody_is_placed_on_a_node_without_walls_and_nobody_is_refused_for_it(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        agent.device = msgspec.structs.replace(DEVICE, wall="Landlock")
        await agent.report()

        async def is_walled() -> bool:
            return {device.wall for device in (await world.view()).devices} == {"", "Landlock"}

        await until(is_walled)
        for keys in (ADA, ADA, EVE):
            await world.open(keys)
        assert {one.node for one in (await world.view()).sessions} == {"n"}
        with pytest.raises(PoolFull, match="3 of 3 places"):
            await world.open(EVE)

    play_two(tmp_path, story, needs_walls=True)


def test_who_comes_back_is_not_placed_on_a_node_without_walls_either(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        agent.device = msgspec.structs.replace(DEVICE, wall="Landlock")
        await agent.report()

        async def is_walled() -> bool:
            return "Landlock" in {device.wall for device in (await world.view()).devices}

        await until(is_walled)
        ticket = await world.open()
        agent.speaks = False
        await world.engine.events.put(NodeEvent("n", NodeChange.LOST))
        await until(lambda: are_up(world, {"m"}))
        with pytest.raises(PoolRefusal, match="keep you and the pool's other users apart on m"):
            await world.ask(ADA, control.RestartSession(0, ticket.session))
        with pytest.raises(PoolRefusal, match="keep you and the pool's other users apart on m"):
            await world.open(EVE)
        assert not any(isinstance(one, control.Launch) for one in other.heard)

    play_two(tmp_path, story, needs_walls=True)


def test_a_session_that_is_told_of_twice_is_reckoned_once(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        for one in (agent, other):
            one.device = msgspec.structs.replace(DEVICE, policy="fair_share")
        here, there = await opened_on(world, "n"), await opened_on(world, "m")
        beside = await opened_on(world, "m", EVE)
        send, seconds = other.send, 0.0

        async def send_twice(message: control.FromAgent) -> None:
            if isinstance(message, control.NodeReport):
                message = msgspec.structs.replace(message, executors=message.executors * 2)
            await send(message)

        other.send = send_twice  # type: ignore[method-assign]

        async def is_divided() -> bool:
            nonlocal seconds
            seconds += 1.0
            for at, ticket, part in ((agent, here, 1.0), (other, there, 0.5), (other, beside, 0.5)):
                at.booked[ticket.session] = control.Booked(part * seconds, seconds, seconds)
            await agent.report()
            await other.report()
            told = {one.session: one.terms.user_weight for one in other.heard if isinstance(one, control.SetTerms)}
            return told.get(there.session, 1.0) < 0.1

        await until(is_divided)

    play_two(tmp_path, story, steered_policies=frozenset({"fair_share"}))
