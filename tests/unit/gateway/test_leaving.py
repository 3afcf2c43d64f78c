"""A machine that its operator takes down: its pool hears of it from the machine itself, and gives it up at once."""

from __future__ import annotations

from pathlib import Path

from gpu_backend.wire import control
from gpu_backend.wire.codec import encode
from gpu_backend.wire.joining import AskNode, Leave

from .played_pool import DEVICE, PlayedAgent, World, until
from .test_membership import JOINER, are_up, asked, node, opened_on, play_two


def test_a_node_that_is_taken_down_is_given_up_at_once_until_it_is_started_again(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent, other: PlayedAgent) -> None:
        ticket = await opened_on(world, "m")
        left = await asked(world, JOINER, Leave(0))
        assert left.node.state == "down"
        assert {one.session: one.state for one in (await world.view()).sessions} == {ticket.session: "lost"}
        await other.report()  # with its executor, which it has still: that counts no more
        assert (await asked(world, JOINER, AskNode(0))).node.state == "down"
        assert await are_up(world, {"n"})
        fresh = await world.renew(ticket.session)
        assert isinstance(fresh, control.Ticket)
        assert (fresh.epoch, fresh.former_end) == (2, "The operator of m took that machine out of the pool for now.")

        async def is_told() -> bool:
            return any(isinstance(one, control.StopNode) for one in other.heard)

        await until(is_told)
        other.heard.clear()
        await other.report()  # the word may have been lost
        await until(is_told)
        with world.raw(world.agents_endpoint, JOINER) as socket:  # another agent there
            await socket.send_multipart(encode(control.NodeReport((DEVICE,), (), 0)))
            await until(lambda: are_up(world, {"m", "n"}))
            assert (await node(world, "m")).state == "up"

    play_two(tmp_path, story, sessions_per_device=8)
