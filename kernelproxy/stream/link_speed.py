"""Whether contents take so much longer to send than to hash that it pays to hash all, for those that come again."""

from __future__ import annotations

from math import inf
from time import perf_counter

from gpu_backend.opstream.contents import digest_of
from gpu_backend.wire.codec import Frame

#: From so many times as long on: it pays if a third of what is hashed comes again.
WORTH = 3.0


class LinkSpeed:
    """What was seen of a link and of this processor. A link of which nothing was seen is taken for a slow one.

    Attributes
    ----------
    hashing_seconds
        How long was hashed in all.
    """

    def __init__(self) -> None:
        self.hashing_seconds = 0.0
        # Of a byte: to hash it as fast as was ever seen, as others may have had the processor; and to send it.
        self._hashing = inf
        self._sending: float | None = None

    def name(self, content: Frame) -> tuple[bytes, bytes]:
        """Return a copy of ``content`` that nobody else can change, and its digest."""
        begun = perf_counter()
        own = bytes(content)
        digest = digest_of(own)
        seconds = perf_counter() - begun
        self.hashing_seconds += seconds
        self._hashing = min(self._hashing, seconds / len(own))
        return own, digest

    def note_sent(self, size: int, seconds: float) -> None:
        """Note that ``size`` bytes were sent and have arrived, which took ``seconds`` beside the hashing."""
        seen, before = seconds / size, self._sending
        self._sending = seen if before is None else (before + seen) / 2

    @property
    def is_slow(self) -> bool:
        """True if it pays to hash."""
        return self._sending is None or self._hashing == inf or self._sending > WORTH * self._hashing
