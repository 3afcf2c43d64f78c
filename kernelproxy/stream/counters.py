"""What a session has cost so far, for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Trip(StrEnum):
    """Why somebody waited for an answer."""

    SCALAR = "one number was read"
    ARRAY = "an array was read"
    SHAPE = "a shape depended on values"
    SYNCHRONIZE = "the device was waited for"
    COMPILE = "a kernel was compiled, or run for the first time"
    OBJECT = "an object of the device was asked"
    LOOK = "memory or work was looked at"
    CALL = "the result of a call was not known beforehand"


class Way(StrEnum):
    """How contents of arrays travel."""

    INLINE = "within messages"
    HOST = "beside messages, on one host"
    NETWORK = "beside messages, to another host"


class _Trips(dict[str, Trip]):
    """Why the answer of an op is waited for, by the op's name."""

    def __missing__(self, name: str) -> Trip:
        why = self[name] = Trip.OBJECT if name.startswith(".") else Trip.CALL
        return why


_TRIPS = _Trips({
    ".same": Trip.ARRAY,
    ".layout": Trip.SHAPE,
    ".synchronize": Trip.SYNCHRONIZE,
    ".nothing": Trip.SYNCHRONIZE,
    ".launch": Trip.COMPILE,
    ".call": Trip.COMPILE,
    ".compile": Trip.COMPILE,
    ".python_kernel": Trip.COMPILE,
    ".memory": Trip.LOOK,
    ".ways": Trip.LOOK,
})  # fmt: skip
#: By a name of its own: to look a member up in its class takes as long as counting it.
_ARRAY = Trip.ARRAY


@dataclass
class Counters:
    """Counted since the session was opened in this process.

    Attributes
    ----------
    ops, batches
        Ops sent, and messages that carried them.
    round_trips
        How often an answer had to be waited for. The pieces of a large array are one.
    answered_here
        Reads that the notebook answered by what it knows.
    kept_bytes
        Contents of arrays that were uploaded and not sent: the executor had kept them.
    direct_bytes
        Contents of arrays that went from this session's executor to that of another of the notebook's devices.
    trips
        Round trips by why they were taken.
    sent_bytes, received_bytes
        Contents of arrays, by how they travelled.
    """

    ops: int = 0
    batches: int = 0
    round_trips: int = 0
    answered_here: int = 0
    kept_bytes: int = 0
    direct_bytes: int = 0
    trips: dict[Trip, int] = field(default_factory=dict)
    sent_bytes: dict[Way, int] = field(default_factory=dict)
    received_bytes: dict[Way, int] = field(default_factory=dict)
    _expected: Trip | None = None

    def expect(self, why: Trip) -> None:
        """Note why the next read takes its trip."""
        self._expected = why

    def note_trip(self, name: str) -> None:
        """Note that the answer of an op ``name`` is waited for."""
        self.round_trips += 1
        why = _TRIPS[name]
        if why is _ARRAY and self._expected is not None:
            why, self._expected = self._expected, None
        self.trips[why] = self.trips.get(why, 0) + 1

    def note_sent(self, way: Way, count: int) -> None:
        """Note that so many bytes of arrays are sent."""
        self.sent_bytes[way] = self.sent_bytes.get(way, 0) + count

    def note_received(self, way: Way, count: int) -> None:
        """Note that so many bytes of arrays have come."""
        self.received_bytes[way] = self.received_bytes.get(way, 0) + count

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        fields = asdict(self)
        del fields["_expected"]
        for name in ("trips", "sent_bytes", "received_bytes"):
            fields[name] = {of.name.lower(): count for of, count in getattr(self, name).items()}
        return fields
