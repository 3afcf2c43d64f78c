"""Two programs beside each other on a pool of one's own: what a policy does, tried from a cell.

``print(beside("tgs", ours={"class": "production"}, theirs={"class": "best-effort"}, does="pause"))`` starts a pool on
this machine under the policy, lets one program run alone in it and then beside a neighbour, and ends the pool again.
Nobody else's pool is touched and no rights on one are needed: whoever starts a pool is its operator. Programs and pool
end with the call however it ends, and with this process if that is killed.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal, cast

from gpu_backend.engine.detached import ProcessId
from gpu_backend.wire.errors import PoolError, PoolRefusal
from kernelproxy.session.handover import TICKET_VARIABLE
from kernelproxy.settings import CONFIG_VARIABLE

try:
    from pydantic import ValidationError

    from gpu_backend.pool import commands, state
    from gpu_backend.pool.settings import PoolSettings
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"A trial starts a pool of its own on this machine, which needs {missing.name}, and this installation is a "
        "client's. Run `pip install 'gpu-workbench[pool]'`.",
        name=missing.name,
    ) from None

__all__ = ["Beside", "Side", "beside"]

#: How long a program may take to its first result, seconds: a pool's first executor is started for it.
_READY_SECONDS = 120.0
#: What it does in each turn: endless products; products and as long a pause; one short operation every 20 ms.
_TURNS = {
    "work": "products(); step()",
    "pause": "products(); time.sleep(step())",
    "ask": "float(small.sum()); step(); time.sleep(0.02)",
}
_DEVICES = {"cuda": "its GPU", "cpu": "the CPU device"}
#: The edge of the matrices, by what they are multiplied on: a turn takes some milliseconds.
_EDGES = {"cuda": 2048, "cpu": 32}
_ON_CPU = """\
On the CPU device, shares and who waits for whom show the policy at work: a share is the time in which operations ran,
or waited for a processor that both programs and the pool share. Milliseconds say nothing of a GPU, and no figure here
can be held against the authors' own."""
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
    """One program alone, the same beside a neighbour, and the neighbour; printed, the quantity it is about first."""

    policy: str
    alone: Side
    ours: Side
    theirs: Side
    does: str = "work"
    device: str = "cuda"
    names: tuple[str, str] = ("ours", "theirs")

    @property
    def kept(self) -> float:
        """What part of its rate alone the first program keeps."""
        return self.ours.turns_per_second / self.alone.turns_per_second

    @property
    def added(self) -> float:
        """By what part a turn of the first program takes longer than alone, at the median."""
        return self.ours.median_seconds / self.alone.median_seconds - 1

    def __str__(self) -> str:
        ours, theirs = self.names
        said = {
            "work": f"share of the device's time: {ours} {self.ours.gpu_part:.0%}, {theirs} {self.theirs.gpu_part:.0%}",
            "pause": f"rate that {ours} keeps beside {theirs}: {self.kept:.0%} of its rate alone",
            "ask": f"median time of a short operation of {ours}: {1e3 * self.ours.median_seconds:.2f} ms beside "
            f"{theirs}, {1e3 * self.alone.median_seconds:.2f} ms alone ({self.added:+.0%})",
        }
        if self.does != "ask":
            said["ask"] = said["ask"].replace("a short operation", "a turn")
        lines = sorted(said.items(), key=lambda line: line[0] != self.does)  # what this trial is about comes first
        where = f"{self.policy}, in a pool of its own on this machine ({_DEVICES[self.device]}):"
        return "\n".join([where, *(f"  {line}" for _, line in lines), *([_ON_CPU] if self.device == "cpu" else [])])


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
    with ExitStack() as stack:
        pool = _OwnPool(policy, device)
        stack.callback(pool.end)  # before it begins, as with the programs: an interrupt has no gap to fall into
        kind = pool.begin()
        mine = _Program(pool, does, _EDGES[kind], ours or {})
        stack.callback(mine.end)
        mine.begin()
        (alone,) = _watched([mine], seconds)
        other = _Program(pool, "work", _EDGES[kind], theirs or {})
        stack.callback(other.end)
        other.begin()
        other.wait_for_turns(1)  # until it has its session it is beside nobody
        names = (_named("ours", ours or {}), _named("theirs", theirs or {}))
        beside_it, neighbour = _watched([mine, other], seconds)
        return Beside(policy, alone, beside_it, neighbour, does, kind, names)


def _named(side: str, terms: Mapping[str, object]) -> str:
    return f"{side} ({', '.join(f'{name} {value}' for name, value in terms.items())})" if terms else side


def _watched(programs: Sequence[_Program], seconds: float) -> list[Side]:
    """Return what each of the programs does in the same ``seconds``."""
    marks = [program.mark() for program in programs]
    sleep(seconds)
    return [program.since(mark) for program, mark in zip(programs, marks, strict=True)]


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

    def begin(self) -> str:
        """Start it, for no longer than this process lives; return the kind of its device."""
        view = commands.up(self._state, self._settings, ProcessId.mine())
        self.config = commands.write_client_file(self._state, self._state.root / "client.toml")
        return view.devices[0].kind  # as it came up: a node that is slow to report again is left out of later views

    def end(self) -> None:
        """End it, wherever it has got to."""
        try:
            commands.down(self._state)
        finally:
            shutil.rmtree(self._root, ignore_errors=True)

    def gpu_seconds(self) -> dict[str, float]:
        """Return the GPU time of each session."""
        return {one.session: one.gpu_seconds for one in commands.status(self._state).sessions}


@dataclass(frozen=True)
class _Mark:
    """When the watching of a program began, and what it had used by then, both in seconds."""

    at: float
    used: float


class _Program:
    """A program with remote CuPy in a session of the pool; it says of each turn when it ended and how long it took."""

    def __init__(self, pool: _OwnPool, does: str, edge: int, terms: Mapping[str, object]) -> None:
        self._pool = pool
        self._options = [word for name, value in terms.items() for word in (f"--{name}", str(value))]
        self._code = _PROGRAM.format(edge=edge, turn=_TURNS[does])
        self._others = set(pool.gpu_seconds())
        self._session = ""
        self._process: subprocess.Popen[str] | None = None
        self._reading: threading.Thread | None = None
        self._turns: list[tuple[float, float]] = []

    def begin(self) -> None:
        """Start it. It ends at its next turn if this process is gone and nobody hears of its turns."""
        environment = {**os.environ, CONFIG_VARIABLE: str(self._pool.config)}
        environment.pop(TICKET_VARIABLE, None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "workbench", "run", *self._options, "-c", self._code],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reading = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reading.start()

    def end(self) -> None:
        """End it, if it was begun."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        if self._reading is not None:
            self._reading.join()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def mark(self) -> _Mark:
        """Wait for its next turn, and begin to watch it there."""
        self.wait_for_turns(len(self._turns) + 1)
        return _Mark(monotonic(), self._used())

    def since(self, mark: _Mark) -> Side:
        """Return what it did since ``mark``, one turn at least."""
        self.wait_for_turns(1 + sum(at <= mark.at for at, _ in self._turns))
        end, used = monotonic(), self._used()
        taken = [length for at, length in self._turns if mark.at < at <= end] or [end - mark.at]
        return Side(len(taken) / (end - mark.at), statistics.median(taken), (used - mark.used) / (end - mark.at))

    def _used(self) -> float:
        used = self._pool.gpu_seconds()
        if not self._session:  # whoever is there now and was not before it: a neighbour is started later
            (self._session,) = used.keys() - self._others
        return used[self._session]

    def wait_for_turns(self, count: int) -> None:
        """Wait until it has done so many turns in all."""
        deadline = monotonic() + _READY_SECONDS
        while len(self._turns) < count:
            if self._process is not None and self._process.poll() is not None:
                words = self._process.stderr.read()[-2_000:] if self._process.stderr is not None else ""
                raise PoolRefusal(f"A program of this trial ended. It said: {words or 'nothing'}")
            if monotonic() > deadline:
                raise PoolError(f"A program of this trial did nothing for {_READY_SECONDS:g} s.")
            sleep(0.01)

    def _read(self, lines: Iterable[str]) -> None:
        for line in lines:
            if not line.endswith("\n"):
                return  # it was ended while it wrote
            at, taken = map(float, line.split())
            self._turns.append((at, taken))
