"""How ops were carried out, counted: past CuPy, or CuPy's way and why."""

from __future__ import annotations

from collections import Counter

__all__ = ["ANSWERS", "Tally"]

#: Why an op that was not tried otherwise goes CuPy's way.
ANSWERS = "its answer is asked for, or it is for another stream"
#: Names and reasons that are told apart: a hostile notebook could make up names.
_MOST, _LONGEST_NAME = 2048, 200


class Tally:
    """Counts ops that went CuPy's way, by name and reason."""

    def __init__(self) -> None:
        self.by_reason: Counter[tuple[str, str]] = Counter()
        #: Why the op that is looked at would go CuPy's way.
        self.why = ANSWERS
        #: Whether ops are counted; those that nobody asked for are not.
        self.counts = True

    def note(self, name: str) -> None:
        """Note that an op went CuPy's way, for the reason that was noted last."""
        key = name[:_LONGEST_NAME], self.why
        if self.counts and (key in self.by_reason or len(self.by_reason) < _MOST):
            self.by_reason[key] += 1
        self.why = ANSWERS

    def told(self, others: dict[str, int]) -> tuple[tuple[str, str, int], ...]:
        """Return counts as name, reason and number, the largest first; ``others`` are of those that went past CuPy."""
        past = [("", tier, count) for tier, count in others.items() if count]
        return (*past, *((name, why, count) for (name, why), count in self.by_reason.most_common()))
