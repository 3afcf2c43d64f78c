"""Structures held to CuPy alone, counted; what differs is made as small as it gets."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from time import perf_counter

import msgspec

from gpu_backend.devices.base import Device
from gpu_backend.executor.config import PASSES
from gpu_backend.executor.program.run import OpStream
from tests.fuzz.drawing import Season
from tests.fuzz.playing import Difference, Streams, play
from tests.fuzz.recording import record
from tests.fuzz.structure import Structure

__all__ = ["Counts", "Found", "hunt", "look"]

#: How long a difference is made smaller, seconds.
_SHRINKING_SECONDS = 30.0
#: How often CuPy alone is asked again whether it always says the same.
_ASKED_AGAIN = 3
#: How many structures are drawn from the same phrases.
_SEASON = 40
#: So many ways are worth a line.
_MOST_WAYS = 12
#: So many differences are enough to look at.
_MOST_FOUND = 2


class Found(msgspec.Struct):
    """A structure that gives something else than CuPy alone does, with which passes, and what."""

    structure: Structure
    passes: list[str]
    told: list[str]


class Counts(msgspec.Struct):
    """What was done.

    Attributes
    ----------
    ops, played
        How many ops were recorded; and how many were played with passes, each as often as it was.
    failed
        Statements that raised something, of CuPy alone.
    unsteady
        Structures to which CuPy alone gives this answer now and that answer then.
    by_passes
        How many structures were played with which passes.
    ways
        How ops were carried out that were played.
    seconds
        What it took, by what was done.
    """

    structures: int = 0
    shapes: int = 0
    ops: int = 0
    played: int = 0
    failed: int = 0
    unsteady: list[Structure] = []
    by_passes: dict[str, int] = {}
    ways: dict[str, int] = {}
    seconds: dict[str, float] = {}
    found: list[Found] = []

    def add(self, other: Counts) -> None:
        """Add what another has counted."""
        for name in ("structures", "shapes", "ops", "played", "failed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.unsteady = [*self.unsteady, *other.unsteady]
        self.found = [*self.found, *other.found]
        for what, pairs in ((self.by_passes, other.by_passes), (self.ways, other.ways), (self.seconds, other.seconds)):
            for key, count in pairs.items():
                what[key] = what.get(key, 0) + count  # type: ignore[assignment, operator]

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Add up the seconds that something takes."""
        began = perf_counter()
        yield
        self.seconds[what] = self.seconds.get(what, 0.0) + perf_counter() - began

    def summary(self) -> Iterator[str]:
        """Yield what a person wants to know of it."""
        yield (
            f"{self.structures} structures, {self.shapes} with their shapes; {self.ops} ops, {self.played} played with "
            f"passes; {self.failed} statements raised something; {len(self.unsteady)} structures unsteady; "
            f"{len(self.found)} differences"
        )
        yield "seconds: " + ", ".join(f"{what} {seconds:.1f}" for what, seconds in self.seconds.items())
        yield "structures by passes: " + ", ".join(f"{name}: {count}" for name, count in sorted(self.by_passes.items()))
        for way, count in sorted(self.ways.items(), key=lambda item: -item[1])[:_MOST_WAYS]:
            yield f"{count:9} ops {way}"

    def differences(self) -> Iterator[str]:
        """Yield what is known of what differs, and what CuPy alone is unsteady in."""
        for one in self.unsteady[:1]:
            yield "UNSTEADY, CuPy alone:"
            yield from one.lines()
        for one in self.found:
            yield f"DIFFERENT with {' '.join(one.passes)}:"
            yield from one.structure.lines()
            yield from one.told


def hunt(
    seed: int,
    device: Device,
    structures: int = 1 << 60,
    seconds: float = float("inf"),
    combinations: int = 3,
    phrases: int = 1,
    streams: Streams = OpStream,
    note: Callable[[Structure], object] = lambda structure: None,
) -> Counts:
    """Draw structures, hold each to CuPy alone, and return the counts; end with a few differences.

    Parameters
    ----------
    structures, seconds
        How many, and how long: what is reached first.
    combinations
        How many sets of passes are tried with each: all of them, and all but one, the one by turns.
    phrases
        Seed of what structures are made of; see `Season`.
    note
        Called with each structure before it is played.
    """
    counts, ends, drawn, seasons = Counts(), perf_counter() + seconds, random.Random(seed), random.Random(phrases)
    while True:
        with counts.timed("for phrases"):
            season = Season(seasons.getrandbits(40), drawn.getrandbits(40))
        for _ in range(_SEASON):
            if counts.structures >= structures or perf_counter() > ends or len(counts.found) >= _MOST_FOUND:
                return counts
            with counts.timed("drawing"):
                structure = season.structure()
            note(structure)
            look(structure, device, _sets(counts.structures, combinations), counts, streams)


def _sets(turn: int, combinations: int) -> list[tuple[str, ...]]:
    left_out = [PASSES[(turn * (combinations - 1) + one) % len(PASSES)] for one in range(combinations - 1)]
    return [tuple(PASSES), *(tuple(name for name in PASSES if name != out) for out in dict.fromkeys(left_out))]


def look(
    structure: Structure, device: Device, sets: Collection[tuple[str, ...]], counts: Counts, streams: Streams = OpStream
) -> None:
    """Hold ``structure`` to CuPy alone with each of the ``sets`` of passes, and count."""
    with counts.timed("recording"):
        recording = record(structure, device)
    counts.structures += 1
    counts.shapes += len(structure.shapes)
    counts.ops += recording.ops
    counts.failed += recording.failed
    for passes in sets:
        with counts.timed("playing"):
            played = play(recording, device, passes, streams)
        counts.played += recording.ops
        left_out = [name for name in PASSES if name not in passes]
        name = f"without {' '.join(left_out)}" if left_out else "all"
        counts.by_passes[name] = counts.by_passes.get(name, 0) + 1
        for told, way, count in played.ways:
            way = f"CuPy's, since {way}" if told else way
            counts.ways[way] = counts.ways.get(way, 0) + count
        if played.difference is not None:
            with counts.timed("differences"):
                if any(play(recording, device, (), streams).difference for _ in range(_ASKED_AGAIN)):
                    counts.unsteady.append(structure)
                else:
                    counts.found.append(shrunk(structure, device, passes, played.difference, streams))
            return


def shrunk(
    structure: Structure, device: Device, passes: Collection[str], difference: Difference, streams: Streams
) -> Found:
    """Return the smallest structure found that still gives something else than CuPy alone."""
    ends = perf_counter() + _SHRINKING_SECONDS
    best = Found(structure, [*passes], [*difference.lines()])

    def is_smaller(**changed: object) -> bool:
        nonlocal best
        tried = msgspec.structs.replace(best.structure, **changed)
        if perf_counter() > ends or (found := play(record(tried, device), device, passes, streams).difference) is None:
            return False
        best = Found(tried, [*passes], [*found.lines()])
        return True

    if not difference.is_fatal:
        any(is_smaller(shapes=[one]) for one in structure.shapes)
        size = len(structure.statements)
        while size := size // 2 or (1 if size > 1 else 0):
            at = len(best.structure.statements)
            while (at := at - size) > -size:
                lines = best.structure.statements
                is_smaller(statements=[*lines[: max(at, 0)], *lines[at + size :]])
        any(is_smaller(repeats=count) for count in range(1, best.structure.repeats))
        is_smaller(read=[])
        is_smaller(refreshed=[])
    return best
