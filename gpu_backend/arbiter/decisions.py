"""The log of an arbiter's decisions, from which each of them can be made again.

A segment begins with a fresh core and its policy's name, so replaying it from its first line needs nothing else. A new
one is begun only while the device is at rest: what a policy remembers would be lost with the old one. Two segments are
kept; one that grows beyond all bounds without a pause is ended, and nothing is logged until the next pause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import BinaryIO

import msgspec

from gpu_backend.arbiter.policies.base import SharingPolicy
from gpu_backend.arbiter.scheduler import Decision, Scheduler

__all__ = ["CURRENT", "FORMER", "DecisionLog", "NotReproduced", "read", "replay"]

CURRENT, FORMER = "decisions", "decisions.1"
#: A segment of this size is ended at the next pause; one of the second size at once.
_LONG_BYTES = 16 << 20
_LONGEST_BYTES = 64 << 20
_LENGTH = Struct("<I")

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Decision)


class NotReproduced(Exception):
    """A logged event led to other instructions than those on record."""


class DecisionLog:
    """Writes decisions into a directory."""

    def __init__(self, directory: Path, longest_bytes: int = _LONGEST_BYTES) -> None:
        self._directory = directory
        self._longest = longest_bytes
        self._file: BinaryIO | None = None
        self._size = 0

    @property
    def is_long(self) -> bool:
        """Whether a new segment should be begun at the next pause."""
        return self._size >= min(_LONG_BYTES, self._longest)

    def begin(self, policy: str) -> None:
        """Begin a segment: the core is fresh. Whoever reads meanwhile finds the one before or this one."""
        self.close()
        current, former = self._directory / CURRENT, self._directory / FORMER
        fresh = self._directory / f".{CURRENT}"
        self._file = fresh.open("wb")
        self._size = 0
        self._write(msgspec.msgpack.encode(policy))
        self.flush()
        if current.exists():
            former.unlink(missing_ok=True)
            former.hardlink_to(current)
        fresh.replace(current)

    def add(self, decision: Decision) -> None:
        """Append a decision. It is on disk after `flush`."""
        if self._size < self._longest:
            self._write(_encoder.encode(decision))

    def flush(self) -> None:
        """Hand what was added to the system."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, record: bytes) -> None:
        if self._file is not None:
            self._size += self._file.write(_LENGTH.pack(len(record)) + record)


def read(path: Path) -> tuple[str, list[Decision]]:
    """Return a segment's policy and its decisions. A last one that was cut off by a death is left out.

    Raises
    ------
    ValueError
        If the file is no such log.
    """
    with path.open("rb") as file:
        records = _records(file)
        try:
            policy = msgspec.msgpack.decode(next(records), type=str)
            return policy, [_decoder.decode(record) for record in records]
        except (StopIteration, msgspec.DecodeError) as error:
            raise ValueError(f"{path} is not a log of decisions: {error}") from None


def replay(path: Path, make: Callable[[str], SharingPolicy]) -> int:
    """Make every decision of a segment again and return how many there are.

    Raises
    ------
    NotReproduced
        If one comes out differently.
    ValueError
        If the file is no such log.
    """
    name, decisions = read(path)
    scheduler = Scheduler(make(name), log_length=0)
    for number, decision in enumerate(decisions):
        again = scheduler.handle(decision.event, decision.now)
        if again != decision.instructions:
            raise NotReproduced(
                f"Decision {number} of {path}, on {decision.event} at {decision.now}: on record are "
                f"{decision.instructions}, now it is {again}. Was it logged by another version?"
            )
    return len(decisions)


def _records(file: BinaryIO) -> Iterator[bytes]:
    while len(head := file.read(_LENGTH.size)) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        record = file.read(length)
        if len(record) < length:
            return
        yield record
