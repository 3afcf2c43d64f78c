"""Waiting in the queue of a full pool, told by a gateway with a played agent."""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from math import inf
from pathlib import Path

import pytest

from gpu_backend.gateway import queueing
from gpu_backend.gateway.accounts import Accounts, Owned
from gpu_backend.gateway.entitlements import Entitlements, Quota
from gpu_backend.transport.curve import KeyPair
from gpu_backend.wire import control
from gpu_backend.wire.control import CloseSession, LeaveQueue, OpenSession, Queued, Ticket
from gpu_backend.wire.errors import ExecutorStarting, PoolFull, PoolRefusal, SessionLost

from .played_pool import ADA, AGENT, BOSS, EVE, PlayedAgent, World, gateway_only, play, until


async def fill(world: World) -> list[Ticket]:
    """Take the pool's three places."""
    return [await world.open(keys) for keys in (ADA, ADA, EVE)]


async def ask(world: World, keys: KeyPair, waiter: str) -> Ticket | Queued:
    answer = await world.ask(keys, OpenSession(0, f"{waiter}.ipynb", waiter=waiter))
    assert isinstance(answer, Ticket | Queued)
    return answer


async def wait(world: World, keys: KeyPair, waiter: str) -> Ticket:
    """Ask until there is a place, as a client does."""
    while True:
        answer = await ask(world, keys, waiter)
        if isinstance(answer, Ticket):
            return answer


async def come(world: World, keys: KeyPair, waiter: str) -> Ticket:
    """Ask until the executor has started, as a client does."""
    while True:
        with suppress(ExecutorStarting):
            return await wait(world, keys, waiter)


def test_a_full_pool_says_at_once_which_place_in_the_queue_one_has(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await fill(world)
        answer = await ask(world, BOSS, "w1")
        assert isinstance(answer, Queued)
        assert (answer.place, answer.length, answer.expected_seconds) == (1, 1, -1.0)
        assert "3 of 3 places" in answer.reason
        second = await ask(world, BOSS, "w2")
        assert isinstance(second, Queued)
        assert (second.place, second.length) == (2, 2)
        with pytest.raises(PoolFull, match="2 wait for one"):  # who does not say that they wait
            await world.ask(BOSS, OpenSession(0, "x"))
        waiting = (await world.view(BOSS)).waiting
        assert [(one.place, one.user, one.label, one.mine) for one in waiting] == [
            (1, "boss", "w1.ipynb", True),
            (2, "boss", "w2.ipynb", True),
        ]
        assert [(one.user, one.label, one.mine) for one in (await world.view(ADA)).waiting] == [("", "", False)] * 2

    play(tmp_path, story, answer_seconds=inf)  # what is waited for never comes


def test_a_place_that_becomes_free_goes_to_the_first_in_the_queue_at_once(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        tickets = await fill(world)
        for waiter in ("w1", "w2"):
            assert isinstance(await ask(world, BOSS, waiter), Queued)
        waiting = [asyncio.create_task(wait(world, BOSS, name)) for name in ("w2", "w1")]
        await world.ask(ADA, CloseSession(0, tickets[0].session))
        done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert done == {waiting[1]}
        assert [(one.place, one.label) for one in (await world.view(BOSS)).waiting] == [(1, "w2.ipynb")]
        await world.ask(EVE, CloseSession(0, tickets[2].session))
        await asyncio.wait(left)
        assert not (await world.view()).waiting

    play(tmp_path, story)


def test_a_newcomer_does_not_pass_those_who_wait(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        tickets = await fill(world)
        await ask(world, BOSS, "w1")
        await world.ask(ADA, CloseSession(0, tickets[0].session))

        async def is_free() -> bool:
            return (await world.view()).devices[0].sessions == 2

        await until(is_free)  # w1 does not ask at this moment, and the place is kept for it
        with pytest.raises(PoolFull):
            await world.ask(EVE, OpenSession(0, "x"))
        assert isinstance(await ask(world, BOSS, "w1"), Ticket)

    play(tmp_path, story)


def test_whoever_falls_silent_leaves_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queueing, "SILENT_SECONDS", inf)

    async def story(world: World, agent: PlayedAgent) -> None:
        await fill(world)
        await ask(world, BOSS, "w1")

        async def nobody() -> bool:
            return not (await world.view()).waiting

        assert not await nobody()
        monkeypatch.setattr(queueing, "SILENT_SECONDS", 0.3)
        await until(nobody)

    play(tmp_path, story)


def test_leaving_the_queue_gives_the_place_up_even_if_it_was_just_granted(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        tickets = await fill(world)
        await ask(world, BOSS, "w1")
        assert isinstance(await world.ask(EVE, LeaveQueue(0, "w1")), control.Done)  # not hers
        assert len((await world.view()).waiting) == 1
        assert isinstance(await world.ask(BOSS, LeaveQueue(0, "w1")), control.Done)
        assert not (await world.view()).waiting

        await ask(world, BOSS, "w2")
        await world.ask(ADA, CloseSession(0, tickets[0].session))
        ticket = await wait(world, BOSS, "w2")
        again = await ask(world, BOSS, "w2")  # as if the answer had been lost
        assert isinstance(again, Ticket)
        assert again.session == ticket.session
        await world.ask(BOSS, LeaveQueue(0, "w2"))

        async def closed() -> bool:
            return ticket.session not in {one.session for one in (await world.view(BOSS)).sessions}

        await until(closed)

    play(tmp_path, story)


def test_a_question_that_is_under_way_when_its_asker_leaves_changes_nothing(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        tickets = await fill(world)
        await ask(world, BOSS, "w1")
        asking = asyncio.create_task(ask(world, BOSS, "w1"))

        async def is_heard() -> bool:
            return not asking.done() and len((await world.view()).waiting) == 1

        await until(is_heard)
        await world.ask(BOSS, LeaveQueue(0, "w1"))
        with pytest.raises(SessionLost, match="left the queue"):
            await asking
        await world.ask(ADA, CloseSession(0, tickets[0].session))
        with pytest.raises(SessionLost, match="left the queue"):
            await ask(world, BOSS, "w1")
        view = await world.view(BOSS)
        assert not view.waiting
        assert "boss" not in {one.user for one in view.sessions}

    play(tmp_path, story)


def test_the_queue_outlives_the_gateway(tmp_path: Path) -> None:
    async def first(world: World, agent: PlayedAgent) -> None:
        tickets.extend(await fill(world))
        for keys, waiter in ((BOSS, "w1"), (BOSS, "w2")):
            await ask(world, keys, waiter)
        kept.update(agent.executors)

    async def second(world: World, agent: PlayedAgent) -> None:
        agent.executors.update(kept)
        await agent.report()
        newcomer = await ask(world, BOSS, "w3")
        assert isinstance(newcomer, Queued)
        assert (newcomer.place, newcomer.length) == (3, 3)
        again = await ask(world, BOSS, "w2")
        assert isinstance(again, Queued)
        assert again.place == 2
        await world.ask(ADA, CloseSession(0, tickets[0].session))
        assert isinstance(await come(world, BOSS, "w1"), Ticket)

    tickets: list[Ticket] = []
    kept: dict[tuple[str, int], control.Launch] = {}
    quota = {"defaults": Entitlements(Quota(sessions=9))}
    play(tmp_path, first, **quota)
    play(tmp_path, second, answer_seconds=0.6, **quota)  # who waits already is answered when the time is up


def test_an_answer_that_was_lost_with_the_gateway_is_given_again(tmp_path: Path) -> None:
    async def first(world: World, agent: PlayedAgent) -> None:
        ticket = await ask(world, ADA, "w1")
        assert isinstance(ticket, Ticket)
        sessions.append(ticket.session)

    async def second(world: World, agent: PlayedAgent) -> None:
        again = await ask(world, ADA, "w1")
        assert isinstance(again, Ticket)
        assert again.session == sessions[0]
        others = await ask(world, EVE, "w1")  # a name is its owner's own
        assert isinstance(others, Ticket)
        assert others.session != sessions[0]

    sessions: list[str] = []
    play(tmp_path, first)
    play(tmp_path, second)


def test_whoever_has_a_name_need_not_begin_anew_when_an_executor_takes_long_to_start(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        agent.launches = False
        await world.node_is_heard()
        with pytest.raises(ExecutorStarting):
            await ask(world, ADA, "w1")
        (opening,) = (await world.view()).sessions
        agent.launches = True
        ticket = await come(world, ADA, "w1")
        assert (ticket.session, ticket.epoch) == (opening.session, 1)
        agent.launches = False
        with pytest.raises(ExecutorStarting):
            await ask(world, ADA, "w2")
        await world.ask(ADA, LeaveQueue(0, "w2"))  # an interrupt: nobody will come for it

        async def is_over() -> bool:
            return [one.session for one in (await world.view()).sessions] == [ticket.session]

        await until(is_over)

    play(tmp_path, story, answer_seconds=0.6)


def test_asking_again_while_a_question_is_under_way_gives_one_session(tmp_path: Path) -> None:
    async def story() -> None:
        async with gateway_only(tmp_path) as world:
            twice = [
                asyncio.create_task(world.ask(ADA, control.OpenSession(0, "a", waiter="w1"))) for _ in range(2)
            ]  # both wait for a node to be heard
            await until(lambda: asked(world, twice))
            agent = PlayedAgent(world.context, world.agents_endpoint, AGENT)
            playing = asyncio.create_task(agent.serve())
            first, second = await asyncio.gather(*twice)
            assert isinstance(first, Ticket)
            assert isinstance(second, Ticket)
            assert first.session == second.session
            assert len(agent.executors) == 1
            playing.cancel()

    async def asked(world: World, questions: list[asyncio.Task[control.FromGateway]]) -> bool:
        """Whether the gateway has both: a third question, sent after them, is answered."""
        await world.view()
        return not any(question.done() for question in questions)

    asyncio.run(story())


def test_a_used_up_quota_is_no_reason_to_wait(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await fill(world)
        with pytest.raises(PoolRefusal, match="2 of 2 sessions"):
            await ask(world, ADA, "w1")
        await ask(world, EVE, "w1")  # she has one and may have two
        with pytest.raises(PoolRefusal, match="1 more wait for a place"):
            await ask(world, EVE, "w2")

    play(tmp_path, story)


def test_one_user_cannot_fill_the_queue(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await fill(world)
        for number in range(16):
            await ask(world, BOSS, f"w{number}")
        with pytest.raises(PoolRefusal, match="16 of your notebooks wait"):
            await ask(world, BOSS, "one more")

    play(tmp_path, story, defaults=Entitlements(Quota()))


def test_a_session_that_lost_its_executor_waits_for_a_place(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        tickets = await fill(world)
        lost = tickets[0]
        await agent.lose(lost.session, 1, control.EndCause.CRASHED)

        async def is_lost() -> bool:
            return "lost" in {one.state for one in (await world.view()).sessions}

        await until(is_lost)
        await world.open(BOSS)  # takes its place
        with pytest.raises(PoolFull):
            await world.ask(ADA, control.RenewTicket(0, lost.session))
        answer = await world.ask(ADA, control.RenewTicket(0, lost.session, may_wait=True))
        assert isinstance(answer, Queued)
        await world.ask(EVE, CloseSession(0, tickets[2].session))

        async def is_back() -> bool:
            try:
                answer = await world.ask(ADA, control.RenewTicket(0, lost.session, may_wait=True))
            except ExecutorStarting:
                return False
            return isinstance(answer, Ticket) and answer.epoch == 2

        await until(is_back)
        assert not (await world.view()).waiting

    play(tmp_path, story)


def test_the_wait_is_guessed_from_recent_sessions(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        with closing(Accounts(tmp_path / "accounts.sqlite")) as books:
            for number in range(3):
                books.note(Owned(str(number), "ada", "", "", 0.0), 600.0)
        await fill(world)
        for number in (1, 2):
            answer = await ask(world, BOSS, f"w{number}")
            assert isinstance(answer, Queued)
            assert answer.expected_seconds == pytest.approx(number * 200.0)

    play(tmp_path, story)
