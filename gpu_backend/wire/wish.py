"""What a session asks for of its device, and where it goes: said to the gateway, which keeps it with the session."""

from __future__ import annotations

import msgspec


class Wish(msgspec.Struct, frozen=True, array_like=True):
    """How a session wants to share its device. What its user may not have is refused by name.

    ``kind`` is "production", "interactive", "best-effort" or "" for the default. ``request`` is a guaranteed part of
    the device's time in 0..1, ``limit`` the largest part. A higher ``priority`` goes first, where a policy looks at it.
    Labels are the user's own words: a session goes beside those of its ``affinity``, apart from those of its
    ``anti_affinity``, and with ``exclusion`` shares its device with nobody but those of that label. ``is_whole`` asks
    for a device of its own. ``devices`` of one node are had together or not at all, and all else holds on each.
    So are as many ``sessions`` with one device each, on whichever nodes, which keep apart by their ``anti_affinity``.
    """

    kind: str = ""
    request: float = 0.0
    limit: float = 1.0
    priority: int = 0
    affinity: str = ""
    anti_affinity: str = ""
    exclusion: str = ""
    is_whole: bool = False
    devices: int = 1
    sessions: int = 1
