"""Processes that meet at the gateway: whose sessions they are, when they are answered, and which nodes are told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import ANY

import msgspec
import pytest

from gpu_backend.gateway.entitlements import Entitlements, Quota
from gpu_backend.gateway.gathering import MOST_WAITING
from gpu_backend.transport.curve import KeyPair
from gpu_backend.wire.channels import DialChannel
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.control import Done, FromGateway, Ticket
from gpu_backend.wire.errors import PoolRefusal, SessionLost
from gpu_backend.wire.groups import Group, JoinGroup

from .played_pool import ADA, BOSS, EVE, PATIENT_SECONDS, PlayedAgent, World, play, until

NAME = "127.0.0.1:13333"


async def join(world: World, session: str, rank: int, keys: KeyPair = ADA, size: int = 2) -> Group:
    answer = await world.ask(keys, JoinGroup(0, session, NAME, size, rank, f"{session} {rank}"))
    assert isinstance(answer, Group)
    return answer


def dialled(agent: PlayedAgent) -> list[DialChannel]:
    return [order for order in agent.heard if isinstance(order, DialChannel)]


def test_who_waits_is_answered_when_the_last_comes_and_each_two_have_a_channel(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        tickets = [await world.open(label=f"{number}.ipynb") for number in range(3)]
        met = await asyncio.gather(*[join(world, one.session, rank, size=3) for rank, one in enumerate(tickets)])
        assert [one.missing for one in met] == [()] * 3

        async def all_are_told() -> bool:
            return len(dialled(agent)) == 3

        await until(all_are_told)
        for order in dialled(agent):
            by = next(rank for rank, one in enumerate(tickets) if one.session == order.session)
            to = met[by].channels.index(order.channel)
            assert met[to].channels[by] == order.channel
            assert order.endpoints == tickets[to].endpoints

    play(tmp_path, story, defaults=Entitlements(Quota(sessions=3)))


def test_who_is_missing_is_told_in_time(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        one = await world.open()
        assert (await join(world, one.session, 1, size=3)).missing == (0, 2)

    # What comes because the time is up is asked for with little of it.
    play(tmp_path, story, answer_seconds=1.0)


def test_those_who_wait_for_others_do_not_take_all_places_of_their_key(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        one = await world.open()
        answers: Codec[FromGateway] = Codec(FromGateway)
        with world.raw(world.users_endpoint, ADA) as socket:
            for number in range(1, 41):
                await socket.send_multipart(encode(JoinGroup(number, one.session, str(number), 2, 0, str(number))))
            for number in range(MOST_WAITING + 1, 41):
                answer = answers.decode(await asyncio.wait_for(socket.recv_multipart(), PATIENT_SECONDS))
                assert answer == Group(number, (1,))
            assert isinstance(await world.renew(one.session), Ticket)
            leaves = [JoinGroup(100 + n, one.session, str(n), 2, 0, str(n), True) for n in range(1, MOST_WAITING + 1)]
            for message in leaves:
                await socket.send_multipart(encode(message))
            told = [answers.decode(await asyncio.wait_for(socket.recv_multipart(), PATIENT_SECONDS)) for _ in range(32)]
        assert {one.request for one in told if isinstance(one, Done)} == {one.request for one in leaves}
        assert {one for one in told if isinstance(one, Group)} == {Group(n, (0,)) for n in range(1, MOST_WAITING + 1)}

    play(tmp_path, story)


def test_who_gave_up_is_not_in_the_group_that_the_others_make(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        own, other = await world.open(), await world.open(label="b.ipynb")
        first = JoinGroup(0, own.session, NAME, 2, 0, "first")
        assert await world.ask(ADA, msgspec.structs.replace(first, leaves=True)) == Done(ANY)
        assert await world.ask(ADA, first) == Group(ANY, (0,))  # it was on its way
        both = await asyncio.gather(join(world, other.session, 1), join(world, own.session, 0))
        assert [one.missing for one in both] == [(), ()]

    play(tmp_path, story)


@pytest.mark.parametrize("whose", ["another user's", "an operator's", "nobody's"])
def test_nobody_joins_with_a_session_that_is_not_theirs(tmp_path: Path, whose: str) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        one = await world.open()
        keys, session = {"another user's": (EVE, one.session), "an operator's": (BOSS, one.session)}.get(
            whose, (ADA, "x" * 16)
        )
        with pytest.raises(SessionLost, match="is none of yours"):
            await join(world, session, 0, keys)

    play(tmp_path, story)


def test_users_with_one_name_for_their_groups_do_not_meet(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        own, other, hers = await world.open(), await world.open(label="b.ipynb"), await world.open(EVE)
        waiting = asyncio.create_task(join(world, hers.session, 1, EVE))
        met = await asyncio.gather(join(world, own.session, 0), join(world, other.session, 1))
        assert met[0].channels == ("", met[1].channels[0])
        assert (await waiting).missing == (0,)
        assert {order.session for order in dialled(agent)} <= {own.session, other.session}

    play(tmp_path, story, answer_seconds=3.0)


def test_what_does_not_fit_is_refused_in_words(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        own, other = await world.open(), await world.open(label="b.ipynb")

        over = asyncio.Event()

        async def ask_on(session: str) -> None:
            while not over.is_set():
                assert (await join(world, session, 0)).missing

        await join(world, own.session, 0)
        asking = asyncio.create_task(ask_on(own.session))
        with pytest.raises(PoolRefusal, match="Another process is rank 0 of the group 127"):
            await ask_on(other.session)
        over.set()
        await asking

    play(tmp_path, story, answer_seconds=1.0)
