"""What shares each device of a node among its executors: an arbiter, an MPS daemon, or the driver's own turns."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

from gpu_backend.gate.roster import Roster
from gpu_backend.metering.meters import Meter, NoMeter, meter_of
from gpu_backend.node import mps
from gpu_backend.node.arbiter import Arbiter, directory_of
from gpu_backend.node.executor import Executor
from gpu_backend.node.inventory import Found
from gpu_backend.node.mps import Mps
from gpu_backend.node.mps_files import ClientWay
from gpu_backend.node.places import Place
from gpu_backend.node.settings import NO_GATE, NodeSettings
from gpu_backend.node.walls import level
from gpu_backend.wire.control import Launch
from gpu_backend.wire.devices import DeviceReport

__all__ = ["Sharing"]

log = logging.getLogger("node.sharing")

#: What NVML's samples name of a device that is shared by MPS (seen on an H100): its server, and hardly its clients.
_UNSEEN_BY_MPS = "under MPS the driver counts what all of them use together"
#: What the notebook of a session is told that ends by no fault of its own.
_BY_ANOTHER = (
    "Another session of group {group!r} on the same device failed, and as they share it by MPS this one ended with it; "
    "its arrays are lost."
)
_BY_DAEMON = "The MPS daemon by which group {group!r} shares the device has ended, and this session with it."


class Sharing:
    """Keeps what shares the devices, and says how they stand."""

    def __init__(self, settings: NodeSettings, devices: Mapping[int, Found], executors: Sequence[Executor]) -> None:
        """Share ``devices`` among ``executors``, who come and go."""
        self._settings = settings
        self._executors = executors
        self._devices = devices
        self._walls = {ordinal: level(settings, device) for ordinal, device in devices.items()}
        self._is_stopping = False
        self._faulty: set[int] = set()  # devices whose daemons have seen a fault
        self._daemons = {
            ordinal: Mps(settings.runtime_dir, devices[ordinal], sharing)
            for ordinal, sharing in settings.mps_devices.items()
            if ordinal in devices
        }
        self._retired = mps.leftovers(settings.runtime_dir, self._daemons)
        self._arbiters = {
            ordinal: Arbiter(settings, device)
            for ordinal, device in devices.items()
            if settings.policy_of(ordinal) != NO_GATE
        }
        #: What sees who uses a device that has no arbiter, which would.
        self._meters = {ordinal: self._meter(ordinal) for ordinal in devices if ordinal not in self._arbiters}

    def keepers(self) -> list[Coroutine[Any, Any, None]]:
        """Return what keeps them running, each for ever."""
        daemons = [daemon.keep() for daemon in self._daemons.values()]
        return daemons + [arbiter.keep() for arbiter in self._arbiters.values()]

    def stop(self) -> None:
        """End what shares the devices, for good."""
        for arbiter in self._arbiters.values():
            arbiter.stop()
        self._is_stopping = True  # daemons end behind those who compute by them

    def close(self) -> None:
        """See nobody any more; what shares the devices runs on."""
        for meter in self._meters.values():
            meter.close()

    def place(self, ordinal: int) -> Place:
        """Return a device as an executor's place."""
        return Place(ordinal, directory_of(self._settings.runtime_dir, ordinal), self._meters.get(ordinal))

    def publish(self) -> None:
        """Tell the arbiters who shares their devices, and end daemons that serve nobody any more."""
        for ordinal, arbiter in self._arbiters.items():
            members = [executor.member(ordinal) for executor in self._executors if ordinal in executor.ordinals]
            try:
                arbiter.publish(Roster(tuple(member for member in members if member is not None)))
            except OSError as error:  # a full disk, say: tried again with the next report
                log.error("the arbiter of device %d cannot be told who shares it: %s", ordinal, error)
        self._end_lost()
        self._end_idle_daemons()

    def _end_idle_daemons(self) -> None:
        in_use = {ordinal for one in self._executors if one.group for ordinal in one.ordinals}
        for ordinal in self._retired.keys() - in_use:
            mps.retire(self._retired.pop(ordinal))
        for ordinal in self._daemons.keys() - in_use if self._is_stopping else ():
            self._daemons[ordinal].stop()

    # --- MPS ----------------------------------------------------------------------------------------------------------

    def group(self, ordinals: Iterable[int]) -> str:
        """Return the group whose executors share their fate on devices; empty if each ends alone."""
        return next((self._daemons[one].sharing.group for one in ordinals if one in self._daemons), "")

    def way(self, ordinals: Iterable[int]) -> ClientWay | None:
        """Return how an executor reaches devices that are shared by MPS; None if they are not."""
        return next((self._daemons[one].way() for one in ordinals if one in self._daemons), None)

    def refuse(self, order: Launch) -> str:
        """Return why a session gets no executor; empty if it does. A gateway that knows no MPS would send strangers."""
        ordinals = (order.ordinal, *order.others)
        group = self.group(ordinals)
        if group and len(ordinals) > 1:
            return "A device that is shared by MPS goes with no other into a session."
        if group and order.terms.group != group:
            return f"Device {order.ordinal} is shared by MPS, and serves group {group!r} alone."
        return ""

    def ailment(self, ordinals: Iterable[int]) -> str:
        """Return why nobody can begin to compute on devices; empty if they can, or will be able to in a moment."""
        for ordinal in ordinals:
            if ordinal not in self._daemons:
                continue
            if problem := self._daemons[ordinal].problem:
                return problem
            group = self._daemons[ordinal].sharing.group
            if others := {one.group for one in self._on((ordinal,))} - {group, ""}:
                return f"sessions of group {min(others)!r}, which it served before, are still on it"
        return ""

    def is_ready(self, ordinals: Sequence[int]) -> bool:
        """Tell whether executors can be started on devices now: a daemon stands, and no fault is being cleared away."""
        stand = all(self._daemons[ordinal].is_ready for ordinal in ordinals if ordinal in self._daemons)
        return stand and self._faulty.isdisjoint(ordinals) and not any(one.is_felled for one in self._on(ordinals))

    def spread_fault(self, executor: Executor) -> None:
        """End all that share the fate of an executor whose device has failed; none of them can compute any more."""
        if executor.group and not executor.is_felled:
            executor.is_felled = True
            self._faulty.update(executor.ordinals)
            for one in self._on(executor.ordinals):
                _fell(one, _BY_ANOTHER)

    def _end_lost(self) -> None:
        """End executors whose daemon is not there any more, and daemons that a fault has left of no use.

        A server begins anew by itself once all its clients have ended, but the first new one hung for seconds (an
        H100); another daemon takes a tenth of a second.
        """
        for ordinal, daemon in self._daemons.items():
            there = [one for one in self._on((ordinal,)) if one.group]
            for one in there:
                if daemon.has_lost(one.daemon):
                    _fell(one, _BY_DAEMON)
            if ordinal in self._faulty and not there:
                self._faulty.discard(ordinal)
                daemon.renew()

    def has_changed(self, executor: Executor) -> bool:
        """Tell whether an executor that serves nobody was started for another way of sharing than now."""
        return executor.assignment is None and executor.group != self.group(executor.ordinals)

    def _on(self, ordinals: Iterable[int]) -> list[Executor]:
        wanted = set(ordinals)
        return [one for one in self._executors if wanted.intersection(one.ordinals)]

    # --- what there is to tell ----------------------------------------------------------------------------------------

    def report(self, device: Found, warm: int) -> DeviceReport:
        """Return what there is to tell of a device with so many executors ready."""
        ordinal, settings = device.ordinal, self._settings
        daemon = self._daemons.get(ordinal)
        return DeviceReport(
            ordinal, device.kind, device.name, device.uuid, device.total_bytes, warm, settings.policy_of(ordinal),
            self._walls[ordinal], self._unseen(ordinal), device.island, device.is_part, settings.withholds(device.uuid),
            daemon.sharing.group if daemon is not None else "", daemon.in_words() if daemon is not None else "",
            self.ailment((ordinal,)),
        )  # fmt: skip

    def _unseen(self, ordinal: int) -> str:
        """Return why nobody sees from outside who uses a device; empty if somebody does."""
        arbiter = self._arbiters.get(ordinal)
        return arbiter.unseen if arbiter is not None else self._meters[ordinal].problem

    def _meter(self, ordinal: int) -> Meter:
        device = self._devices[ordinal]
        if ordinal in self._daemons:
            return NoMeter(_UNSEEN_BY_MPS)
        return meter_of(device.kind, device.uuid)


def _fell(executor: Executor, why: str) -> None:
    if executor.group and not executor.is_felled:
        executor.is_felled = True
        executor.stop(why.format(group=executor.group))
