"""What somebody may have meant who wrote a name that there is not."""

from __future__ import annotations

from collections.abc import Iterable

from gpu_backend.wire.errors import quoted

__all__ = ["no_setting"]


def no_setting(given: str, names: Iterable[str]) -> str:
    """Return that there is no setting ``given``, with the nearest of ``names`` if one is near; no full stop ends it."""
    import difflib  # only ever needed after a mistake, and a kernel's start must be quick

    near = difflib.get_close_matches(given, list(names), n=1, cutoff=0.6)
    return f"there is no setting {quoted(given)}{f' (did you mean {near[0]}?)' if near else ''}"
