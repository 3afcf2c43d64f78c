"""What the pool adds to CuPy's ``OutOfMemoryError``: whose limit was met, and what the user can do."""

from __future__ import annotations

_FREE = "Free arrays that you do not need any more (`del x`, and whatever else refers to them)"


def memory_note(limit_bytes: int, rule: str) -> str:
    """Return the sentences that go with an allocation that failed.

    Parameters
    ----------
    limit_bytes
        The session's own limit; 0 if it has none.
    rule
        Whose limit that is, in words of the gateway; may be empty.
    """
    if not limit_bytes:
        return (
            "This session has no limit of its own: the memory of the device is full, and other sessions may hold "
            f"a part of it. {_FREE}, or try again later."
        )
    why = f": {rule}" if rule else ""
    return (
        f"This session may hold {limit_bytes / 2**30:.3g} GiB of device memory{why}. {_FREE}, or open a session that "
        'asks for more: `memory = "8 GiB"` in client.toml, or GPU_WORKBENCH_MEMORY=8GiB.'
    )
