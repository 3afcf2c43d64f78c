"""Channels between a notebook's sessions: who may have one, and what the agent is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_backend.transport.secret_proof import channel_secret
from gpu_backend.wire.channels import DialChannel, OpenChannel
from gpu_backend.wire.control import Done
from gpu_backend.wire.errors import PoolRefusal, SessionLost

from .played_pool import ADA, BOSS, EVE, PlayedAgent, World, play, until

NAME = "n" * 32


def test_the_agent_is_told_where_the_other_listens_and_what_is_proved_there(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        one, other = await world.open(), await world.open(label="b.ipynb")
        assert isinstance(await world.ask(ADA, OpenChannel(0, one.session, other.session, NAME)), Done)

        async def is_told() -> bool:
            return any(isinstance(order, DialChannel) for order in agent.heard)

        await until(is_told)
        (order,) = [order for order in agent.heard if isinstance(order, DialChannel)]
        assert (order.session, order.epoch, order.channel) == (one.session, 1, NAME)
        assert (order.endpoints, order.certificate) == (other.endpoints, other.certificate)
        assert order.secret == channel_secret(bytes.fromhex(other.secret)).hex() != other.secret
        assert order.secret not in repr(order)

    play(tmp_path, story)


@pytest.mark.parametrize("whose", ["another user's", "the same", "none", "an operator asks"])
def test_no_other_sessions_are_reached(tmp_path: Path, whose: str) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        own, others = await world.open(), await world.open(EVE, "b.ipynb")
        to = {"another user's": others.session, "the same": own.session, "none": "x" * 16}.get(whose, others.session)
        asker = BOSS if whose == "an operator asks" else ADA
        for pair in ((own.session, to), (to, own.session)):
            with pytest.raises(SessionLost, match="no session of yours"):
                await world.ask(asker, OpenChannel(0, *pair, NAME))
        assert not any(isinstance(order, DialChannel) for order in agent.heard)

    play(tmp_path, story)


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        one, other = await world.open(), await world.open(label="b.ipynb")
        with pytest.raises(PoolRefusal, match="1 to 64 characters"):
            await world.ask(ADA, OpenChannel(0, one.session, other.session, name))

    play(tmp_path, story)
