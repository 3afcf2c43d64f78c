"""What ``%gpu status`` tells: device, memory, what runs and is left to do, share, and the pool's places.

It is told from what is known here and at the gateway, and never waits behind the work that it tells of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gpu_backend.transport.listening import is_deserted
from gpu_backend.wire.control import AskPool, Ticket
from gpu_backend.wire.errors import PoolError, PoolRefusal, PoolUnreachable
from gpu_backend.wire.views import DeviceView, PoolView, SessionView
from kernelproxy import settings
from kernelproxy.client import current
from kernelproxy.session.amounts import seconds_in_words, shortened
from kernelproxy.session.gateway_client import request
from kernelproxy.stream import progress
from kernelproxy.stream.counters import Trip, Way
from kernelproxy.stream.session import Session
from kernelproxy.stream.work import Work
from workbench.display import Facts, Section, bytes_in_words

#: How long to wait for what the executor says, and for whether the gateway's machine says that nobody listens, seconds.
_EXECUTOR_SECONDS, _LISTENING_SECONDS = 0.25, 1.0


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
    #: How many machines it has.
    nodes: int = 1

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
            mine=sum(1 + len(session.others) for session in view.sessions if session.mine),
            waiting=len(view.waiting),
            nodes=max(1, len(view.nodes)),
        )


@dataclass(frozen=True, repr=False)
class GpuStatus(Facts):
    """A session at one moment. Empty fields are not known; ``problem`` says why.

    ``busy`` is the part of the device's time that all together used in the last seconds, ``share`` this session's part.
    With ``is_whole`` everything is shown, else what people use.
    """

    problem: str = ""
    session: str = ""
    epoch: int = 0
    sharing: str = ""
    is_connected: bool = False
    device: dict[str, Any] = field(default_factory=dict)
    busy: float = 0.0
    #: The machine that the session runs on.
    node: str = ""
    #: Which of the notebook's devices it has, and how many these are, where each has a session of its own.
    number: int = 0
    of_devices: int = 1
    #: Why the session is on this device and on no other, in words.
    placed: str = ""
    share: float = 0.0
    memory: dict[str, int] = field(default_factory=dict)
    #: What this notebook's larger arrays hold, as it counts them itself; the pool hears of it later.
    held_bytes: int = 0
    work: Work | None = None
    counters: dict[str, Any] = field(default_factory=dict)
    pool: PoolFacts | None = None
    is_whole: bool = False

    title = "Remote GPU"

    @classmethod
    def now(cls, is_whole: bool = False) -> GpuStatus:
        """Ask executor and gateway what they say at once. Opens no session; never raises because of the pool."""
        client = current()
        session, ticket = client.opened, client.handed()
        known = cls(is_whole=is_whole, number=client.number, of_devices=max(1, len(client.members)))
        if session is not None:
            known = known._with_session(session)
        elif isinstance(ticket, Ticket):
            known = replace(known, session=ticket.session, epoch=ticket.epoch)
        try:
            address = settings.load().gateway
            return known._with_pool(pool_at(address), address)
        except PoolError as error:
            return replace(known, problem=str(error))

    def _with_session(self, session: Session) -> GpuStatus:
        counters = session.counters.to_dict()  # before `memory`, whose own round trip is not the notebook's
        doing = progress.heard(session.pipeline, _EXECUTOR_SECONDS)
        is_idle = doing.is_heard and not doing.what and not doing.queued
        told = progress.memory(session.pipeline, _EXECUTOR_SECONDS, session.devices) if is_idle else []
        return replace(
            self,
            session=session.ticket.session,
            epoch=session.epoch,
            is_connected=session.is_connected,
            device=dict(session.device),
            memory=_together(told, session.device.get("kind")) if told else {},
            held_bytes=session.pipeline.memory.held_bytes,
            work=doing,
            counters=counters,
        )

    def _with_pool(self, view: PoolView, address: str) -> GpuStatus:
        known = replace(self, pool=PoolFacts.of(view, address))
        own = next((one for one in view.sessions if self.session and one.session == self.session), None)
        if own is None:
            return known
        numbers = (own.device, *own.others)
        devices = [one for one in view.devices if one.node == own.node and one.ordinal in numbers]
        known = replace(known, sharing=_sharing(own), share=own.busy, placed=own.placed, node=own.node)
        return known._with_devices(own, devices) if devices else known

    def _with_devices(self, own: SessionView, devices: list[DeviceView]) -> GpuStatus:
        first = devices[0]
        described: dict[str, Any] = {"kind": first.kind, "name": first.name, "total_bytes": first.total_bytes}
        if len(devices) > 1:
            described["devices"] = len(devices)
        used = max(own.used_bytes, self.held_bytes)
        limit, each = own.memory_limit_bytes, [(one.total_bytes - one.used_bytes, one.total_bytes) for one in devices]
        memory = _together([dict(zip(_AMOUNTS, (0, limit, *one), strict=True)) for one in each], first.kind)
        memory |= {"used_bytes": used, "free_bytes": max(0, memory["free_bytes"] - (used - own.used_bytes))}
        busy = min(1.0, sum(one.busy for one in devices) / len(devices))
        return replace(self, busy=busy, device=self.device or described, memory=self.memory or memory)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data."""
        fields = asdict(self)
        fields["work"] = self.work._asdict() if self.work is not None else None
        return fields

    # --- for people ---------------------------------------------------------------------------------------------------

    def sections(self) -> tuple[Section, ...]:
        """Return what is known: in ten lines with the title, or all of it."""
        if self.is_whole:
            found = (self._device(), self._memory(), self._now(), self._session(), self._so_far(), self._pool())
            return tuple(part for part in found if part)
        rows, used = self._in_short(), self._used_part("memory")
        return (Section("", tuple((name, value) for name, value in rows.items() if value), used),)

    def _in_short(self) -> dict[str, str]:
        pool = self.pool
        return {
            "device": f"{_devices_in_words(self.device)}, {self._busy_in_words()}" if self.device else _NO_SESSION,
            "number": self._number_in_words(),
            "memory": self._memory_in_words(),
            "now": self._now_in_words(),
            "to do": self._left_in_words(),
            "share": f"{self._share_in_words()} (class {self.sharing})" if self.sharing else "",
            "places": _places_in_words(pool) if pool is not None else "",
            "session": self._session_in_words(),
            "so far": self._so_far_in_words(),
            "more": "%gpu status --all",
        }

    @property
    def _is_away(self) -> bool:
        """Tell whether neither pool nor executor can be heard: what was under way is then no longer known to be."""
        return bool(self.problem) and not self.is_connected

    def _busy_in_words(self) -> str:
        """Return how busy the device is. The pool counts an op when it is done: of a long one we know more."""
        if self._is_away:
            return "load not known while the pool tells us nothing"
        is_ours = self.work is not None and bool(self.work.what)
        return "busy with your work" if is_ours and not self.busy else f"{self.busy:.0%} busy in the last seconds"

    def _number_in_words(self) -> str:
        if self.of_devices == 1:
            return ""
        return f"{self.number}, the current one of {self.of_devices} that have a session each"

    def _memory_in_words(self) -> str:
        if not self.memory:
            return ""
        used, limit, free, total = (bytes_in_words(self.memory[f"{name}_bytes"]) for name in _MEMORY)
        most = f"of your {limit}" if self.memory["limit_bytes"] else "used by your arrays"
        return f"{used} {most}; {free} of {total} free"

    def _used_part(self, row: str) -> dict[str, float]:
        most = (self.memory["limit_bytes"] or self.memory["total_bytes"]) if self.memory else 0
        return {row: self.memory["used_bytes"] / most} if most else {}

    def _now_in_words(self) -> str:
        doing = self.work
        if doing is None:
            return ""
        if self._is_away:
            return "the executor does not answer"
        if doing.what:
            since = f"{doing.what} for {seconds_in_words(round(doing.seconds, 1))}"
            return f"{since} ({shortened(doing.place, _MOST_PLACE)})" if doing.place else since
        return "nothing yet" if doing.queued else "nothing" if doing.is_heard else "the executor does not answer"

    def _left_in_words(self) -> str:
        if self.work is None:
            return ""
        count, unsent = self.work.queued, self.work.unsent
        if not count:
            return "nothing"
        left = f"{count:,} of your operations"
        if self._is_away:
            return f"{left} {'was' if count == 1 else 'were'} not done when the pool was last heard"
        still = "" if not unsent else ", and not sent" if unsent == count else f", {unsent:,} of them not sent yet"
        return f"{left} {'is' if count == 1 else 'are'} not done yet{still}"

    def _share_in_words(self) -> str:
        return f"{self.share:.0%} of the device's time was yours in the last seconds"

    def _session_in_words(self) -> str:
        if not self.session:
            return ""
        state = "connected" if self.is_connected else "taken, not used yet" if self.work is None else "not connected"
        place = f" in {self.pool.name}" if self.pool is not None else ""
        if self.node and self.pool is not None and self.pool.nodes > 1:
            place = f" on {self.node}{place}"
        return f"{self.session}{place}, {state}"

    def _device(self) -> Section | None:
        if not self.device:
            return None
        rows = [
            ("name", _devices_in_words(self.device)),
            *([("number", self._number_in_words())] if self.of_devices > 1 else []),
            ("kind", str(self.device["kind"])),
            ("use", self._busy_in_words()),
        ]
        if self.placed:
            rows.append(("chosen because", self.placed))
        if self.device.get("compute_capability"):
            rows.append(("compute capability", str(self.device["compute_capability"])))
        if self.device.get("library"):
            rows.append(("computed by", str(self.device["library"])))
        return Section("Device", tuple(rows))

    def _memory(self) -> Section | None:
        if not self.memory:
            return None
        used, limit, free, total = (bytes_in_words(self.memory[f"{name}_bytes"]) for name in _MEMORY)
        rows = (
            ("used by your arrays", used),
            ("your limit", limit if self.memory["limit_bytes"] else "none"),
            ("free on the device", f"{free} of {total}"),
        )
        return Section("Memory", rows, self._used_part(rows[0][0]))

    def _now(self) -> Section | None:
        if self.work is None:
            return None
        return Section("Now", (("runs", self._now_in_words()), ("to do", self._left_in_words())))

    def _session(self) -> Section | None:
        if not self.session:
            return None
        rows = (("id", self._session_in_words()), ("epoch", str(self.epoch)))
        shares = (("class", self.sharing), ("share", self._share_in_words())) if self.sharing else ()
        return Section("Session", (*rows, *shares))

    def _so_far_in_words(self) -> str:
        if not self.counters:
            return ""
        sent, received = (
            bytes_in_words(sum(self.counters[name].values())) for name in ("sent_bytes", "received_bytes")
        )
        ops, trips = _counted(self.counters["ops"], "operation"), _counted(self.counters["round_trips"], "answer")
        kept = self.counters["kept_bytes"]
        spared = f", {bytes_in_words(kept)} spared" if kept else ""
        return f"{ops}, {trips} waited for; {sent} of arrays sent{spared}, {received} received"

    def _so_far(self) -> Section | None:
        plain = ((_COUNTED.get(name, name), of) for name, of in self.counters.items() if not isinstance(of, dict))
        parts = ((_PARTS[name].format(_COUNTED.get(part, part)), count)
                 for name in _PARTS for part, count in self.counters.get(name, {}).items())  # fmt: skip
        rows = tuple((name, f"{count:,}") for name, count in (*plain, *parts))
        return Section("So far", rows) if rows else None

    def _pool(self) -> Section | None:
        if self.pool is None:
            return None
        return Section(
            "Pool",
            (
                ("name", f"{self.pool.name} at {self.pool.address}"),
                ("you are", self.pool.user),
                ("places", _places_in_words(self.pool)),
                ("devices", str(self.pool.devices)),
                ("version", self.pool.version),
            ),
        )


#: Longer descriptions of a place in the user's code are cut.
_MOST_PLACE = 60
_NO_SESSION = "none yet: the first array takes a session, or %gpu connect does"
_MEMORY = ("used", "limit", "free", "total")
_AMOUNTS = tuple(f"{name}_bytes" for name in _MEMORY)
_COUNTED = {
    "ops": "operations",
    "batches": "messages that carried them",
    "round_trips": "answers waited for (round trips)",
    "answered_here": "reads answered by what the notebook knew",
    "kept_bytes": "bytes not sent again, as the executor kept them",
    "direct_bytes": "bytes sent to executors of other devices",
    **{why.name.lower(): str(why) for why in Trip},
    **{way.name.lower(): str(way) for way in Way},
}
#: What is counted in parts, and how a part is called.
_PARTS = {"trips": "trips: {}", "sent_bytes": "bytes sent {}", "received_bytes": "bytes received {}"}


def _together(memories: list[dict[str, int]], kind: object) -> dict[str, int]:
    """Return what several devices have together; CPU devices have the memory of one machine."""
    whole = {name: sum(one[name] for one in memories) for name in memories[0]}
    if kind == "cpu":
        whole["total_bytes"] = memories[0]["total_bytes"]
        whole["free_bytes"] = min(one["free_bytes"] for one in memories)
    return whole


def pool_at(address: str) -> PoolView:
    """Ask the gateway at ``address`` how the pool is; of one that is not there it is known at once.

    Raises
    ------
    PoolError
        If it cannot be asked.
    """
    if is_deserted(address, _LISTENING_SECONDS):
        raise PoolUnreachable(f"The pool is down: nobody listens at {address}. `workbench doctor` says more.")
    view = request(settings.load(), AskPool(0))
    if not isinstance(view, PoolView):
        raise PoolRefusal("The pool did not answer with what it is. Is its version the same as ours?")
    return view


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _devices_in_words(device: Mapping[str, Any]) -> str:
    count = device.get("devices", 1)
    return str(device["name"]) if count == 1 else f"{count} devices, each {device['name']}"


def _places_in_words(pool: PoolFacts) -> str:
    who = f"{pool.waiting:,} more {'waits' if pool.waiting == 1 else 'wait'}" if pool.waiting else "nobody waits"
    return f"{pool.sessions} of {pool.capacity} taken, {pool.mine} by you; {who} for one"


def _sharing(own: SessionView) -> str:
    """Return how the session shares its device, in words."""
    return f"{own.kind}: your GPU time is used up, so it runs on what others leave" if own.is_over_quota else own.kind
