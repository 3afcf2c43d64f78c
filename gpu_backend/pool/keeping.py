"""The keeper: what runs on a machine that has joined a pool, and keeps one agent running there, or Ray, which does."""

from __future__ import annotations

import asyncio
import logging
import signal

from gpu_backend.engine.detached import ProcessId, write_identity
from gpu_backend.engine.kept_process import KeptProcess
from gpu_backend.pool import clusters
from gpu_backend.pool.joined import membership, read_settings
from gpu_backend.pool.setup import agent_command
from gpu_backend.pool.state import PoolState
from gpu_backend.pool.supervisor import gone

log = logging.getLogger("pool.keeper")


async def keep(state: PoolState, owner: ProcessId | None) -> bool:
    """Keep the agent until a signal ends us, which leaves it running, or until the owner is gone; tell whether it is.

    ``owner`` is a process that the node is not to outlive; None for as long as it likes.
    """
    write_identity(state.process_file("supervisor"), ProcessId.mine())
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    orphaned = asyncio.create_task(gone(owner))
    tasks = {orphaned, asyncio.create_task(stop.wait()), asyncio.create_task(_keep(state))}
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks - done:
        task.cancel()
    await asyncio.gather(*tasks - done, return_exceptions=True)
    for task in done:
        task.result()
    return orphaned in done


async def _keep(state: PoolState) -> None:
    """Keep the agent, or this machine's part of the pool's Ray cluster, where another keeper has the agent."""
    known = membership(state)
    if known.engine == "ray":
        kept = clusters.node_process(state, known.node, read_settings(state))
    else:
        kept = KeptProcess("agent", agent_command(state), state.node, state.logs / "agent.log")
    kept.want()
    async for _ in kept.keep():
        log.info("%s was started again", known.node)
