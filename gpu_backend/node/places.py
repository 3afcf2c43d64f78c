"""An executor's places on its devices: as what each device's arbiter knows it, and what is counted of it there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gpu_backend.engine.detached import ProcessId
from gpu_backend.gate import tally, verdicts
from gpu_backend.gate.roster import Member, name_of
from gpu_backend.gate.terms import SessionTerms
from gpu_backend.metering.meters import Meter
from gpu_backend.node.usage import UsageOf
from gpu_backend.wire.control import Booked, Usage

__all__ = ["Place", "Places"]


class Place(NamedTuple):
    """A device of the node, and who counts what is used of it."""

    ordinal: int
    #: Directory of its arbiter.
    arbiter: Path
    #: Sees who uses it, where there is no arbiter.
    meter: Meter | None = None


class Places:
    """Where an executor is, the first place first.

    Parameters
    ----------
    process
        The executor.
    places
        Its devices.
    reports
        Numbers of its descriptors of its report pages, one for each of them; none if it is not known.
    """

    def __init__(self, process: ProcessId, places: Sequence[Place], reports: Sequence[int]) -> None:
        self.ordinals = tuple(place.ordinal for place in places)
        self._process = process
        self._places = tuple(places)
        self._reports = (*reports, *[-1] * (len(places) - len(reports)))
        self._usages = [
            UsageOf(process, report, place.arbiter, place.meter)
            for place, report in zip(places, self._reports, strict=True)
        ]
        self._names = [name_of(process.pid, process.start_time, report) for report in self._reports]

    def usage(self, said: Usage) -> Usage:
        """Return what it used on all of them, within bounds; ``said`` is its own last report."""
        if len(self._usages) == 1:
            return self._usages[0].read(said)
        # Of its time it has said only the sum: of each device its page tells, which survives it.
        parts = [one.read(Usage(0.0, said.peak_bytes, said.received_bytes, said.sent_bytes)) for one in self._usages]
        by_class = tuple(map(sum, zip(*[part.by_class for part in parts], strict=True)))
        first = parts[0]
        peak_bytes = max(part.peak_bytes for part in parts)
        return Usage(
            sum(part.gpu_seconds for part in parts), peak_bytes, first.received_bytes, first.sent_bytes, by_class
        )

    def booked(self) -> list[Booked]:
        """Return what each device's arbiter has on its books of it."""
        return [one.booked() for one in self._usages]

    def held_bytes(self) -> list[int]:
        """Return what it holds on each device, as it says itself."""
        return [one.held_bytes() for one in self._usages]

    def member(self, ordinal: int, terms: SessionTerms, control: str) -> Member:
        """Return its line in the roster of the arbiter of the device ``ordinal``, which is one of its own."""
        number = self.ordinals.index(ordinal)
        process = self._process
        return Member(terms, process.pid, process.start_time, control, self._reports[number], number)

    def verdict(self) -> str:
        """Return why an arbiter has ended it; empty if none has."""
        pairs = zip(self._places, self._names, strict=True)
        return next((said for place, name in pairs if (said := verdicts.noted(place.arbiter, name))), "")

    def forget(self) -> None:
        """Remove what its arbiters kept of it, once it has ended and all is told."""
        for usage, place, name in zip(self._usages, self._places, self._names, strict=True):
            usage.close()
            tally.remove(place.arbiter, name)
            verdicts.remove(place.arbiter, name)
