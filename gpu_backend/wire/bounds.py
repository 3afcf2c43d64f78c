"""The least and the most that people may ask for or set, of each kind of amount. What crosses the wire has 64 bits."""

from __future__ import annotations

from typing import NamedTuple

from gpu_backend.wire.figures import MOST

__all__ = [
    "MOST_BYTES",
    "MOST_COUNT",
    "MOST_GPU_SECONDS",
    "MOST_INVITATION_HOURS",
    "MOST_SECONDS",
    "PRIORITY",
    "Bound",
    "invitation_hours",
]

#: Of memory: a node that said more would not be believed.
MOST_BYTES = MOST
#: Of sessions, or devices, for which nothing else sets a limit.
MOST_COUNT = 1_000_000
#: Of a wait, seconds: some thirty years, and what clocks and locks can wait for.
MOST_SECONDS = 1_000_000_000.0
#: Of GPU time that may be used, seconds.
MOST_GPU_SECONDS = float(MOST)

#: For which the token of an invitation, a secret on its way, may be good: a year.
MOST_INVITATION_HOURS = 8_760


class Bound(NamedTuple):
    """What a whole number of one kind may be."""

    what: str
    least: int
    most: int

    def __str__(self) -> str:
        return f"{self.least} to {self.most}"

    def checked(self, amount: int) -> int:
        """Return ``amount``.

        Raises
        ------
        ValueError
            If it is beyond; the message names both limits.
        """
        if self.least <= amount <= self.most:
            return amount
        given = str(amount) if abs(amount) < 10**40 else "what was given"
        raise ValueError(f"{given} is no {self.what}; there are {self}.")


PRIORITY = Bound("priority", -1_000_000, 1_000_000)


def invitation_hours(hours: float) -> float:
    """Return ``hours``.

    Raises
    ------
    ValueError
        If no invitation can be good for so long; the message names the limits.
    """
    if not 0 < hours <= MOST_INVITATION_HOURS:  # which no NaN is
        raise ValueError(
            f"an invitation is good for more than 0 hours and up to {MOST_INVITATION_HOURS:,}, not {hours:g}"
        )
    return hours
