"""What came out of the runs: a row for each program, their mean ratio, and the worst. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, isclose, log
from typing import Any

__all__ = ["Row", "geometric_mean", "row", "summary"]

#: Sums of what a program computed may differ by so much: reductions of large arrays are ordered by the device.
_TOLERANCE = 1e-6
#: A program that waits no more often than so is recorded on its own, while the device works.
_FEW_TRIPS = 4
#: How many ways are kept of a program.
_WAYS = 8


@dataclass(frozen=True)
class Row:
    """A program on both sides: seconds of the first call and of a warm one. Natively None where there is no GPU."""

    name: str
    kind: str
    native_first: float | None
    native: float | None
    first: float
    warm: float
    #: Seconds of a warm call until the program was through, and results were asked for.
    recorded: float
    #: "same bits", "close" or "WRONG"; empty where there is nothing to compare with.
    verdict: str
    costs: dict[str, int] = field(default_factory=dict)
    #: How most of its ops were carried out, or for which reason by CuPy itself.
    ways: dict[str, int] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """Remote by native, warm."""
        return self.warm / self.native if self.native else None

    @property
    def recording_ratio(self) -> float | None:
        """The notebook's own part by native: no device and no way to it could make the program faster than this.

        None of a program that waits often: the device's time is in its own.
        """
        waits_often = self.costs.get("round_trips", 0) > _FEW_TRIPS
        return None if waits_often or not self.native else min(self.recorded, self.warm) / self.native

    @property
    def first_ratio(self) -> float | None:
        """Remote by native, the first call."""
        return self.first / self.native_first if self.native_first else None

    @property
    def why(self) -> str:
        """What it waited for: the first thing to look at where the ratio is high."""
        ops, trips = self.costs.get("ops", 0), self.costs.get("round_trips", 0)
        if trips > 3 and trips > ops / 20:
            return f"{trips} trips"
        if ops < 40:
            return f"latency: {ops} ops in {1e3 * self.warm:.2f} ms"
        return f"{1e6 * self.warm / ops:.1f} us an op"


def row(name: str, kind: str, native: Sequence[dict[str, Any]], remote: Sequence[dict[str, Any]]) -> Row:
    """Return a program's row: the first run of each side, and the best of the others."""
    return Row(
        name,
        kind,
        native[0]["seconds"] if native else None,
        min(run["seconds"] for run in native[1:]) if native else None,
        remote[0]["seconds"],
        min(run["seconds"] for run in remote[1:]),
        min(run["recorded"] for run in remote[1:]),
        _verdict(native[-1], remote[-1]) if native else "",
        remote[-1]["costs"],
        _most(remote[-1].get("ways", {})),
    )


def _most(ways: dict[str, int]) -> dict[str, int]:
    return dict(sorted(((way, count) for way, count in ways.items() if count), key=lambda one: -one[1])[:_WAYS])


def _verdict(native: dict[str, Any], remote: dict[str, Any]) -> str:
    if native["bits"] == remote["bits"]:
        return "same bits"
    pairs = list(zip(native["norms"], remote["norms"], strict=False))
    are_close = len(native["norms"]) == len(remote["norms"]) and all(
        isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) for one, other in pairs
    )
    return "close" if are_close else "WRONG"


def geometric_mean(ratios: Sequence[float]) -> float | None:
    """Return the geometric mean; None of nothing."""
    return exp(sum(map(log, ratios)) / len(ratios)) if ratios else None


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the figures that a run is judged by."""
    warm = [each.ratio for each in rows if each.ratio is not None]
    recording = [each.recording_ratio for each in rows if each.recording_ratio is not None]
    first = [each.first_ratio for each in rows if each.first_ratio is not None]
    worst = sorted((each for each in rows if each.ratio is not None), key=lambda each: -(each.ratio or 0))[:10]
    kinds = sorted({each.kind for each in rows})
    return {
        "programs": len(rows),
        "warm": geometric_mean(warm),
        "first": geometric_mean(first),
        "recording": geometric_mean(recording),
        "recorded_programs": len(recording),
        "above_1.1": sum(ratio > 1.1 for ratio in warm),
        "wrong": [each.name for each in rows if each.verdict == "WRONG"],
        "by_kind": {
            kind: geometric_mean([each.ratio for each in rows if each.kind == kind and each.ratio is not None])
            for kind in kinds
        },
        "worst": [{"name": each.name, "ratio": each.ratio, "why": each.why} for each in worst],
        "round_trips": sum(each.costs.get("round_trips", 0) for each in rows),
        "ops": sum(each.costs.get("ops", 0) for each in rows),
    }
