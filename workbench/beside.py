"""Two programs beside each other on a pool of one's own: what a policy does, tried from a cell.

``print(beside("tgs", ours={"class": "production"}, theirs={"class": "best-effort"}, does="pause"))`` starts a pool on
this machine under the policy, lets one program run alone in it and then beside a neighbour, and ends the pool again.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Literal, cast

from pydantic import ValidationError

from gpu_backend.pool import commands, state
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.wire.errors import PoolError, PoolRefusal
from kernelproxy.session.handover import TICKET_VARIABLE
from kernelproxy.settings import CONFIG_VARIABLE

__all__ = ["Beside", "Side", "beside"]

#: How long a program may take to its first result, seconds: a pool's first executor is started for it.
_READY_SECONDS = 120.0
#: What it does in each turn: endless products; products and as long a pause; one short operation every 20 ms.
_TURNS = {
    "work": "products(); step()",
    "pause": "products(); time.sleep(step())",
    "ask": "float(small.sum()); step(); time.sleep(0.02)",
}
_PROGRAM = """
import time
import cupy as cp
edge, last = {edge}, time.monotonic()
x, small = cp.ones((edge, edge), dtype=cp.float32), cp.ones(1000)
def products():
    for _ in range(10):
        x @ x
    cp.cuda.get_current_stream().synchronize()
def step():
    taken = time.monotonic() - last
    print(time.monotonic(), taken, flush=True)
    return taken
while True:
    last = time.monotonic()
    {turn}
"""


@dataclass(frozen=True)
class Side:
    """What one program did in a while: turns a second, seconds a turn took at the median, part of the GPU's time."""

    turns_per_second: float
    median_seconds: float
    gpu_part: float


@dataclass(frozen=True)
class Beside:
    """One program alone, the same beside a neighbour, and the neighbour."""

    policy: str
    alone: Side
    ours: Side
    theirs: Side

    @property
    def kept(self) -> float:
        """What part of its rate alone the first program keeps."""
        return self.ours.turns_per_second / self.alone.turns_per_second

    def __str__(self) -> str:
        return (
            f"{self.policy}: ours keeps {self.kept:.0%} of its rate alone and uses {self.ours.gpu_part:.0%} of the "
            f"GPU's time, theirs {self.theirs.gpu_part:.0%}; one turn of ours takes "
            f"{1e3 * self.ours.median_seconds:.1f} ms at the median, alone {1e3 * self.alone.median_seconds:.1f} ms"
        )


def beside(
    policy: str,
    ours: Mapping[str, object] | None = None,
    theirs: Mapping[str, object] | None = None,
    does: Literal["work", "pause", "ask"] = "work",
    *,
    seconds: float = 5.0,
    device: Literal["auto", "cuda", "cpu"] = "auto",
) -> Beside:
    """Run one program alone and then beside a neighbour that multiplies without end, on a pool of their own.

    Parameters
    ----------
    policy
        How the device is shared.
    ours, theirs
        What their sessions ask for: ``class``, ``request``, ``limit``, ``priority``, as `workbench run` takes them.
    does
        What ours does: ``work`` multiplies without end, ``pause`` pauses half of the time, ``ask`` fetches a number
        every 20 ms.
    seconds
        How long each of the two is watched.
    device
        What the pool offers.

    Raises
    ------
    PoolRefusal
        If there is no such policy, the pool does not come up, or a program ends.
    """
    if does not in _TURNS:
        raise PoolRefusal(f"A program can {', '.join(_TURNS)}, not {does!r}.")
    edge = 32 if device == "cpu" else 2048
    with ExitStack() as stack:
        pool = stack.enter_context(_OwnPool(policy, device))
        mine = stack.enter_context(_Program(pool, does, edge, ours or {}))
        alone = mine.watched(seconds)
        other = stack.enter_context(_Program(pool, "work", edge, theirs or {}))
        other.wait_for_turns(1)
        watcher = stack.enter_context(ThreadPoolExecutor(1))
        watched = watcher.submit(other.watched, seconds)
        return Beside(policy, alone, mine.watched(seconds), watched.result())


class _OwnPool:
    """A pool under one policy in a directory of its own, in which everybody may ask for anything."""

    def __init__(self, policy: str, device: str) -> None:
        try:
            self._settings = PoolSettings(
                devices=cast("Any", device), policy=policy, largest_class="production", largest_request=1.0
            )
        except ValidationError as error:
            raise PoolRefusal(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
        self._root = Path(tempfile.mkdtemp(prefix="gw-"))
        self._state = state.at(self._root / "pool")

    def __enter__(self) -> _OwnPool:
        try:
            self.config = commands.embedded(self._state, self._settings)
        except BaseException:  # an interrupt too must leave no pool behind
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        commands.down(self._state)
        shutil.rmtree(self._root, ignore_errors=True)

    def gpu_seconds(self) -> dict[str, float]:
        """Return the GPU time of each session."""
        return {one.session: one.gpu_seconds for one in commands.status(self._state).sessions}


class _Program:
    """A program with remote CuPy in a session of the pool; it says of each turn when it ended and how long it took."""

    def __init__(self, pool: _OwnPool, does: str, edge: int, terms: Mapping[str, object]) -> None:
        self._pool = pool
        self._others = set(pool.gpu_seconds())
        self._session = ""
        options = [word for name, value in terms.items() for word in (f"--{name}", str(value))]
        code = _PROGRAM.format(edge=edge, turn=_TURNS[does])
        environment = {**os.environ, CONFIG_VARIABLE: str(pool.config)}
        environment.pop(TICKET_VARIABLE, None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "workbench", "run", *options, "-c", code],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._turns: list[tuple[float, float]] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def __enter__(self) -> _Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reading.join()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def watched(self, seconds: float) -> Side:
        """Return what it does in the next ``seconds``, counted from its next turn on."""
        self.wait_for_turns(len(self._turns) + 1)
        begin, used = monotonic(), self._used()
        sleep(seconds)
        self.wait_for_turns(1 + sum(at <= begin for at, _ in self._turns))
        end, more = monotonic(), self._used()
        taken = [length for at, length in self._turns if begin < at <= end] or [end - begin]
        return Side(len(taken) / (end - begin), statistics.median(taken), (more - used) / (end - begin))

    def _used(self) -> float:
        used = self._pool.gpu_seconds()
        if not self._session:  # whoever is there now and was not before it: a neighbour is started later
            (self._session,) = used.keys() - self._others
        return used[self._session]

    def wait_for_turns(self, count: int) -> None:
        """Wait until it has done so many turns in all."""
        deadline = monotonic() + _READY_SECONDS
        while len(self._turns) < count:
            if self._process.poll() is not None:
                words = self._process.stderr.read()[-2_000:] if self._process.stderr is not None else ""
                raise PoolRefusal(f"A program of this trial ended. It said: {words or 'nothing'}")
            if monotonic() > deadline:
                raise PoolError(f"A program of this trial did nothing for {_READY_SECONDS:g} s.")
            sleep(0.01)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            at, taken = map(float, line.split())
            self._turns.append((at, taken))
