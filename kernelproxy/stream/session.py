"""A session in use: a lease on an executor, and the stream of ops to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpu_backend.opstream.devices import MOST_DEVICES, default_stream
from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import ProtocolError
from gpu_backend.wire.groups import Group
from gpu_backend.wire.messages import Bye, Want
from gpu_backend.wire.values import Value
from gpu_backend.wire.views import UsageView
from gpu_backend.wire.wish import Wish
from kernelproxy.mirror.host_mirror import HostMirror, Mode
from kernelproxy.session.connection import Connection
from kernelproxy.session.lease import FAREWELL_SECONDS, Lease
from kernelproxy.session.signs import Signs
from kernelproxy.stream import progress
from kernelproxy.stream.counters import Counters
from kernelproxy.stream.mirrored import MirroredPipeline
from kernelproxy.stream.pipeline import Pipeline
from kernelproxy.stream.sender import Sender
from kernelproxy.stream.spread import SpreadPipeline

#: The longest pause between two signs of life of an idle notebook, seconds.
_MOST_PING_SECONDS = 3600.0


PipelineTo = Callable[[int], type[MirroredPipeline]]


class Session:
    """A lease on an executor, and the pipeline to it.

    Parameters
    ----------
    pipeline_to
        Tells of which kind the pipeline to an executor with so many devices is; `usual_pipeline` does by default.

    Attributes
    ----------
    devices
        How many devices it has.
    """

    def __init__(
        self, lease: Lease, signs: Signs, mirror: Mode = Mode.ON, pipeline_to: PipelineTo | None = None
    ) -> None:
        self._lease = lease
        self.devices = _devices(lease.connection)
        self.pipeline = (pipeline_to or usual_pipeline)(self.devices)(lease.connection, self._renew, signs)
        self.pipeline.mirror = HostMirror(mirror)
        ping_seconds = min(max(1.0, lease.ticket.lease_seconds / 4), _MOST_PING_SECONDS)
        self._sender = Sender(self.pipeline, ping_seconds, lease.vouch)
        self._sender.start()

    @property
    def ticket(self) -> Ticket:
        """The way to the executor that serves the session now."""
        return self._lease.ticket

    @property
    def is_ours(self) -> bool:
        """Whether this process took the lease and so gives it back."""
        return self._lease.is_ours

    @property
    def beside(self) -> tuple[Ticket, ...]:
        """The tickets of the sessions that were had with this one."""
        return self._lease.beside

    @property
    def handed(self) -> Path | None:
        """Where the provisioner finds the ticket, if it took the lease."""
        return self._lease.handed

    @property
    def device(self) -> dict[str, Value]:
        """What computes: kind, name, total_bytes, library, compute_capability."""
        return self.pipeline.connection.welcome.device

    @property
    def memory_limit_bytes(self) -> int:
        """Most bytes that arrays may hold; 0 for no limit."""
        return self.pipeline.connection.welcome.memory_limit_bytes

    @property
    def epoch(self) -> int:
        """How often the session has been moved or restored, from 1."""
        return self.ticket.epoch

    @property
    def counters(self) -> Counters:
        """What the session has cost so far."""
        return self.pipeline.counters

    @property
    def is_connected(self) -> bool:
        """True unless the connection is known to be cut."""
        return not self.pipeline.connection.is_cut

    def memory(self, device: int = 0) -> dict[str, int]:
        """Return used_bytes, limit_bytes, free_bytes and total_bytes of a device. One round trip."""
        stream = default_stream(device)
        return progress.memory_in(self.pipeline.call(".memory", (), Want.CONTENTS, stream=stream).value)

    def ways(self) -> list[tuple[str, str, int]]:
        """Return how operations were carried out, as `progress.ways_in` tells it. One round trip."""
        return progress.ways_in(self.pipeline.call(".ways", (), Want.CONTENTS).value)

    def flush(self) -> None:
        """Send all that has been recorded."""
        self.pipeline.flush()

    def synchronize(self) -> None:
        """Wait until the devices have done all that was asked of them. Raises what failed on the way."""
        self.pipeline.call(".synchronize", (), Want.CONTENTS)

    def cancel_pending(self) -> None:
        """Drop the queued remote work that has not started."""
        self.pipeline.cancel_pending()

    def open_channel(self, to: Session, name: str) -> None:
        """Have the executor reach that of another session of ours, by a channel of that name. Asks the gateway.

        Raises
        ------
        PoolError
            If the pool cannot, or will not.
        """
        self._lease.open_channel(to.ticket.session, name)

    def join_group(self, name: str, size: int, rank: int, attempt: str) -> Group:
        """Say which rank of a group of processes the session is; return who is missing. Asks the gateway.

        Raises
        ------
        PoolError
            If the pool cannot, or will not; as where the others say something else.
        """
        return self._lease.join_group(name, size, rank, attempt)

    def leave_group(self, name: str, size: int, rank: int, attempt: str) -> None:
        """Have nobody wait for what was said by `join_group`, as far as the gateway is heard within a second."""
        self._lease.leave_group(name, size, rank, attempt)

    def set_wish(self, wish: Wish) -> None:
        """Share the device in another way from now on. One question to the gateway.

        Raises
        ------
        PoolRefusal
            If this user may not have that.
        """
        self._lease.set_wish(wish)

    def usage(self, by: str, since: str) -> UsageView:
        """Return what was used from the day ``since`` on, as this user may see it. One question to the gateway."""
        return self._lease.usage(by, since)

    def close(self, release: bool) -> None:
        """Close the connection. With ``release`` the session ends and its arrays go; else the lease keeps it."""
        self._lease.close()
        self._sender.close(FAREWELL_SECONDS)
        self.pipeline.close(Bye() if release else None, FAREWELL_SECONDS)
        if release:
            self.give_back()

    def give_back(self) -> None:
        """Have the gateway end the session. Takes no lock and touches no connection of this session."""
        self._lease.give_back()

    def _renew(self, pipeline: Pipeline) -> Connection:
        """Return a greeted connection in place of the lost one; called by the pipeline."""
        lost = pipeline.connection
        fresh = self._lease.renewed(
            lost,
            place=lambda: (pipeline.first, pipeline.inbox.received),
            abandon=pipeline.abandon,
            may_wait=not self._sender.is_this_thread,
        )
        if fresh.is_another_executors(lost):
            pipeline.memory.set_limit(fresh.welcome.memory_limit_bytes)
        return fresh


def usual_pipeline(devices: int) -> type[MirroredPipeline]:
    """Return the kind of a pipeline to an executor with so many devices."""
    return MirroredPipeline if devices == 1 else SpreadPipeline


def _devices(connection: Connection) -> int:
    count = connection.welcome.device.get("devices", 1)
    if not isinstance(count, int) or not 1 <= count <= MOST_DEVICES:
        raise ProtocolError(f"{count!r} devices make no sense.")
    return count
