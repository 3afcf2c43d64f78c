"""Whether a turn is kept while its notebook, which has got its answer, is about to ask for more. Pure.

To hand a device to another process costs it more than most programs take from an answer to the next op. So whoever has
worked for long, and whose notebook was quick of late, keeps its turn for a moment, as disks were kept for readers that
were about to go on (Iyer and Druschel, "Anticipatory scheduling", SOSP 2001). At most a tenth of its time goes by so.
"""

from __future__ import annotations

from typing import Final

__all__ = ["KEEP_SECONDS", "Thinking"]

#: For how long a turn is kept, seconds; and for how long the device must have worked since the answer before.
KEEP_SECONDS: Final = 0.5e-3
_WORK_SECONDS: Final = 5e-3
#: Longer than this is as good as for ever, seconds: a pause is soon forgotten.
_MOST_SECONDS: Final = 1e-3


class Thinking:
    """How long a notebook takes from an answer to the next op, while others want the device."""

    def __init__(self) -> None:
        self._seconds = _MOST_SECONDS  # of late
        self._used_before = 0.0  # GPU time when it last asked for more

    def note_asked(self, waited: float, used_seconds: float) -> None:
        """Take in that the notebook asked for more: how long after its answer, and what GPU time was used by then."""
        self._seconds = (self._seconds + min(waited, _MOST_SECONDS)) / 2
        self._used_before = used_seconds

    def keeps(self, used_seconds: float) -> bool:
        """Tell whether the next op is worth waiting for, behind an answer by which so much GPU time is used."""
        return self._seconds <= KEEP_SECONDS and used_seconds - self._used_before >= _WORK_SECONDS
