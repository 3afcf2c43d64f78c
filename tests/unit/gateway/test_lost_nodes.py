"""Nodes that come and go: what the engine says of them, and what their agents say."""

from __future__ import annotations

from pathlib import Path

from gpu_backend.engine.base import NodeChange, NodeEvent
from gpu_backend.gateway.directory import Directory

from .played_pool import BOSS, EVE, PlayedAgent, World, play, until


def test_a_lost_node_loses_its_sessions(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        await world.open()
        agent.speaks = False
        await world.engine.events.put(NodeEvent("n", NodeChange.LOST, "power cut"))

        async def lost() -> bool:
            return [s.state for s in (await world.view()).sessions] == ["lost"]

        await until(lost)

    play(tmp_path, story)


def test_a_node_that_only_the_engine_has_lost_keeps_its_sessions(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        kept = await world.open()
        revoked = await world.open(EVE)
        await world.engine.events.put(NodeEvent("n", NodeChange.LOST, "its membership process ended"))
        await world.view()  # by its answer the event was heard
        records = Directory(tmp_path / "directory.sqlite")
        records.revoke_key(EVE.public.decode(), 1.0)
        records.close()

        async def passed() -> bool:  # what is looked after after the nodes, each time
            return (revoked.session, 1) not in agent.executors

        await until(passed)
        states = {session.session: session.state for session in (await world.view(BOSS)).sessions}
        assert states[kept.session] == "serving"

    play(tmp_path, story)


def test_a_node_that_cannot_be_prepared_keeps_no_other_waiting(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        world.engine.stuck.add("slow")
        await world.engine.events.put(NodeEvent("slow", NodeChange.JOINED))
        await world.engine.events.put(NodeEvent("quick", NodeChange.JOINED))

        async def both() -> bool:
            await world.view()
            return world.engine.ensured == ["n", "slow", "quick"]

        await until(both)

    play(tmp_path, story)
