"""What the pool adds to CuPy's ``OutOfMemoryError``: whose limit was met, and what the user can do."""

from __future__ import annotations

import re

from gpu_backend.devices.base import MemoryUse
from gpu_backend.wire.memory_rules import REST_OF_QUOTA

_FREE = "Free arrays that you do not need any more (`del x`, and whatever else refers to them)"
_MORE = (
    'open a session that asks for more (`memory = "8 GiB"` in client.toml, or GPU_WORKBENCH_MEMORY=8GiB), up to what '
    "you may have (`%gpu usage`)"
)
_ROOM = "end another session of yours, or ask the pool's operator for a larger quota"
_PARTS = "Compute it in parts, or with a smaller type"
#: CuPy's own words of what was asked for, and of what it held by then.
_ASKED = re.compile(r"allocating ([\d,]+) bytes")
_HELD = re.compile(r"so far: ([\d,]+) bytes")


def _number(of: re.Pattern[str], message: str) -> int:
    """Return the number of which ``of`` tells in ``message``; 0 if there is none."""
    found = of.search(message)
    return int(found[1].replace(",", "")) if found else 0


def memory_note(limit_bytes: int, rule: str, message: str, use: MemoryUse) -> str:
    """Return the sentences that go with an allocation that failed.

    Parameters
    ----------
    limit_bytes
        The session's own limit; 0 if it has none.
    rule
        Whose limit that is, in words of the gateway; may be empty.
    message
        What the error says itself: how many bytes were asked for.
    use
        The device's memory, as it was then.
    """
    asked, held = _number(_ASKED, message), _number(_HELD, message)
    if asked > use.total_bytes:
        return f"The whole device has {_amount(use.total_bytes)}: no session on it can have that. {_PARTS}."
    if limit_bytes and (held + asked > limit_bytes or not asked):
        why = f": {rule}" if rule else ""
        more = _ROOM if rule.startswith(REST_OF_QUOTA) else _MORE
        limit = f"This session may hold {_amount(limit_bytes)} of device memory{why}."
        if asked > limit_bytes:
            return f"{limit} What was asked for is more than that alone. {_PARTS}, or {more}."
        return f"{limit} {_FREE}, or {more}."
    whose = "is within its own limit" if limit_bytes else "has no limit of its own"
    return (
        f"This session {whose}. Of the device's {_amount(use.total_bytes)} it holds {_amount(use.used_bytes)} and "
        f"{_amount(use.free_bytes)} are free; other sessions may hold the rest. {_FREE}, or try again later."
    )


def _amount(count: int) -> str:
    return f"{count / 2**30:.3g} GiB" if count >= 1 << 30 else f"{count / 2**20:.3g} MiB"
