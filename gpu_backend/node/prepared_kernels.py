"""Kernels that a node compiles before anybody asks, once for all its users; see `devices/cuda_prepared.py`."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from gpu_backend.node.environment import executor_environment
from gpu_backend.node.inventory import Found

__all__ = ["folder", "one_of_each", "prepare"]

log = logging.getLogger("node.prepared_kernels")

_COMMAND = (sys.executable, "-m", "gpu_backend.devices.cuda_prepared")


def folder(cache_dir: str) -> Path:
    """Return where they are, made if need be: below the caches of the users, and none of theirs."""
    path = Path(cache_dir) / "prepared"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def one_of_each(devices: Iterable[Found]) -> list[Found]:
    """Return one GPU of each model: what is compiled for it serves all of them."""
    return list({device.name: device for device in devices if device.kind == "cuda"}.values())


async def prepare(cache_dir: str, device: Found, command: tuple[str, ...] = _COMMAND) -> None:
    """Compile them for ``device`` in a process of its own, which ends with this task. What fails is logged."""
    with TemporaryDirectory(prefix="gpu-workbench-") as own:
        environment = executor_environment(Path(own), [device], os.environ)
        try:
            process = await asyncio.create_subprocess_exec(
                *command, str(folder(cache_dir)), env=environment, cwd=own, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            log.warning("kernels cannot be compiled beforehand: %s", error)
            return
        try:
            _, said = await process.communicate()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        if process.returncode:
            log.warning("kernels were not compiled beforehand: %s", said.decode(errors="replace")[-500:].strip())
