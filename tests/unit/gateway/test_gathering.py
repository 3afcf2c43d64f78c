"""Processes that wait at the gateway for others: what wakes them, and what does not."""

from __future__ import annotations

import asyncio
from time import monotonic
from types import SimpleNamespace
from typing import Any

from gpu_backend.gateway.directory import User
from gpu_backend.gateway.gathering import Gathering
from gpu_backend.gateway.opening import Asker
from gpu_backend.lifecycle.states import SessionState
from gpu_backend.wire.groups import Group, JoinGroup

NAME = "127.0.0.1:13333"


class Door:
    """A gateway at which all sessions there could be are served."""

    def __init__(self) -> None:
        served = SimpleNamespace(state=SessionState.SERVING)
        sessions: Any = SimpleNamespace(all=SimpleNamespace(get=lambda name: served), dial=lambda *of: True)
        self.gathering = Gathering(sessions)

    async def join(self, user: str, rank: int, size: int = 2, name: str = NAME, seconds: float = 60.0) -> Group:
        message = JoinGroup(0, f"{user} {rank}", name, size, rank, f"{user} {name} {rank}")
        answer = await self.gathering.join(Asker(User(user, False), user, monotonic() + seconds), message)
        assert isinstance(answer, Group)
        return answer


async def all_have_gone_on() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_nobody_is_woken_by_a_group_that_is_not_theirs() -> None:
    async def story() -> None:
        door = Door()
        waiting = asyncio.create_task(door.join("ada", 0))
        await all_have_gone_on()
        for size, user, name in ((1, "eve", NAME), (2, "eve", NAME), (2, "ada", "another")):
            for _ in range(2):  # the second time it is told again
                await asyncio.gather(*[door.join(user, rank, size, name) for rank in range(size)])
                await all_have_gone_on()
        assert not waiting.done()
        last = await door.join("ada", 1)
        assert last.channels == ((await waiting).channels[1], "")

    asyncio.run(story())


def test_whose_time_is_up_is_told_who_is_missing() -> None:
    async def story() -> None:
        door = Door()
        assert (await door.join("ada", 1, size=3, seconds=0.0)).missing == (0, 2)
        assert not door.gathering._news
        assert not door.gathering._waiting

    asyncio.run(story())
