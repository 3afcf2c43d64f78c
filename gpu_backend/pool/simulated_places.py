"""Who comes, waits, gets a place and leaves, in virtual time: by the queue and the placement of the gateway itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from gpu_backend.arbiter.simulation.trace import Script
from gpu_backend.gateway.loads import DeviceLoad, Mix
from gpu_backend.gateway.placement import with_sessions
from gpu_backend.gateway.queue import Waiter, allot, in_order
from gpu_backend.lifecycle.states import Session, SessionState
from gpu_backend.wire.wish import Wish

__all__ = ["NODE", "Places"]

#: All devices are one node's: whose they are decides nothing here.
NODE = "sim"
DEVICE_BYTES = 80 << 30
#: So many devices of a host are linked.
_LINKED = 8


class Places:
    """The devices, who is on them, and who waits for a place. Scripts are known by their numbers."""

    def __init__(self, scripts: Sequence[Script], devices: int, places: int, rules: Sequence[str], seed: int) -> None:
        """Have ``devices`` with so many ``places`` each, all free, which are given by ``rules``."""
        self._scripts = scripts
        self._rules = rules
        self._bare = [
            DeviceLoad(NODE, n, "cuda", "a GPU", DEVICE_BYTES, places, island=f"host {n // _LINKED}")
            for n in range(devices)
        ]
        self._loads = list(self._bare)
        self._there: list[dict[int, Session]] = [{} for _ in range(devices)]
        self._waiting: dict[int, Waiter] = {}
        self._held: Counter[str] = Counter()
        random = Random(seed)
        self._mixes = {script.terms.session: _mix(script, random.random()) for script in scripts}

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def on(self, device: int) -> list[int]:
        """Return who is on a device."""
        return list(self._there[device])

    def come(self, number: int) -> None:
        """Somebody wants a place, from the moment on at which their script begins."""
        script = self._scripts[number]
        self._waiting[number] = Waiter(
            client_key=script.terms.user, waiter=str(number), user=script.terms.user, label="",
            since=script.start_seconds, kind="cuda", memory_bytes=script.memory_bytes,
            wish=Wish(request=script.terms.request),
        )  # fmt: skip

    def give(self, now: float) -> list[tuple[int, int]]:
        """Give those who wait the places that there are, and return who got which."""
        if not self._waiting:
            return []
        ordered = in_order(self._waiting.values(), self._held, lambda user: 1.0, now)
        found = allot(ordered, self._loads, self._rules)
        given = []
        for waiter in ordered:
            spot = found[waiter.name]
            if isinstance(spot, DeviceLoad):
                number = int(waiter.waiter)
                del self._waiting[number]
                self._held[waiter.user] += 1
                self._there[spot.ordinal][number] = _session(self._scripts[number].terms.session, waiter, spot)
                given.append((number, spot.ordinal))
        for device in {device for _, device in given}:
            self._count(device)
        return given

    def leave(self, number: int, device: int) -> None:
        """Somebody gives up their place."""
        self._held[self._there[device].pop(number).user] -= 1
        self._count(device)

    def _count(self, device: int) -> None:
        (self._loads[device],) = with_sessions([self._bare[device]], self._there[device].values(), self._mixes)


def _session(name: str, waiter: Waiter, spot: DeviceLoad) -> Session:
    return Session(
        id=name, user=waiter.user, client_key=waiter.client_key, label="", node=spot.node,
        ordinal=spot.ordinal, device_kind=spot.kind, memory_limit_bytes=waiter.memory_bytes, lease_seconds=1.0,
        opened_at=waiter.since, state=SessionState.SERVING, epoch=1, wish=waiter.wish,
    )  # fmt: skip


def _mix(script: Script, compute: float) -> Mix:
    """Return what a session is seen to use once it runs; before that the pool knows nothing of it."""
    seconds = sum(cell.seconds for cell in script.cells)
    busy = seconds / max(1e-9, seconds + sum(cell.think_seconds for cell in script.cells))
    return Mix(busy * compute, busy * (1 - compute))
