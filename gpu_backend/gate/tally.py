"""What an arbiter has counted of one executor: kept in its own directory, for its successor and for the agent.

A file of some words for each executor, by `roster.name_of`, which the arbiter maps: what is counted survives its death,
and no executor can reach it.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from gpu_backend.gate.words import Words

__all__ = ["Tally", "counted_seconds", "remove"]

_FOLDER = "counted"
_SIZE = 64
_MAGIC = int.from_bytes(b"gpuwbct\x01", "little")
_REPORTED, _AHEAD, _COUNTED, _NOTED_AT = 1, 2, 3, 4


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

    def close(self) -> None:
        """Unmap the file. It stays for the agent, who removes it after its executor's end, and for a successor."""
        self._page.close()


def counted_seconds(directory: Path, name: str) -> float:
    """Return what the arbiter in ``directory`` has counted of an executor, seconds; 0 if it has not."""
    try:
        data = _path(directory, name).read_bytes()
    except OSError:
        return 0.0
    if len(data) != _SIZE:
        return 0.0
    words = memoryview(data).cast("q")
    return words[_COUNTED] / 1e9 if words[0] == _MAGIC else 0.0


def remove(directory: Path, name: str) -> None:
    """Forget what was counted of an executor that has ended."""
    _path(directory, name).unlink(missing_ok=True)


def _path(directory: Path, name: str) -> Path:
    return directory / _FOLDER / name
