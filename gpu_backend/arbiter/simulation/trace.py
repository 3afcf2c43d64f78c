"""What users do: recorded, or made up from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

import msgspec

from gpu_backend.gate.terms import SessionClass, SessionTerms

__all__ = ["Cell", "Script", "Trace", "coming_and_going", "read", "synthetic"]

T = TypeVar("T")

#: A cell of less GPU time than this is one whose result somebody waits for.
_URGENT_SECONDS = 0.05
_NOTEBOOKS = ((1, 0.70), (2, 0.20), (3, 0.08), (6, 0.02))
_CLASSES = (
    (SessionClass.INTERACTIVE, 0.75),
    (SessionClass.BEST_EFFORT, 0.2),
    (SessionClass.PRODUCTION, 0.05),
)
#: What notebooks ask for, GiB.
_MEMORY = ((2, 0.35), (4, 0.25), (8, 0.20), (16, 0.15), (40, 0.05))
#: How many notebooks are opened in the first minute, and how long each is kept, seconds: an hour on average.
_FROM_THE_START, _STAY_SECONDS, _SHORTEST_SECONDS = 0.7, 3600.0, 60.0


class Cell(msgspec.Struct, frozen=True, gc=False):
    """One cell: the pause before it, and its ops."""

    #: From the end of the cell before it (or the session's start), seconds.
    think_seconds: float
    ops: int
    op_seconds: float
    #: Which parts of its time its ops are bound by arithmetic, and by memory; -1 where their classes tell nothing.
    compute_part: float = -1.0
    memory_part: float = -1.0

    @property
    def seconds(self) -> float:
        """GPU time of the cell where nobody disturbs it."""
        return self.ops * self.op_seconds

    @property
    def is_urgent(self) -> bool:
        """Whether it is short enough that somebody waits for it."""
        return self.seconds < _URGENT_SECONDS


class Script(msgspec.Struct, frozen=True):
    """One session's cells, on one device. The next cell begins after the last one's end: users wait for results."""

    terms: SessionTerms
    device: int
    cells: tuple[Cell, ...]
    start_seconds: float = 0.0
    #: Device memory that it asks for; 0 for none of its own.
    memory_bytes: int = 0


class Trace(msgspec.Struct, frozen=True):
    """What all sessions of a pool do in a length of time."""

    seconds: float
    scripts: tuple[Script, ...]

    def on_device(self, device: int) -> tuple[Script, ...]:
        """Return the scripts of one device."""
        return tuple([script for script in self.scripts if script.device == device])

    @property
    def devices(self) -> int:
        """Number of devices."""
        return 1 + max((script.device for script in self.scripts), default=-1)


def read(path: Path) -> Trace:
    """Read a recorded trace (JSON, the fields of `Trace`).

    Raises
    ------
    msgspec.ValidationError
        If it is not one; the message names the field.
    """
    return msgspec.json.decode(path.read_bytes(), type=Trace)


def synthetic(users: int, devices: int, seconds: float, seed: int = 0) -> Trace:
    """Return ``users`` with one to six notebooks each, spread over ``devices``, who all stay.

    Three ways of working, chosen by us to resemble a group's day: 78 % try things out (short cells, a pause of 20 s),
    20 % analyse (1 to 20 s of GPU time, a pause of a minute), 2 % run long loops.
    """
    random = Random(seed)
    scripts = []
    for number in range(users):
        style, notebooks = random.random(), _user(random, number)
        for terms in notebooks:
            start = random.uniform(0, min(60.0, seconds / 10))
            scripts.append(Script(terms, number % devices, _cells(random, style, seconds - start), start))
    return Trace(seconds, tuple(scripts))


def coming_and_going(users: int, seconds: float, seed: int = 0) -> Trace:
    """Return ``users`` of the same kinds, who open their notebooks in the course of ``seconds`` and close them again.

    70 % of the notebooks are opened in the first minute, the others at any time. Each is kept for an hour on average,
    and asks for 2 to 40 GiB. Where they go is not said.
    """
    random = Random(seed)
    scripts = []
    for number in range(users):
        style, notebooks = random.random(), _user(random, number)
        for terms in notebooks:
            is_early = random.random() < _FROM_THE_START
            start = random.uniform(0, min(60.0, seconds / 10) if is_early else seconds)
            stay = max(_SHORTEST_SECONDS, random.expovariate(1 / _STAY_SECONDS))
            gib = _one_of(random, _MEMORY)
            scripts.append(Script(terms, 0, _cells(random, style, min(stay, seconds)), start, gib << 30))
    return Trace(seconds, tuple(scripts))


def _user(random: Random, number: int) -> list[SessionTerms]:
    """Return the terms of the notebooks of one user."""
    kind = _one_of(random, _CLASSES)
    return [
        SessionTerms(
            session=f"u{number}.{notebook}", user=f"u{number}", kind=kind,
            request=0.3 if kind is SessionClass.PRODUCTION else 0.0,
        )
        for notebook in range(_one_of(random, _NOTEBOOKS))
    ]  # fmt: skip


def _one_of(random: Random, parts: Sequence[tuple[T, float]]) -> T:
    return random.choices([one for one, _ in parts], [part for _, part in parts])[0]


def _cells(random: Random, style: float, seconds: float) -> tuple[Cell, ...]:
    cells = []
    while seconds > 0:
        if style < 0.78:
            think, length = random.expovariate(1 / 20), min(random.lognormvariate(-4.6, 1.5), 5.0)
            op = 10 ** random.uniform(-5, -3)
        elif style < 0.98:
            think, length = random.expovariate(1 / 60), random.uniform(1, 20)
            op = 10 ** random.uniform(-4, -2.3)
        else:
            think, length = random.expovariate(1 / 30), random.uniform(60, 600)
            op = 10 ** random.uniform(-3.7, -1)
        cells.append(Cell(think, max(1, round(length / op)), op))
        seconds -= think + length
    return tuple(cells)
