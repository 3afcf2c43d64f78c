"""The gateway's answers for people: the pool and its use, as one user may see them."""

from __future__ import annotations

import msgspec


class DeviceView(msgspec.Struct, frozen=True, array_like=True):
    """A device of the pool, for people. ``busy`` is the part of its time that was used in the last seconds.

    ``wall`` says in words what keeps its users apart; it is empty if nothing does. ``unseen`` says why nothing but what
    executors report is known of who uses it; it is empty if that is seen from outside. ``space`` says in words how its
    sessions share it at a time, and for whom; empty where they take turns. ``ailment`` says why none can begin there.
    """

    node: str
    ordinal: int
    kind: str
    name: str
    total_bytes: int
    sessions: int
    capacity: int
    used_bytes: int = 0
    busy: float = 0.0
    policy: str = ""
    wall: str = ""
    unseen: str = ""
    space: str = ""
    ailment: str = ""


class SessionView(msgspec.Struct, frozen=True, array_like=True):
    """A session of the pool, for people. ``label`` is empty unless the asker owns the session.

    What follows ``mine`` is zero in what others see, operators excepted. ``busy`` is the part of its device's time
    that it had in the last seconds; ``is_over_quota`` says that it runs on what others leave; ``placed`` says why it is
    on its device. ``others`` are its further devices, which anybody may see.
    """

    session: str
    user: str
    label: str
    state: str
    epoch: int
    node: str
    device: int
    memory_limit_bytes: int
    opened_at: float
    mine: bool
    kind: str = ""
    used_bytes: int = 0
    peak_bytes: int = 0
    gpu_seconds: float = 0.0
    moved_bytes: int = 0
    busy: float = 0.0
    is_over_quota: bool = False
    placed: str = ""
    others: tuple[int, ...] = ()


class WaiterView(msgspec.Struct, frozen=True, array_like=True):
    """Somebody who waits for a place, for people. ``user`` and ``label`` are shown as in `SessionView`."""

    place: int
    user: str
    label: str
    waited_seconds: float
    mine: bool


class NodeView(msgspec.Struct, frozen=True, array_like=True):
    """A machine of the pool, for people.

    ``state`` is "up", "draining" (it takes no new sessions), "silent" (not heard for some seconds, so that none are
    placed there), "lost" (given up with its sessions until it is heard again), "down" (its operator took it down) or
    "never heard". ``silent_seconds`` is how long it was not heard, ``ahead_seconds`` how far its clock is ahead of the
    gateway's.
    """

    name: str
    state: str
    version: str
    ahead_seconds: float
    silent_seconds: float
    devices: int
    sessions: int


class Membership(msgspec.Struct, frozen=True, array_like=True, tag="membership"):
    """A machine's place in the pool, for itself: the pool, the gateway's ``version``, how the gateway sees it.

    ``engine`` is what keeps the pool's machines together, "local" or "ray".
    """

    request: int
    pool: str
    version: str
    node: NodeView
    engine: str = "local"


class PoolView(msgspec.Struct, frozen=True, array_like=True, tag="pool_view"):
    """The pool as one user may see it. ``user`` is the asker. Times are seconds since 1970.

    ``engine`` is what keeps its machines together, "local" or "ray". ``most_devices`` is how many devices one session
    may have, if nobody else has a place there; 0 where none can serve.
    """

    request: int
    pool: str
    version: str
    user: str
    started_at: float
    devices: tuple[DeviceView, ...]
    sessions: tuple[SessionView, ...]
    waiting: tuple[WaiterView, ...] = ()
    nodes: tuple[NodeView, ...] = ()
    engine: str = "local"
    most_devices: int = 0


class UsageRow(msgspec.Struct, frozen=True, array_like=True):
    """What was used under one heading. Fields that the heading does not tell apart are empty.

    ``user`` is empty in the sum of those whom the asker may not see; ``sessions`` counts those in the row. By class of
    op there is only GPU time.
    """

    user: str
    group: str
    session: str
    notebook: str
    day: str
    sessions: int
    gpu_seconds: float
    peak_bytes: int
    received_bytes: int
    sent_bytes: int
    op_class: str = ""


class QuotaView(msgspec.Struct, frozen=True, array_like=True):
    """A limit that holds for the asker: ``whose`` ("you" or "group NAME"), on ``what``, and how much is ``used``."""

    whose: str
    what: str
    used: float
    limit: float


class UsageView(msgspec.Struct, frozen=True, array_like=True, tag="usage_view"):
    """What was used, as one user may see it, largest first, and the limits that hold for that user."""

    request: int
    user: str
    by: str
    since: str
    rows: tuple[UsageRow, ...]
    quotas: tuple[QuotaView, ...]
