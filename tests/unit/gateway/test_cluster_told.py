"""Who is told where a pool's Ray cluster is, and what lets one in: its members, at the agents' door, and none else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door, ask_async
from gpu_backend.transport.curve import KeyPair
from gpu_backend.wire.clusters import Cluster
from gpu_backend.wire.errors import NotAuthorized, PoolUnreachable
from gpu_backend.wire.joining import AskCluster, AskNode

from .played_pool import ADA, GATEWAY, PATIENT_SECONDS, PlayedAgent, World
from .test_membership import INVITATION, JOINER, asked, play_two, records

CLUSTER = Cluster(0, "10.0.0.1:7768", "the-token", "2.60.0", "3.11.7")


async def told(world: World, keys: KeyPair, seconds: float = PATIENT_SECONDS) -> Cluster:
    answer = await ask_async(Door(world.agents_endpoint, GATEWAY.public, keys), AskCluster(0), seconds)
    assert isinstance(answer, Cluster)
    return msgspec.structs.replace(answer, request=0)


def test_the_members_of_a_pool_on_ray_are_told_and_nobody_else_is(tmp_path: Path) -> None:
    async def story(world: World, _: PlayedAgent, other: PlayedAgent) -> None:
        assert (await asked(world, JOINER, AskNode(0))).engine == (await world.view()).engine == "ray"
        assert await told(world, JOINER) == CLUSTER
        with records(tmp_path) as directory:
            directory.invite("another", (fresh := curve.generate()).public.decode(), 2.0**40)
        for stranger in (ADA, INVITATION, fresh, curve.generate()):  # those who are invited have not joined yet
            with pytest.raises((NotAuthorized, PoolUnreachable)):
                await told(world, stranger, 0.5)
        with records(tmp_path) as directory:
            directory.remove_node("m")
        with pytest.raises((NotAuthorized, PoolUnreachable)):
            await told(world, JOINER, 0.5)

    play_two(tmp_path, story, cluster=CLUSTER)


def test_a_pool_without_ray_has_no_cluster_to_tell_of(tmp_path: Path) -> None:
    async def story(world: World, _: PlayedAgent, other: PlayedAgent) -> None:
        assert (await asked(world, JOINER, AskNode(0))).engine == (await world.view()).engine == "local"
        assert await told(world, JOINER) == Cluster(0)

    play_two(tmp_path, story)
