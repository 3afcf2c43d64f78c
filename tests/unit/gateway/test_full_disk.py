"""A gateway whose records cannot be written: it takes no session, and loses none."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpu_backend.gateway.directory import Directory
from gpu_backend.lifecycle.states import SessionState
from gpu_backend.wire import control
from gpu_backend.wire.control import EndCause
from gpu_backend.wire.errors import PoolRefusal

from .played_pool import ADA, EVE, PlayedAgent, World, play, until

WRITES = ("save", "wait", "wait_no_more", "forget_closed")


@contextmanager
def full_disk() -> Iterator[None]:
    """Let every write to the records fail as SQLite does on a full disk."""

    def refuse(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with pytest.MonkeyPatch.context() as patch:
        for name in WRITES:
            patch.setattr(Directory, name, refuse)
        yield


def test_a_session_that_cannot_be_recorded_is_refused_and_takes_no_place(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        async def nothing_left() -> bool:
            view = await world.view()
            return (view.sessions, view.waiting, view.devices[0].sessions) == ((), (), 0)

        with full_disk():
            for number in range(5):  # more than there are places
                with pytest.raises(PoolRefusal, match="cannot record a new session: database or disk is full") as told:
                    await world.ask(ADA, control.OpenSession(0, "a", waiter=f"w{number}"))
                assert "make room" in str(told.value)
                await until(nothing_left)  # as soon as its node says that it has none of it
        assert not [order for order in agent.heard if isinstance(order, control.Launch)]
        assert agent.executors == {}
        await world.open()

    play(tmp_path, story)


def test_sessions_go_on_and_end_and_are_recorded_later(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        first, second, third = await world.open(), await world.open(), await world.open(EVE)

        async def has_ended() -> bool:
            return (second.session, 1) not in agent.executors

        with full_disk():
            await agent.lose(first.session, 1, EndCause.CRASHED)
            again = await world.renew(first.session)  # another executor, under the next epoch
            assert isinstance(again, control.Ticket)
            assert again.epoch == 2
            await world.ask(ADA, control.CloseSession(0, second.session))
            await until(has_ended)
            assert isinstance(await world.renew(third.session, EVE), control.Ticket)
        with closing(Directory(tmp_path / "directory.sqlite")) as records:
            wanted = {first.session: (2, SessionState.SERVING), third.session: (1, SessionState.SERVING)}

            async def is_recorded() -> bool:
                return {one.id: (one.epoch, one.state) for one in records.sessions()} == wanted

            await until(is_recorded)

    play(tmp_path, story)


def test_whoever_waits_does_so_without_being_recorded(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        with full_disk():
            assert isinstance(await world.ask(EVE, control.OpenSession(0, "b", waiter="w")), control.Queued)
            assert len((await world.view(EVE)).waiting) == 1
            await world.ask(EVE, control.LeaveQueue(0, "w"))
            assert not (await world.view(EVE)).waiting
        assert isinstance(await world.renew(ticket.session), control.Ticket)

    play(tmp_path, story, sessions_per_device=1)


def test_a_gateway_starts_on_a_full_disk(tmp_path: Path) -> None:
    async def before(world: World, agent: PlayedAgent) -> None:
        opened.append(await world.open())

    async def after(world: World, agent: PlayedAgent) -> None:
        name = opened[0].session
        agent.executors[name, 1] = control.Launch(name, 1, 0, ADA.public.decode(), 0, 60.0)
        assert isinstance(await world.renew(name), control.Ticket)

    opened: list[control.Ticket] = []
    play(tmp_path, before)
    with full_disk():
        play(tmp_path, after)
