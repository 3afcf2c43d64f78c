"""``%gpu ways``: how this session's operations were carried out, and why not faster."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from workbench.display import Facts, Section

__all__ = ["WaysFacts"]

#: Rows of operations that are shown; as JSON there are all.
_SHOWN = 12


@dataclass(frozen=True, repr=False)
class WaysFacts(Facts):
    """How operations were carried out; each way is a name, how or why, and how many."""

    ways: list[tuple[str, str, int]]

    title = "Ways of operations"

    def sections(self) -> tuple[Section, ...]:
        """Return what to show, in order."""
        if not self.ways:
            return (Section("", (("All operations", "carried out one by one: this device has no other way"),)),)
        quick = tuple((f"{how[:1].upper()}{how[1:]}", f"{count:,}") for name, how, count in self.ways if not name)
        slow = [one for one in self.ways if one[0]]
        rows = tuple((name, f"{count:,}: {why}") for name, why, count in slow[:_SHOWN])
        return tuple(
            one for one in (Section("Past CuPy", quick), Section(f"By CuPy: {self._by_cupy():,}", rows)) if one.rows
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the same for programs."""
        reasons: Counter[str] = Counter()
        for name, why, count in self.ways:
            if name:
                reasons[why] += count
        return {
            "past_cupy": {how: count for name, how, count in self.ways if not name},
            "by_cupy": [{"name": name, "why": why, "count": count} for name, why, count in self.ways if name],
            "reasons": dict(reasons.most_common()),
        }

    def _by_cupy(self) -> int:
        return sum(count for name, _, count in self.ways if name)
