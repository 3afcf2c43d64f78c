"""Sessions that are asked for at once, told by a gateway with a played agent: all are waited for, and had, or none."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from gpu_backend.gateway.entitlements import Entitlements, Quota
from gpu_backend.transport.curve import KeyPair
from gpu_backend.wire import control
from gpu_backend.wire.control import CloseSession, LeaveQueue, OpenSession, Queued, Ticket
from gpu_backend.wire.devices import DeviceReport
from gpu_backend.wire.errors import ExecutorStarting, NoDevice, PoolFull, PoolRefusal
from gpu_backend.wire.wish import Wish

from .played_pool import ADA, BOSS, DEVICE, EVE, PlayedAgent, World, play, until

BOTH = Wish(anti_affinity="notebook-1", sessions=2)
OTHER = DeviceReport(1, DEVICE.kind, DEVICE.name, "cpu-1", DEVICE.total_bytes, 1)
NARROW = {"sessions_per_device": 1, "defaults": Entitlements(Quota(sessions=4))}


async def two_devices(world: World, agent: PlayedAgent) -> None:
    agent.others = (OTHER,)
    await agent.report()

    async def are_there() -> bool:
        return len((await world.view()).devices) == 2

    await until(are_there)


async def ask(world: World, keys: KeyPair, waiter: str = "w", wish: Wish = BOTH) -> Ticket | Queued:
    answer = await world.ask(keys, OpenSession(0, f"{waiter}.ipynb", wish=wish, waiter=waiter))
    assert isinstance(answer, Ticket | Queued)
    return answer


async def both(world: World, keys: KeyPair, waiter: str = "w") -> list[str]:
    """Ask until all are there, as a client does; return their sessions."""
    while True:
        answer = await ask(world, keys, waiter)
        if isinstance(answer, Ticket):
            return [answer.session, *(one.session for one in answer.beside)]


async def held(world: World, user: str) -> list[str]:
    """Return the sessions of a user that have a place and are not about to end."""
    return [one.session for one in (await world.view(BOSS)).sessions if one.user == user and one.state != "closing"]


def test_all_are_given_at_once_each_with_a_device(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        sessions = await both(world, ADA)
        assert len(set(sessions)) == 2
        assert {order.ordinal for order in agent.executors.values()} == {0, 1}
        assert await both(world, ADA) == sessions, "as if the answer had been lost"
        assert await held(world, "ada") == sessions

    play(tmp_path, story, **NARROW)


def test_whoever_waits_for_both_holds_none_and_is_not_passed(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        taken = await world.open(EVE)
        answer = await ask(world, ADA)
        assert isinstance(answer, Queued)
        assert answer.reason == "2 devices were asked for, with a session each; 1 at most can be had now."
        assert await held(world, "ada") == []
        with pytest.raises(PoolFull, match="1 wait for one"):
            await world.open(BOSS)  # the free one is kept
        await world.ask(EVE, CloseSession(0, taken.session))
        assert len(await both(world, ADA)) == 2
        assert not (await world.view()).waiting

    play(tmp_path, story, **NARROW)


def test_two_who_want_both_have_them_one_after_the_other(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        sessions = await both(world, ADA)
        assert isinstance(await ask(world, EVE), Queued)
        await world.ask(ADA, CloseSession(0, sessions[0]))
        assert await held(world, "eve") == []
        await world.ask(ADA, CloseSession(0, sessions[1]))
        assert len(await both(world, EVE)) == 2

    play(tmp_path, story, **NARROW)


def test_leaving_the_queue_gives_all_up(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        await both(world, ADA)
        await world.ask(ADA, LeaveQueue(0, "w"))
        assert await held(world, "ada") == []

    play(tmp_path, story, **NARROW)


def test_what_nobody_came_for_is_closed_with_the_first(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        first, second = await both(world, ADA)
        await world.ask(ADA, CloseSession(0, first))
        assert await held(world, "ada") == []
        first, second = await both(world, ADA, "u")
        await world.ask(ADA, CloseSession(0, second))
        assert await held(world, "ada") == [first], "which is the kernel's after this one"
        await world.ask(ADA, CloseSession(0, first))
        first, second = await both(world, ADA, "v")
        await agent.use(second, 0.0, received_bytes=1)

        async def has_come() -> bool:
            return {one.session: one.moved_bytes for one in (await world.view(ADA)).sessions}.get(second) == 1

        await until(has_come)
        await world.ask(ADA, CloseSession(0, first))
        assert await held(world, "ada") == [second], "its notebook goes on with it"

    play(tmp_path, story, **NARROW)


def test_if_one_cannot_be_launched_none_is_kept_and_it_is_said_why(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        agent.fails_on = 1
        with pytest.raises(PoolRefusal, match="The session cannot be had: Device 1 is broken"):
            await ask(world, ADA)
        assert await held(world, "ada") == []

        async def are_over() -> bool:
            return not (await world.view(BOSS)).sessions

        await until(are_over)
        agent.fails_on = None
        assert len(await both(world, ADA)) == 2

    play(tmp_path, story, **NARROW)


def test_while_one_starts_all_are_kept_and_none_is_opened_twice(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        agent.launches = False
        with pytest.raises(ExecutorStarting):
            await ask(world, ADA)
        opening = await held(world, "ada")
        assert len(opening) == 2
        agent.launches = True

        async def are_there() -> bool:
            try:
                return await both(world, ADA) == opening
            except ExecutorStarting:
                return False

        await until(are_there)

    play(tmp_path, story, answer_seconds=0.6, **NARROW)


def test_who_may_not_wait_is_refused_at_once_and_has_all_without_a_name(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        taken = await world.open(EVE)
        with pytest.raises(PoolFull, match="1 at most can be had now"):
            await ask(world, ADA, waiter="")
        await world.ask(EVE, CloseSession(0, taken.session))

        async def are_free() -> bool:
            return not (await world.view(BOSS)).sessions

        await until(are_free)
        assert len(await both(world, ADA, "")) == 2

    play(tmp_path, story, **NARROW)


def test_more_than_there_are_and_more_than_a_quota_are_refused(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        with pytest.raises(NoDevice, match="this pool has no more than 2 that can serve"):
            await ask(world, ADA, wish=Wish(anti_affinity="notebook-1", sessions=3))
        for _ in range(2):
            await world.open(ADA)
        with pytest.raises(
            PoolRefusal, match=r"You have 2 of 3 sessions.*; 2 more were asked for, one for each device"
        ):
            await ask(world, ADA)
        assert not (await world.view()).waiting

    play(tmp_path, story, sessions_per_device=1, defaults=Entitlements(Quota(sessions=3)))


def test_a_gateway_that_starts_again_knows_for_how_many_somebody_waits(tmp_path: Path) -> None:
    async def first(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        await world.open(EVE)
        assert isinstance(await ask(world, ADA), Queued)
        kept.update(agent.executors)

    async def second(world: World, agent: PlayedAgent) -> None:
        agent.executors.update(kept)
        await two_devices(world, agent)
        with pytest.raises(PoolFull, match="1 wait for one"):
            await world.open(BOSS)
        (taken,) = await held(world, "eve")
        await world.ask(EVE, CloseSession(0, taken))
        assert len(await both(world, ADA)) == 2

    kept: dict[tuple[str, int], control.Launch] = {}
    play(tmp_path, first, answer_seconds=inf, **NARROW)
    play(tmp_path, second, **NARROW)
