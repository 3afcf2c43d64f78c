"""A gateway that was kept from the processor takes nobody for silent before it has read what they said."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gpu_backend.gateway import attention

from .played_pool import PlayedAgent, World, until
from .test_membership import node, opened_on, play_two


@pytest.mark.parametrize(("took", "is_in_time"), [(0.5, True), (1.9, True), (2.1, False), (3_600.0, False)])
def test_a_pause_that_took_much_longer_is_noticed(
    took: float, is_in_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter((100.0, 100.0 + took))
    monkeypatch.setattr(attention, "monotonic", lambda: next(times))
    assert asyncio.run(attention.paused_in_time(0.0)) is is_in_time


def test_no_node_is_lost_while_the_gateway_itself_comes_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late_ticks, is_late = [0], [False]
    paused_in_time = attention.paused_in_time

    async def paused(seconds: float) -> bool:
        in_time = await paused_in_time(seconds)
        late_ticks[0] += is_late[0]
        return in_time and not is_late[0]

    monkeypatch.setattr(attention, "paused_in_time", paused)

    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        ticket = await opened_on(world, "m")

        async def states() -> tuple[str, str]:
            (session,) = [one for one in (await world.view()).sessions if one.session == ticket.session]
            return (await node(world, "m")).state, session.state

        is_late[0], other.speaks = True, False

        async def is_silent() -> bool:
            return (await states())[0] == "lost"

        await until(is_silent)
        judged = late_ticks[0] + 2

        async def has_looked() -> bool:
            return late_ticks[0] >= judged

        await until(has_looked)
        assert await states() == ("lost", "serving")
        is_late[0] = False

        async def is_given_up() -> bool:
            return await states() == ("lost", "lost")

        await until(is_given_up)

    play_two(tmp_path, story, node_silence_seconds=1.0, node_lost_seconds=2.0)
