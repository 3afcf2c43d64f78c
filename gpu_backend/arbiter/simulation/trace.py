"""What users do: recorded, or made up from a seed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec

from gpu_backend.gate.terms import SessionClass, SessionTerms

__all__ = ["Cell", "Script", "Trace", "read", "synthetic"]

#: A cell of less GPU time than this is one whose result somebody waits for.
_URGENT_SECONDS = 0.05
_NOTEBOOKS = ((1, 0.70), (2, 0.20), (3, 0.08), (6, 0.02))


class Cell(msgspec.Struct, frozen=True, gc=False):
    """One cell: the pause before it, and its ops."""

    #: From the end of the cell before it (or the session's start), seconds.
    think_seconds: float
    ops: int
    op_seconds: float

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
    """Return ``users`` with one to six notebooks each, spread over ``devices``.

    Three ways of working, chosen by us to resemble a group's day: 78 % try things out (short cells, a pause of 20 s),
    20 % analyse (1 to 20 s of GPU time, a pause of a minute), 2 % run long loops.
    """
    random = Random(seed)
    scripts = []
    for number in range(users):
        style = random.random()
        kind = random.choices(
            [SessionClass.INTERACTIVE, SessionClass.BEST_EFFORT, SessionClass.PRODUCTION], [0.75, 0.2, 0.05]
        )[0]
        notebooks = random.choices([n for n, _ in _NOTEBOOKS], [part for _, part in _NOTEBOOKS])[0]
        for notebook in range(notebooks):
            terms = SessionTerms(
                session=f"u{number}.{notebook}", user=f"u{number}", kind=kind,
                request=0.3 if kind is SessionClass.PRODUCTION else 0.0,
            )  # fmt: skip
            start = random.uniform(0, min(60.0, seconds / 10))
            scripts.append(Script(terms, number % devices, _cells(random, style, seconds - start), start))
    return Trace(seconds, tuple(scripts))


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
