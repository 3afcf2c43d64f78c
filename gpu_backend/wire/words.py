"""Words of others, made fit to be shown: nothing stays in them that a terminal obeys or a log takes for its own."""

from __future__ import annotations

from unicodedata import category

__all__ = ["MOST_SHOWN", "printable", "printable_lines"]

#: Most characters that are shown of what somebody says on one line.
MOST_SHOWN = 300
#: And on several: the log of a compiler has some thousands.
_MOST_IN_LINES = 100_000
#: What keeps letters apart, or joins them, in several scripts.
_JOINING = "\u200c\u200d"


def printable(text: str, most: int = MOST_SHOWN) -> str:
    """Return what can be shown of ``text`` on one line, of at most ``most`` characters."""
    if len(text) > most:  # first: there may be megabytes
        text = f"{text[: most - 1]}…"
    return text if text.isprintable() else "".join(c if _can_be_shown(c) else " " for c in text).strip()


def printable_lines(text: str) -> str:
    """Return what can be shown of ``text``, which may have several lines: these stay, as do tabs."""
    if len(text) > _MOST_IN_LINES:
        text = f"{text[: _MOST_IN_LINES - 1]}…"
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or _can_be_shown(c) else " " for c in text.replace("\r\n", "\n"))


def _can_be_shown(character: str) -> bool:
    """Tell whether a terminal shows a character: of spaces, and what joins letters, Python says that it is not so."""
    return character.isprintable() or character in _JOINING or category(character) == "Zs"
