"""An agent's own loops, without a gateway or executors."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gpu_backend.node.agent import Agent
from gpu_backend.node.settings import NodeSettings
from gpu_backend.transport import curve


class Listener:
    """A gateway's line on which all is heard."""

    def __init__(self) -> None:
        self.heard = 0

    def send(self, message: object) -> bool:
        self.heard += 1
        return True


@pytest.mark.parametrize("turns", range(5))
def test_news_that_come_with_the_end_do_not_hide_it(tmp_path: Path, turns: int) -> None:
    settings = NodeSettings(
        node="n", gateway="ipc://g", gateway_key="k" * 40, key_file="k", runtime_dir=str(tmp_path),
        log_dir=str(tmp_path), cache_dir="/c",
    )  # fmt: skip

    async def story() -> None:
        agent, listener = Agent(settings, curve.generate(), ()), Listener()
        agent._link = listener  # type: ignore[assignment]
        attending = asyncio.create_task(agent._attend())
        while not listener.heard:
            await asyncio.sleep(0)
        agent._news.set()
        for _ in range(turns):  # of the loop, between the news and the end
            await asyncio.sleep(0)
        attending.cancel()
        await asyncio.wait({attending}, timeout=2)
        assert attending.cancelled()

    asyncio.run(story())
