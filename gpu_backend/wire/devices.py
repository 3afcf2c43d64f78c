"""What a node says of its devices."""

from __future__ import annotations

import msgspec


class DeviceReport(msgspec.Struct, frozen=True, array_like=True):
    """A device of a node. ``uuid`` stays the same over restarts of the node; ``warm`` counts executors kept ready.

    ``wall`` says in words what keeps its users apart; it is empty if nothing does. ``unseen`` says why nothing but what
    executors report is known of who uses it; it is empty if that is seen from outside. Devices of one ``island`` reach
    each other's memory directly. One that ``is_part`` of a GPU (MIG) goes with no other into a session; one that
    ``is_withheld`` takes no new ones.

    One that serves a ``group`` takes nobody else, and goes with no other into a session: it is shared by MPS, which
    ``space`` says in words, and sessions on it end with each other. ``ailment`` says why none can begin there now.
    """

    ordinal: int
    kind: str
    name: str
    uuid: str
    total_bytes: int
    warm: int
    policy: str = ""
    wall: str = ""
    unseen: str = ""
    island: str = ""
    is_part: bool = False
    is_withheld: bool = False
    group: str = ""
    space: str = ""
    ailment: str = ""
