"""How a pool is stopped by its operator, and what its notebooks can still learn then and later."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_backend.gateway import service
from gpu_backend.transport.asking import Door, ask_async
from gpu_backend.wire import control
from gpu_backend.wire.errors import NotAuthorized, PoolUnreachable, SessionLost

from .played_pool import ADA, BOSS, EVE, GATEWAY, PATIENT_SECONDS, PlayedAgent, World, play, until


def test_only_an_operator_stops_the_pool(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await world.open()
        with pytest.raises(NotAuthorized, match="not an operator"):
            await world.ask(ADA, control.StopPool(0))
        assert isinstance(await world.ask(BOSS, control.StopPool(0)), control.Done)

        async def stopped() -> bool:
            return world.engine.stopped == ["n"] and isinstance(agent.heard[-1], control.StopNode)

        await until(stopped)
        with pytest.raises(PoolUnreachable):
            await ask_async(Door(world.users_endpoint, GATEWAY.public, BOSS), control.AskPool(0), 0.3)

    play(tmp_path, story)


def test_a_stopped_pool_still_tells_notebooks_whose_executors_were_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those whose executors could say it themselves."""
    monkeypatch.setattr(service, "_UNTOLD_SECONDS", PATIENT_SECONDS)

    async def story(world: World, agent: PlayedAgent) -> None:
        agent.ends_by = control.EndCause.KILLED
        ticket = await world.open()
        await world.ask(BOSS, control.StopPool(0))

        async def ended() -> bool:
            return not agent.executors

        await until(ended)
        for _ in range(50):  # it looks how many are left twice as often
            with pytest.raises(SessionLost, match="stopped by its operator"):
                await world.renew(ticket.session)
            assert not world.engine.stopped

    play(tmp_path, story)


def test_why_a_session_ended_is_known_to_the_next_gateway(tmp_path: Path) -> None:
    told: list[str] = []

    async def open_and_close(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        told.append(ticket.session)
        await world.ask(BOSS, control.CloseSession(0, ticket.session))

        async def closed() -> bool:
            return not (await world.view()).sessions

        await until(closed)

    async def ask_again(world: World, agent: PlayedAgent) -> None:
        with pytest.raises(SessionLost, match=r"^It was closed by the pool's operator\.$"):
            await world.renew(told[0])
        with pytest.raises(SessionLost, match="no such session of yours"):
            await world.renew(told[0], EVE)

    play(tmp_path, open_and_close)
    play(tmp_path, ask_again)
