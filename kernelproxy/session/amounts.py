"""Amounts of memory and time as people write and read them."""

from __future__ import annotations

import re

from gpu_backend.wire.bounds import MOST_BYTES
from gpu_backend.wire.errors import quoted
from gpu_backend.wire.figures import fit_seconds

_UNITS: dict[str, int] = {"": 1, "B": 1, **{f"{p}B": int(1000**n) for n, p in enumerate("KMGT", 1)}}
#: Whoever says less without a unit means some other one than bytes.
_LEAST_BARE = 1024
_UNITS |= {f"{p}IB": int(1024**n) for n, p in enumerate("KMGT", 1)}


def bytes_from_words(text: str) -> int:
    """Return the number of bytes that ``text`` means: "1.5 GiB", "20GB", "4096".

    Raises
    ------
    ValueError
        If it means none, more than there can be or less than a byte, or if it is a small number of nobody says what;
        the message says what would.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2].upper() not in _UNITS:
        raise ValueError(f"{quoted(text)} is no amount of memory; write it like 4GiB, 500MB or 1073741824.")
    count = float(match[1]) * _UNITS[match[2].upper()]
    if count > MOST_BYTES:
        raise ValueError(f"{quoted(text)} is more memory than there can be; the most is {bytes_in_words(MOST_BYTES)}.")
    if 0 < count < 1:  # by rounding it would become 0, which is for no limit
        raise ValueError(f"{quoted(text)} is less than a byte; write it like 4GiB, or 0 for none.")
    if not match[2] and 0 < count < _LEAST_BARE:
        number = f"{float(match[1]):g}"
        raise ValueError(f"{quoted(text)} is {number} bytes; write {number}GiB, or {number}B if you mean it.")
    return round(count)


def bytes_in_words(count: int) -> str:
    """Return ``count`` bytes as people say it: 1536 is "1.5 KiB"."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def shortened(text: str, most: int) -> str:
    """Return ``text``, cut so that it has ``most`` characters at most."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def duration_in_words(seconds: float) -> str:
    """Return a measured time as people say it: 0.00123 is "1.23 ms"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return seconds_in_words(seconds) if size == 1.0 else f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def seconds_in_words(seconds: float) -> str:
    """Return a length of time as people say it: 90 is "1 min 30 s"."""
    seconds = fit_seconds(seconds)
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"
