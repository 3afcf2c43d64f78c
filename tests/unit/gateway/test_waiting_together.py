"""Sessions that are asked for at once, told by a gateway with a played agent: all are waited for, and had, or none."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from math import inf
from pathlib import Path

import pytest

from gpu_backend.gateway.directory import Directory
from gpu_backend.gateway.entitlements import Entitlements, Quota
from gpu_backend.transport import curve
from gpu_backend.transport.curve import KeyPair
from gpu_backend.wire import control
from gpu_backend.wire.control import CloseSession, EndCause, LeaveQueue, OpenSession, Queued, RenewTicket, Ticket
from gpu_backend.wire.devices import DeviceReport
from gpu_backend.wire.errors import ExecutorStarting, NoDevice, PoolFull, PoolRefusal, SessionLost
from gpu_backend.wire.wish import Wish

from .played_pool import ADA, BOSS, DEVICE, EVE, PlayedAgent, World, gateway_only, play, until

BOTH = Wish(anti_affinity="notebook-1", sessions=2)
OTHER = DeviceReport(1, DEVICE.kind, DEVICE.name, "cpu-1", DEVICE.total_bytes, 1)
MACHINE = curve.generate()
GIB = 1 << 30
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


async def in_use(world: World, agent: PlayedAgent, sessions: list[str]) -> None:
    """Have somebody come for each."""
    for one in sessions:
        await agent.use(one, 0.0, received_bytes=1)

    async def have_come() -> bool:
        there = {one.session: one.moved_bytes for one in (await world.view(BOSS)).sessions}
        return all(there.get(one) == 1 for one in sessions)

    await until(have_come)


async def crashes(world: World, agent: PlayedAgent, session: str) -> None:
    await agent.lose(session, 1, EndCause.CRASHED)

    async def is_lost() -> bool:
        return any(one.state == "lost" for one in (await world.view(BOSS)).sessions)

    await until(is_lost)


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
        await in_use(world, agent, [second])
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


@pytest.mark.parametrize(("wish", "memory_bytes"), [(Wish(), 16 * GIB), (BOTH, 6 * GIB)])
def test_what_is_found_is_for_what_was_asked_last(tmp_path: Path, wish: Wish, memory_bytes: int) -> None:
    """And not for what was waited for under the same name before, which no quota has let in."""

    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        taken = await world.open(EVE)
        first = OpenSession(0, "", memory_bytes=8 * GIB, wish=BOTH, waiter="w")
        assert isinstance(await world.ask(ADA, first), Queued)
        again = OpenSession(0, "", memory_bytes=memory_bytes, wish=wish, waiter="w")
        await world.ask(EVE, CloseSession(0, taken.session))

        async def is_there() -> bool:
            return isinstance(await world.ask(ADA, again), Ticket)

        await until(is_there)
        assert len(await held(world, "ada")) == wish.sessions
        limits = {one.memory_limit_bytes for one in agent.executors.values()}
        assert limits == {memory_bytes}

    quota = Quota(sessions=4, memory_bytes=16 * GIB)
    play(tmp_path, story, sessions_per_device=1, defaults=Entitlements(quota))


def test_a_session_that_was_lost_gets_the_device_that_is_kept_for_who_waits_for_both(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        sessions = await both(world, ADA)
        await in_use(world, agent, sessions)
        assert isinstance(await ask(world, EVE), Queued)
        await crashes(world, agent, sessions[1])
        answer = await world.ask(ADA, RenewTicket(0, sessions[1], True))
        assert isinstance(answer, Ticket)

    play(tmp_path, story, answer_seconds=5.0, **NARROW)


def with_another_machine(tmp_path: Path) -> None:
    records = Directory(tmp_path / "directory.sqlite")
    records.set_node("m", MACHINE.public.decode())
    records.close()


async def two_machines(world: World) -> asyncio.Task[None]:
    machine = asyncio.create_task(PlayedAgent(world.context, world.agents_endpoint, MACHINE).serve())

    async def are_there() -> bool:
        return len((await world.view()).devices) == 2

    await until(are_there)
    return machine


async def falls_silent(machine: asyncio.Task[None]) -> None:
    machine.cancel()
    with suppress(asyncio.CancelledError):
        await machine


def test_a_machine_that_is_silent_for_a_moment_sends_nobody_away(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        machine = await two_machines(world)
        taken = await world.open(EVE)
        assert isinstance(await ask(world, ADA), Queued)
        await falls_silent(machine)

        async def is_silent() -> bool:
            return len((await world.view()).devices) == 1

        await until(is_silent)
        for keys in (ADA, BOSS):
            answer = await ask(world, keys)
            assert isinstance(answer, Queued)
            assert answer.reason.endswith("a machine that is not heard may be back soon.")
        await world.ask(EVE, CloseSession(0, taken.session))
        machine = await two_machines(world)
        assert len(await both(world, ADA)) == 2
        await falls_silent(machine)

    with_another_machine(tmp_path)
    play(tmp_path, story, answer_seconds=0.6, node_silence_seconds=2.0, node_lost_seconds=inf, **NARROW)


def test_who_waited_waits_on_until_all_machines_are_heard_by_a_gateway_that_starts_again(tmp_path: Path) -> None:
    async def first(world: World, agent: PlayedAgent) -> None:
        machine = await two_machines(world)
        await world.open(EVE)
        assert isinstance(await ask(world, ADA), Queued)
        await falls_silent(machine)

    async def second(world: World, agent: PlayedAgent) -> None:
        await world.node_is_heard()
        assert isinstance(await ask(world, ADA), Queued)
        with pytest.raises(NoDevice, match="this pool has no more than 1 that can serve"):
            await ask(world, BOSS)
        machine = await two_machines(world)
        for one in await held(world, "eve"):
            await world.ask(EVE, CloseSession(0, one))
        assert len(await both(world, ADA)) == 2
        await falls_silent(machine)

    with_another_machine(tmp_path)
    play(tmp_path, first, **NARROW)
    play(tmp_path, second, answer_seconds=0.6, **NARROW)


def test_what_may_be_in_use_is_not_closed_with_the_first(tmp_path: Path) -> None:
    """A gateway that has started again does not know whether anybody came before it has heard the executor."""

    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        sessions.extend(await both(world, ADA))
        await in_use(world, agent, sessions)

    async def again() -> None:
        async with gateway_only(tmp_path, **NARROW) as world:
            await world.ask(ADA, CloseSession(0, sessions[0]))
            assert await held(world, "ada") == sessions[1:]

    sessions: list[str] = []
    play(tmp_path, story, **NARROW)
    asyncio.run(again())


def test_a_question_that_comes_late_again_takes_nothing_that_is_in_use(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        sessions = await both(world, ADA)
        await in_use(world, agent, sessions)
        await crashes(world, agent, sessions[1])
        with pytest.raises(SessionLost, match="others of them are in use"):
            await ask(world, ADA)
        assert await held(world, "ada") == sessions
        await world.ask(ADA, CloseSession(0, sessions[1]))
        with pytest.raises(SessionLost, match="others of them are in use"):
            await ask(world, ADA)
        assert await held(world, "ada") == sessions[:1]

    play(tmp_path, story, **NARROW)


def test_what_is_closing_already_is_not_said_to_be_in_the_way(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await two_devices(world, agent)
        await world.open(EVE)
        own = await ask(world, ADA, "v", Wish(anti_affinity="notebook-1"))
        assert isinstance(own, Ticket)
        agent.speaks = False  # so it stays on its device for now
        await world.ask(ADA, CloseSession(0, own.session))
        answer = await ask(world, ADA)
        assert isinstance(answer, Queued)
        assert answer.reason.startswith("2 devices were asked for, with a session each; none can be had now.")

    play(tmp_path, story, node_silence_seconds=inf, **NARROW)
