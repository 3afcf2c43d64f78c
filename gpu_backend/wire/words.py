"""Words of others, made fit to be shown: nothing stays in them that a terminal obeys or a log takes for its own."""

from __future__ import annotations

__all__ = ["MOST_SHOWN", "printable", "printable_lines"]

#: Most characters that are shown of what somebody says on one line.
MOST_SHOWN = 300
#: And on several: the log of a compiler has some thousands.
_MOST_IN_LINES = 100_000


def printable(text: str, most: int = MOST_SHOWN) -> str:
    """Return what can be shown of ``text`` on one line, of at most ``most`` characters."""
    if len(text) > most:  # first: there may be megabytes
        text = f"{text[: most - 1]}…"
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text).strip()


def printable_lines(text: str) -> str:
    """Return what can be shown of ``text``, which may have several lines: these stay, as do tabs."""
    if len(text) > _MOST_IN_LINES:
        text = f"{text[: _MOST_IN_LINES - 1]}…"
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else " " for c in text.replace("\r\n", "\n"))
