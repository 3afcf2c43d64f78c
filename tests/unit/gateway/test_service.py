"""What a gateway answers, and what it does about it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
import zmq

from gpu_backend.gateway.directory import Directory
from gpu_backend.gateway.seals import Seals
from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door, ask_async
from gpu_backend.transport.sockets import as_client
from gpu_backend.wire import control
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.errors import (
    ExecutorStarting,
    NotAuthorized,
    PoolRefusal,
    RefusalCode,
    SessionLost,
)

from .played_pool import (
    ADA,
    AGENT,
    BOSS,
    DEVICE,
    EVE,
    GATEWAY,
    PATIENT_SECONDS,
    PlayedAgent,
    World,
    gateway_only,
    play,
    until,
)


def test_a_session_is_opened_with_a_ticket(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        assert (ticket.epoch, ticket.device, ticket.device_kind, ticket.lease_seconds) == (1, "a CPU", "cpu", 60.0)
        assert ticket.endpoints == (f"tls://{ticket.session}:1",)
        launch = agent.executors[ticket.session, 1]
        assert launch.client_key == ADA.public.decode()
        assert world.engine.ensured == ["n"]

    play(tmp_path, story)


def test_an_unknown_key_is_told_at_once(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        with pytest.raises(NotAuthorized, match="turned us away"):  # who waits in vain is told that nobody answers
            await world.ask(curve.generate(), control.AskPool(0))

    play(tmp_path, story)


def test_another_server_key_is_told_at_once(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        with pytest.raises(NotAuthorized, match="is not the pool whose public key we hold"):
            await ask_async(
                Door(world.users_endpoint, curve.generate().public, ADA), control.AskPool(0), PATIENT_SECONDS
            )

    play(tmp_path, story)


def test_a_full_quota_is_refused_with_the_numbers(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await world.open()
        await world.open()
        with pytest.raises(PoolRefusal, match="2 of 2 sessions"):
            await world.open()

    play(tmp_path, story)


def test_a_full_pool_is_refused_with_the_numbers(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        for keys in (ADA, ADA, EVE):
            await world.open(keys)
        with pytest.raises(PoolRefusal, match="3 of 3 places"):
            await world.open(EVE)

    play(tmp_path, story)


def test_a_pool_without_nodes_answers_in_time(tmp_path: Path) -> None:
    async def story() -> None:
        async with gateway_only(tmp_path, answer_seconds=0.6) as world:
            with pytest.raises(PoolRefusal, match="No node"):
                await world.open()

    asyncio.run(story())


def test_a_launch_that_takes_too_long_is_refused_in_time_and_leaves_nothing(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        agent.launches = False
        await world.node_is_heard()
        with pytest.raises(ExecutorStarting, match="still starting"):
            await world.ask(ADA, control.OpenSession(0, "a.ipynb"))

        async def nothing_left() -> bool:
            return isinstance(agent.heard[-1], control.StopExecutor) and not (await world.view()).sessions

        await until(nothing_left)

    play(tmp_path, story, answer_seconds=0.6)


def test_a_session_of_nobody_who_waits_for_it_is_closed(tmp_path: Path) -> None:
    """Else it would hold a place for as long as its lease: nobody knows by which name to ask for it."""

    async def story(world: World, agent: PlayedAgent) -> None:
        agent.launches = False
        await world.node_is_heard()
        with zmq.Context() as impatient:
            socket = as_client(impatient.socket(zmq.DEALER), ADA, GATEWAY.public)
            socket.connect(world.users_endpoint)
            socket.send_multipart(encode(control.OpenSession(1, "a.ipynb")))

            async def is_asked_for() -> bool:
                return any(isinstance(order, control.Launch) for order in agent.heard)

            await until(is_asked_for)
            socket.close(linger=0)
        assert len((await world.view()).sessions) == 1  # that it has hung up is heard before
        agent.launches = True

        async def is_closed() -> bool:
            return not (await world.view()).sessions

        await until(is_closed)
        assert any(isinstance(order, control.StopExecutor) for order in agent.heard)

    play(tmp_path, story)


def test_a_launch_that_fails_says_why(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        agent.launches = False
        opening = asyncio.create_task(world.open())
        async with asyncio.timeout(PATIENT_SECONDS):
            while not any(isinstance(order, control.Launch) for order in agent.heard):
                await asyncio.sleep(0.01)
        launch = next(order for order in agent.heard if isinstance(order, control.Launch))
        await agent.send(control.LaunchFailed(launch.session, 1, "No CuPy here."))
        with pytest.raises(PoolRefusal, match="No CuPy here"):
            await opening

    play(tmp_path, story)


def test_a_crashed_executor_is_replaced_under_the_next_epoch(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        await agent.lose(ticket.session, 1, control.EndCause.CRASHED)

        async def lost() -> bool:
            return [s.state for s in (await world.view()).sessions] == ["lost"]

        await until(lost)
        renewed = await world.renew(ticket.session)
        assert isinstance(renewed, control.Ticket)
        assert (renewed.session, renewed.epoch) == (ticket.session, 2)

    play(tmp_path, story)


def test_a_released_session_is_over(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        await agent.lose(ticket.session, 1, control.EndCause.RELEASED)

        async def over() -> bool:
            return not (await world.view()).sessions

        await until(over)
        with pytest.raises(SessionLost, match="It is gone"):
            await world.ask(ADA, control.RenewTicket(0, ticket.session))

    play(tmp_path, story)


def test_a_restart_keeps_the_session_and_stops_the_old_executor(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        fresh = await world.ask(ADA, control.RestartSession(0, ticket.session))
        assert isinstance(fresh, control.Ticket)
        assert (fresh.session, fresh.epoch) == (ticket.session, 2)
        assert list(agent.executors) == [(ticket.session, 2)]

    play(tmp_path, story)


def test_a_session_can_be_closed_twice_and_by_its_owner_only(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        assert isinstance(await world.ask(EVE, control.CloseSession(0, ticket.session)), control.Done)
        assert agent.executors
        with pytest.raises(SessionLost):
            await world.ask(EVE, control.RenewTicket(0, ticket.session))
        for _ in range(2):
            assert isinstance(await world.ask(ADA, control.CloseSession(0, ticket.session)), control.Done)

        async def stopped() -> bool:
            return not agent.executors

        await until(stopped)

    play(tmp_path, story)


def test_others_are_seen_without_their_names(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open(ADA, label="secret plan.ipynb")
        seen = (await world.view(EVE)).sessions[0]
        assert (seen.session, seen.user, seen.label, seen.mine) == ("", "", "", False)
        own = (await world.view(ADA)).sessions[0]
        assert (own.session, own.user, own.label, own.mine) == (ticket.session, "ada", "secret plan.ipynb", True)
        operators = (await world.view(BOSS)).sessions[0]
        assert (operators.session, operators.user, operators.label) == (ticket.session, "ada", "")

    play(tmp_path, story)


def test_a_new_gateway_knows_the_sessions_before_it_hears_from_a_node(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        nonlocal ticket
        ticket = await world.open()

    ticket: control.Ticket | None = None
    play(tmp_path, story)

    async def again() -> None:
        assert ticket is not None
        async with gateway_only(tmp_path) as world:
            renewed = await world.renew(ticket.session)
            assert isinstance(renewed, control.Ticket)
            assert (renewed.secret, renewed.certificate) == (ticket.secret, ticket.certificate)
            assert (renewed.epoch, renewed.endpoints) == (1, ticket.endpoints)

    asyncio.run(again())


def test_a_gateway_that_lost_its_records_learns_the_sessions_from_the_node(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        for session, epoch, keys in (("lost", 3, ADA), ("foreign", 1, curve.generate())):
            order = control.Launch(session, epoch, 0, keys.public.decode(), 7, 60.0)
            agent.executors[session, epoch] = Seals(GATEWAY).sealed("n", order, 1.0)
        await agent.report()

        async def learned() -> bool:
            return [(s.session, s.epoch) for s in (await world.view()).sessions] == [("lost", 3)]

        async def foreign_is_stopped() -> bool:
            return ("foreign", 1) not in agent.executors

        await until(learned)
        renewed = await world.renew("lost")
        assert isinstance(renewed, control.Ticket)
        assert renewed.epoch == 3
        await until(foreign_is_stopped)

    play(tmp_path, story)


def test_a_revoked_key_ends_its_sessions(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await world.open(ADA)
        kept = await world.open(EVE)
        records = Directory(tmp_path / "directory.sqlite")
        records.revoke_key(ADA.public.decode(), 1.0)
        records.close()

        async def ended() -> bool:
            return list(agent.executors) == [(kept.session, 1)]

        await until(ended)
        with pytest.raises(NotAuthorized):
            await world.ask(ADA, control.AskPool(0))

    play(tmp_path, story)


MALFORMED = {
    RefusalCode.MALFORMED: [b""],
    RefusalCode.FOREIGN_VERSION: [b"GET / HTTP/1.1\r\n"],
    RefusalCode.OVERSIZED: [encode(control.AskPool(1))[0], *[b"x"] * 2_000],
}


@pytest.mark.parametrize("code", list(MALFORMED))
def test_what_is_no_request_is_refused_by_name(tmp_path: Path, code: RefusalCode) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        answers: Codec[control.FromGateway] = Codec(control.FromGateway)
        with world.raw(world.users_endpoint, ADA) as socket:
            await socket.send_multipart(MALFORMED[code])
            answer = answers.decode(await asyncio.wait_for(socket.recv_multipart(), PATIENT_SECONDS))
        assert isinstance(answer, control.Denied)
        assert answer.code == code

    play(tmp_path, story)


def test_one_key_cannot_make_the_gateway_wait_without_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with gateway_only(tmp_path) as world:
            answers: Codec[control.FromGateway] = Codec(control.FromGateway)
            with world.raw(world.users_endpoint, ADA) as socket:
                for number in range(1, 101):  # without a node each waits until its time is up, which is later
                    await socket.send_multipart(encode(control.OpenSession(number, "x")))
                for _ in range(68):
                    answer = answers.decode(await asyncio.wait_for(socket.recv_multipart(), PATIENT_SECONDS))
                    assert isinstance(answer, control.Denied)
                    assert answer.code == RefusalCode.OVER_CREDIT
                assert not (await world.view(EVE)).devices  # nobody else waits for these
                playing = asyncio.create_task(PlayedAgent(world.context, world.agents_endpoint, AGENT).serve())
                for _ in range(32):  # a device: they need not wait any longer
                    await asyncio.wait_for(socket.recv_multipart(), PATIENT_SECONDS)
                playing.cancel()

    asyncio.run(story())


def test_figures_that_nothing_can_hold_harm_nobody_else(tmp_path: Path) -> None:
    most = (1 << 64) - 1

    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        for device in (msgspec.structs.replace(DEVICE, total_bytes=most), DEVICE):
            line = control.ExecutorReport(
                ticket.session, 1, 0, ADA.public.decode(), ("x",), "5" * 64, "c" * 64, most, 60.0, most, most, 0.0,
                control.Usage(1.0, most, most, most),
            )  # fmt: skip
            await agent.send(control.NodeReport((device,), (line, line), most))
        await agent.use(ticket.session, 2.0)  # heard after those

        async def is_booked() -> bool:
            return [(row.gpu_seconds, row.peak_bytes) for row in (await world.usage()).rows] == [(2.0, 0)]

        await until(is_booked)
        assert (await world.view()).devices[0].total_bytes == DEVICE.total_bytes

    play(tmp_path, story)
