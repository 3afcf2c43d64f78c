"""The actor that Ray keeps on each node of a pool: it prepares the node, and keeps its agent as `local` does."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from gpu_backend.engine.base import NodeChange
from gpu_backend.engine.detached import read_identity
from gpu_backend.engine.local import LocalEngine
from gpu_backend.engine.ray_words import Kept, Prepared, Unkept

#: How long a question for news is held, seconds: one whose asker is gone must not be held for ever.
_HOLD_SECONDS = 20.0
#: How long a node may take to be prepared, seconds.
_PREPARE_SECONDS = 120.0


class Keeper:
    """Runs in a Ray worker of its node. The agent is nobody's child: it outlives the keeper, the worker and Ray."""

    def __init__(self, node: str, address: str, prepare: Sequence[str]) -> None:
        """Keep nothing yet. ``prepare`` are the arguments to this node's Python that prepare it for an agent."""
        self._node = node
        self._address = address
        self._prepare = tuple(prepare)
        self._engine: LocalEngine | None = None
        self._watching: asyncio.Task[None] | None = None
        #: Held by what starts or ends the agent: who says stop means what was begun before as well.
        self._changing = asyncio.Lock()
        self._news = asyncio.Condition()
        self._prepared: Prepared | None = None

    async def keep(self, told: str) -> str:
        """Prepare the node and have an agent run on it; return a `Kept` or an `Unkept` as JSON."""
        async with self._changing:
            return await self._keep(told)

    async def _keep(self, told: str) -> str:
        try:
            prepared = await asyncio.to_thread(self._made_ready, told)
        except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
            return msgspec.json.encode(Unkept(self._node, _words_of(error))).decode()
        same = self._prepared is not None and msgspec.structs.replace(prepared, is_new=False) == self._prepared
        if self._engine is None or prepared.is_new or not same:
            await self._stop()  # executors run on, and the next agent finds them
            self._engine = LocalEngine(
                self._node, prepared.command, Path(prepared.directory), Path(prepared.log_file), _nodes_environment()
            )
            if prepared.is_new:
                await self._engine.stop_agent(self._node)  # the one that was told something else
            self._watching = asyncio.create_task(self._watch(self._engine))
        self._prepared = msgspec.structs.replace(prepared, is_new=False)
        await self._engine.ensure_agent(self._node)
        return self._kept()

    async def news(self, known: str) -> str:
        """Return a `Kept` once the agent is not ``known`` (after a while in any case); empty if nothing is kept."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_HOLD_SECONDS), self._news:
                await self._news.wait_for(lambda: self._engine is None or self._agent() not in ("", known))
        return self._kept() if self._engine is not None else ""

    async def stop(self) -> None:
        """End the agent and keep it no longer."""
        async with self._changing:
            await self._stop()

    async def _stop(self) -> None:
        if self._engine is not None:
            await self._engine.stop_agent(self._node)
        await self._forget()

    async def _forget(self) -> None:
        self._engine = None
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None

    async def _watch(self, engine: LocalEngine) -> None:
        async for event in engine.watch():
            if event.change is NodeChange.AGENT_STARTED:
                async with self._news:
                    self._news.notify_all()

    def _made_ready(self, told: str) -> Prepared:
        """Run what prepares the node: a process of its own, in whose hands a broken installation is a plain error."""
        ready = subprocess.run(
            [sys.executable, *self._prepare], input=msgspec.json.encode([self._node, self._address, told]),
            capture_output=True, timeout=_PREPARE_SECONDS, check=True, cwd="/",
        )  # fmt: skip
        return msgspec.json.decode(ready.stdout, type=Prepared)

    def _agent(self) -> str:
        identity = read_identity(Path(self._prepared.directory) / "agent.json") if self._prepared is not None else None
        return f"{identity.pid}:{identity.start_time}" if identity is not None else ""

    def _kept(self) -> str:
        key = self._prepared.key if self._prepared is not None else ""
        return msgspec.json.encode(Kept(self._node, self._agent(), key)).decode()


def _nodes_environment() -> dict[str, str]:
    """Return the environment of the node, without what is Ray's.

    Ray gives its workers more than the node has, so that each computes with one thread; executors compute as elsewhere.
    """
    own = os.fsdecode(Path(f"/proc/{os.getppid()}/environ").read_bytes()).split("\0")
    pairs = (entry.partition("=") for entry in own if entry)
    return {name: value for name, _, value in pairs if not name.startswith("RAY_")}


def _words_of(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        said = error.stderr.decode(errors="replace").strip().splitlines()
        return said[-1][-300:] if said else f"its preparation ended with status {error.returncode}"
    return f"{error}"
