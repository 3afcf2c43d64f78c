"""What an arbiter has counted of one executor: kept in its own directory, for its successor and for the agent.

A file of some words for each executor, by `roster.name_of`, which the arbiter maps: what is counted survives its death,
and no executor can reach it.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import NamedTuple

from gpu_backend.gate.words import Words

__all__ = ["Booked", "Tally", "booked", "counted_seconds", "remove"]

_FOLDER = "counted"
_SIZE = 64
_MAGIC = int.from_bytes(b"gpuwbct\x01", "little")
_REPORTED, _AHEAD, _COUNTED, _NOTED_AT, _WANTED, _LOOKED_AT, _UNUSED = 1, 2, 3, 4, 5, 6, 7


class Booked(NamedTuple):
    """What an arbiter has on its books of one executor."""

    #: GPU time used.
    used_seconds: float
    #: Time in which it had ops to launch or under way, as far as it said so.
    wanted_seconds: float
    #: Up to when all is known, by the host's monotonic clock.
    at_seconds: float
    #: Time in which anybody on its device had such ops and nobody used it, since it is there. What is known late is
    #: taken off it again.
    unused_seconds: float


class Tally:
    """The arbiter's side; there is one for each executor."""

    def __init__(self, directory: Path, name: str) -> None:
        path = _path(directory, name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(descriptor).st_size != _SIZE:
                os.ftruncate(descriptor, _SIZE)
            self._page = Words(mmap.mmap(descriptor, _SIZE))
        finally:
            os.close(descriptor)
        self._path = path
        words = self._page.words
        words[0] = _MAGIC

    @property
    def reported_ns(self) -> int:
        """What the executor had reported, as far as it is counted."""
        return self._page.words[_REPORTED]

    @property
    def ahead_ns(self) -> int:
        """What was counted before it was reported."""
        return self._page.words[_AHEAD]

    @property
    def noted_at_ns(self) -> int:
        """When anything was last noted, by the host's monotonic clock; 0 for never."""
        return self._page.words[_NOTED_AT]

    def note(self, reported_ns: int, ahead_ns: int, counted_ns: int, now_ns: int) -> None:
        """Note what is counted now, ``counted_ns`` of it new."""
        words = self._page.words
        words[_NOTED_AT] = now_ns
        words[_REPORTED], words[_AHEAD] = reported_ns, ahead_ns
        words[_COUNTED] += counted_ns

    def look(self, wanted_ns: int, unused_ns: int, now_ns: int) -> None:
        """Note for how much longer the executor wanted the device, and it was wanted and unused, up to now."""
        words = self._page.words
        words[_WANTED] += wanted_ns
        words[_UNUSED] += unused_ns
        words[_LOOKED_AT] = now_ns

    def close(self) -> None:
        """Unmap the file. It stays for the agent, who removes it after its executor's end, and for a successor."""
        self._page.close()


def counted_seconds(directory: Path, name: str) -> float:
    """Return what the arbiter in ``directory`` has counted of an executor, seconds; 0 if it has not."""
    return booked(directory, name).used_seconds


def booked(directory: Path, name: str) -> Booked:
    """Return what the arbiter in ``directory`` has on its books of an executor; nothing, at no time, if it has not."""
    try:
        data = _path(directory, name).read_bytes()
    except OSError:
        return Booked(0.0, 0.0, 0.0, 0.0)
    words = memoryview(data).cast("q") if len(data) == _SIZE else None
    if words is None or words[0] != _MAGIC:
        return Booked(0.0, 0.0, 0.0, 0.0)
    unused_seconds = max(0, words[_UNUSED]) / 1e9
    return Booked(words[_COUNTED] / 1e9, words[_WANTED] / 1e9, words[_LOOKED_AT] / 1e9, unused_seconds)


def remove(directory: Path, name: str) -> None:
    """Forget what was counted of an executor that has ended."""
    _path(directory, name).unlink(missing_ok=True)


def _path(directory: Path, name: str) -> Path:
    return directory / _FOLDER / name
