"""What ``%gpu status`` and ``workbench doctor`` tell of a session: device, memory, cost so far, pool."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gpu_backend.wire.errors import PoolError
from gpu_backend.wire.views import PoolView
from kernelproxy import settings
from kernelproxy.session import current_session
from workbench.display import Facts, Section, bytes_in_words


@dataclass(frozen=True, repr=False)
class PoolFacts:
    """The pool as one user sees it."""

    name: str
    address: str
    user: str
    version: str
    devices: int
    sessions: int
    capacity: int
    mine: int
    waiting: int = 0

    @classmethod
    def of(cls, view: PoolView, address: str) -> PoolFacts:
        """Return the facts of ``view``, which came from ``address``."""
        return cls(
            name=view.pool,
            address=address,
            user=view.user,
            version=view.version,
            devices=len(view.devices),
            sessions=sum(device.sessions for device in view.devices),
            capacity=sum(device.capacity for device in view.devices),
            mine=sum(session.mine for session in view.sessions),
            waiting=len(view.waiting),
        )


@dataclass(frozen=True, repr=False)
class GpuStatus(Facts):
    """A session at one moment. Empty fields are not known; ``problem`` says why."""

    problem: str = ""
    session: str = ""
    epoch: int = 0
    sharing: str = ""
    is_connected: bool = False
    device: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    pool: PoolFacts | None = None

    title = "Remote GPU"

    @classmethod
    def now(cls) -> GpuStatus:
        """Ask session and pool. Opens the session if there is none yet; never raises because of the pool."""
        try:
            session = current_session()
        except PoolError as error:
            return cls(problem=str(error))
        known = cls(
            session=session.ticket.session,
            epoch=session.epoch,
            device=dict(session.device),
            counters=dict(vars(session.counters)),  # before `memory`, whose own round trip is not the notebook's
        )
        try:
            memory = session.memory()
        except PoolError as error:
            return replace(known, problem=str(error))
        known = replace(known, is_connected=session.is_connected, memory=memory)
        try:
            view = session.pool()
            pool = PoolFacts.of(view, settings.load().gateway)
        except PoolError as error:
            return replace(known, problem=str(error))
        return replace(known, sharing=_sharing(view, known.session), pool=pool)

    def sections(self) -> tuple[Section, ...]:
        """Return what is known, in the order of interest."""
        return tuple(
            part for part in (self._device(), self._memory(), self._session(), self._so_far(), self._pool()) if part
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data."""
        return asdict(self)

    def _device(self) -> Section | None:
        if not self.device:
            return None
        rows = [("name", str(self.device["name"])), ("kind", str(self.device["kind"]))]
        if self.device.get("compute_capability"):
            rows.append(("compute capability", str(self.device["compute_capability"])))
        return Section("Device", (*rows, ("computed by", str(self.device["library"]))))

    def _memory(self) -> Section | None:
        if not self.memory:
            return None
        used, limit = self.memory["used_bytes"], self.memory["limit_bytes"]
        total, free = self.memory["total_bytes"], self.memory["free_bytes"]
        most = limit or total
        rows = (
            ("used by your arrays", bytes_in_words(used)),
            ("your limit", bytes_in_words(limit) if limit else "none"),
            ("free on the device", f"{bytes_in_words(free)} of {bytes_in_words(total)}"),
        )
        return Section("Memory", rows, {"used by your arrays": used / most} if most else {})

    def _session(self) -> Section | None:
        if not self.session:
            return None
        state = "connected" if self.is_connected else "not connected"
        rows = (("id", self.session), ("epoch", str(self.epoch)), ("state", state))
        return Section("Session", (*rows, ("class", self.sharing)) if self.sharing else rows)

    def _so_far(self) -> Section | None:
        rows = tuple((_COUNTED.get(name, name), f"{count:,}") for name, count in self.counters.items())
        return Section("So far", rows) if rows else None

    def _pool(self) -> Section | None:
        if self.pool is None:
            return None
        wait = f"; {self.pool.waiting} wait for a place" if self.pool.waiting else ""
        return Section(
            "Pool",
            (
                ("name", f"{self.pool.name} at {self.pool.address}"),
                ("you are", self.pool.user),
                ("sessions", f"{self.pool.sessions} of {self.pool.capacity}, {self.pool.mine} of them yours{wait}"),
                ("devices", str(self.pool.devices)),
            ),
        )


_COUNTED = {
    "ops": "operations",
    "batches": "messages that carried them",
    "round_trips": "round trips",
}


def _sharing(view: PoolView, session: str) -> str:
    """Return how the session shares its device, in words."""
    own = next((one for one in view.sessions if one.session == session), None)
    if own is None:
        return ""
    return f"{own.kind}: your GPU time is used up, so it runs on what others leave" if own.is_over_quota else own.kind
