"""What ops take on the device, by what ops of the same kind and about the same size took before."""

from __future__ import annotations

#: What an op is taken for of which nothing is known, seconds: a handful of them fill the above.
UNKNOWN_SECONDS = 0.1
#: An op that takes longer is sent at once, seconds: a message costs the less beside it, and a batch is never long.
_LONG_SECONDS = 1e-3
#: The least that an op is taken for, seconds.
_LEAST_SECONDS = 1e-7
#: How an op's time grows at most with the doubling of its size: by more than that of a product of matrices.
_GROWTH = 3.0
#: From how many sizes away, in doublings, an op's time is guessed.
_NEAR = 6
#: Sizes are below 2 to this power, bytes: those of views that repeat an array may pass all memory.
_MOST_DIGITS = 256
#: Costs that are remembered, of each size.
_MOST_COSTS = 4_096


class Cost:
    """What ops of one kind and size take, seconds of the device, as far as is known."""

    __slots__ = ("_is_timed", "_is_timed_warm", "is_known", "is_long", "seconds")

    def __init__(self, seconds: float, is_known: bool) -> None:
        self.seconds = seconds
        self.is_known = is_known
        self._is_timed = self._is_timed_warm = False
        self.is_long = not is_known or seconds >= _LONG_SECONDS

    def learn(self, seconds: float) -> None:
        """Take in that one such op took ``seconds``. The first was compiled too, so the second counts for both."""
        seconds = max(_LEAST_SECONDS, seconds)
        self.seconds = (self.seconds + 3 * seconds) / 4 if self._is_timed_warm else seconds
        self._is_timed, self._is_timed_warm = True, self._is_timed
        self.is_known = True
        self.is_long = self.seconds >= _LONG_SECONDS

    def note_done_within(self, seconds: float) -> None:
        """Take in that one such op was done so soon, whatever it took: it need not be sent at once if that is short."""
        if not self.is_known and seconds < _LONG_SECONDS:
            self.is_long = False


class Costs(dict[object, Cost]):
    """What ops take that deal with arrays of one size, by kind. The first guess is made here, by its ``sizes``."""

    def __init__(self, sizes: list[Costs]) -> None:
        self._sizes = sizes
        self._size = len(sizes)

    def __missing__(self, kind: object) -> Cost:
        if len(self) >= _MOST_COSTS:
            self.clear()
        made = self[kind] = self._guess(kind)
        return made

    def _guess(self, kind: object) -> Cost:
        for step in range(1, _NEAR + 1):
            larger = self._known(kind, self._size + step)
            if larger is not None:
                return Cost(min(larger.seconds, UNKNOWN_SECONDS), True)
            smaller = self._known(kind, self._size - step)
            if smaller is not None:
                return Cost(min(smaller.seconds * _GROWTH**step, UNKNOWN_SECONDS), True)
        return Cost(UNKNOWN_SECONDS, False)

    def _known(self, kind: object, size: int) -> Cost | None:
        found = self._sizes[size].get(kind) if 0 <= size < len(self._sizes) else None
        return found if found is not None and found.is_known else None


def no_costs() -> list[Costs]:
    """Return what is known at first, by the number of binary digits of the size in bytes."""
    sizes: list[Costs] = []
    for _ in range(_MOST_DIGITS + 1):
        sizes.append(Costs(sizes))
    return sizes
