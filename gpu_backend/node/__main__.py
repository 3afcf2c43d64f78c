"""``python -m gpu_backend.node --state DIR``: run the agent of this node."""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import logging
import os
import signal
from pathlib import Path

from gpu_backend.engine import logs
from gpu_backend.engine.detached import ProcessId, write_identity
from gpu_backend.node import inventory, launcher, numbering
from gpu_backend.node import settings as node_settings
from gpu_backend.node.agent import Agent
from gpu_backend.transport import curve
from gpu_backend.transport.private_files import write_private
from gpu_backend.wire.errors import PoolError

log = logging.getLogger("node")


def main() -> None:
    """Run until a signal says otherwise. Executors are left running."""
    parser = argparse.ArgumentParser(description="Run the agent of this node: it keeps the executors.")
    parser.add_argument("--state", type=Path, required=True, help="the agent's directory, with its config.json")
    state: Path = parser.parse_args().state
    os.umask(0o077)
    logs.set_up()
    problem = state / launcher.PROBLEM_NOTE
    try:
        settings = node_settings.read(state)
        lock = os.open(Path(settings.runtime_dir) / "agent.lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # two agents would fight over the executors
        write_identity(state / "agent.json", ProcessId.mine())
        keys = curve.load(Path(settings.key_file))
        devices = inventory.devices(settings.devices, settings.cpu_devices)
        devices = numbering.renumber(state, devices, settings.runtime_dir)
    except BlockingIOError:
        log.error("another agent runs for %s", state)
        raise SystemExit(1) from None
    except (PoolError, OSError) as error:
        log.error("cannot start: %s", error)
        write_private(problem, str(error).encode())  # for whoever waits for the pool to come up
        raise SystemExit(2) from None
    problem.unlink(missing_ok=True)
    asyncio.run(_run(Agent(settings, keys, devices)))


async def _run(agent: Agent) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.stop)
    await agent.run()


main()
