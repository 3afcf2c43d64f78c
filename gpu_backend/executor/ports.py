"""The executor's sockets, all handed over: the doors for its notebook, and the one for those who give orders."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterable, Iterator
from itertools import chain, count
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from gpu_backend.executor.channels import Channels
from gpu_backend.executor.config import CERTIFICATE, ExecutorConfig
from gpu_backend.executor.control_door import ControlDoor, Handed, Order
from gpu_backend.executor.outbox import Message, Outbox
from gpu_backend.executor.rooms import Pin, Rooms
from gpu_backend.gate.bell import Line
from gpu_backend.transport import tls
from gpu_backend.transport.copying import Bytes
from gpu_backend.transport.entrance import Entrance, LocalDoor, TlsDoor
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.peer_process import PeerProcess
from gpu_backend.transport.ring import naps
from gpu_backend.wire.codec import Frame

#: Messages read in one go; the rest waits its turn in the socket.
_MOST_AT_ONCE: Final = 64
#: How often the door for orders, and those who have proved nothing yet, are looked at while a notebook speaks, seconds.
_SIDE_LOOK_SECONDS: Final = 1e-3
#: What is missing to a whole millisecond when it is asked for one, seconds: it took so long to ask.
_ROUNDED_SECONDS: Final = 50e-6
#: Connections of the notebook at a time; a new one takes the place of the eldest. It uses one.
_MOST_PEERS: Final = 32


class Ready(NamedTuple):
    """Which sockets have messages."""

    data: bool
    control: bool


_ONLY_DATA: Final = Ready(True, False)


class Ports:
    """Holds the sockets: hears notebooks and whoever gives orders, and answers them.

    Parameters
    ----------
    pin
        `Device.pin`, for memory that notebooks share.

    Raises
    ------
    OSError
        If there is no certificate in the executor's own directory.
    """

    def __init__(self, config: ExecutorConfig, pin: Pin) -> None:
        handed = config.descriptors
        self._rooms = Rooms(pin)
        context = tls.as_server(Path(config.own) / CERTIFICATE)
        doors = (
            LocalDoor(socket.socket(fileno=handed.local), self._rooms.take),
            TlsDoor(socket.socket(fileno=handed.far), context, tls.tls_way(config.certificate)),
        )
        self._entrance = Entrance(bytes.fromhex(config.secret), doors)
        self._peers: dict[bytes, MessageSocket] = {}
        self._numbers = count()
        self._looks_aside_at = 0.0
        self._owner: PeerProcess | None = None
        self._has_read_ahead = False  # messages were read that are still to be yielded: no socket tells of these
        #: Orders of the agent, and reports to it.
        self.control = ControlDoor(handed.control)
        self._lines: dict[int, Line] = {}  # rung when the gate of a device opens; wake whoever waits
        self._poll = select.epoll()  # everything that wakes a sleeper
        for descriptor in (self._entrance.fileno(), self.control.fileno()):
            self._poll.register(descriptor, select.EPOLLIN)
        #: To the executors of the notebook's other devices.
        self.channels = Channels(self._poll)

    def hear_bell(self, line: Line | None, device: int = 0) -> None:
        """Wake when ``line`` is rung, from now on, and by no other of ``device``."""
        if device in self._lines:
            self._poll.unregister(self._lines.pop(device).fileno())
        if line is not None:
            self._poll.register(line.fileno(), select.EPOLLIN)
            self._lines[device] = line

    def wait(self, timeout_seconds: float) -> Ready:
        """Wait until a socket has a message, at most about ``timeout_seconds``, and down to a millisecond less."""
        if not timeout_seconds or self._has_read_ahead:
            has_heard, now = self.hears_peers(), monotonic()
            if has_heard and now < self._looks_aside_at:
                return _ONLY_DATA
            self._looks_aside_at = now + _SIDE_LOOK_SECONDS
            ready = self._ready(0)
        else:
            self._push()
            ready = self._sleep(timeout_seconds)
        if self._entrance.fileno() in ready or not self._entrance.is_empty:
            self._let_in()
        for device, line in self._lines.items():
            if line.fileno() in ready and not line.clear():
                self.hear_bell(None, device)  # the arbiter has ended; its successor brings another
                break  # what has changed is not gone through further; others ring still
        for peer in self._peers.values():
            peer.wake(peer.fileno() in ready)
        if self.channels.is_used:
            self.channels.look(ready)
        return Ready(self.hears_peers(), self.control.fileno() in ready)

    def _sleep(self, seconds: float) -> set[int]:
        """Wait until something is to be heard; return the descriptors that tell of it."""
        seconds = min([peer.most_sleep(seconds) for peer in self._peers.values()], default=seconds)
        for nap in naps(self.channels.most_sleep(seconds)):
            if not all(peer.doze() for peer in self._peers.values()) or not self.channels.doze():
                break
            if ready := self._ready(nap):
                return ready
        return self._ready(0)

    def _ready(self, seconds: float) -> set[int]:
        # A poller counts in milliseconds, and rounds up: what is less is waited for by a call that does not.
        whole = int((seconds + _ROUNDED_SECONDS) * 1_000) / 1_000
        if seconds and not whole:
            select.select((self._poll,), (), (), seconds)
        return {descriptor for descriptor, _ in self._poll.poll(whole)}

    def hears_peers(self) -> bool:
        """Tell whether a notebook has spoken; the cheap question, for a loop that waits for little else."""
        if self._has_read_ahead:
            return True
        for peer in self._peers.values():  # noqa: SIM110 - asked all the time, and a generator takes twice as long
            if peer.has_news():
                return True
        return False

    def spin(self, until: float) -> bool:
        """Wait for a notebook to speak without sleeping, up to ``until`` by `time.monotonic`; tell whether one has.

        Of several it is looked once.
        """
        if self.channels.is_used:
            return self._spin_for_all(until)
        if not self._has_read_ahead and len(self._peers) == 1:
            for peer in self._peers.values():
                return peer.spin(until)
        return self.hears_peers()

    def _spin_for_all(self, until: float) -> bool:
        while not (has_news := self.hears_peers() or self.channels.has_news()) and monotonic() < until:
            pass
        return has_news

    def watch_owner(self, peer: bytes | None) -> None:
        """Watch the process at the other end of the connection ``peer`` from now on, if it is one of this host."""
        socket = self._peers.get(peer) if peer is not None else None
        if self._owner is not None:
            self._owner.close()
        self._owner = socket.take_process() if socket is not None else None

    def has_owner_ended(self) -> bool:
        """Tell whether the process that is watched has ended."""
        return self._owner is not None and self._owner.has_ended()

    def _push(self) -> None:
        for name, peer in list(self._peers.items()):
            try:
                peer.push()
            except ConnectionLost:
                self._forget(name, peer)
                continue
            self._poll.modify(peer.fileno(), peer.awaited)
        self.channels.push()

    def read_data(self) -> Iterable[tuple[bytes, list[Frame]]]:
        """Return what has come from notebooks: of each message the connection and its frames."""
        if not self._has_read_ahead and len(self._peers) == 1:
            for name, peer in self._peers.items():
                return self._read_of_one(name, peer)
        return self._read_each()

    def _read_of_one(self, name: bytes, peer: MessageSocket) -> Iterable[tuple[bytes, list[Frame]]]:
        try:
            message = peer.take_whole()  # as nearly all that comes, and mostly alone
        except ConnectionLost:
            self._forget(name, peer)
            return ()
        if message is None:
            return self._read_each()
        # All there is: what is behind it may cancel what has come, and is seen after a slice of ops else.
        return chain(((name, message),), self._read_each()) if peer.has_news() else [(name, message)]

    def _read_each(self) -> Iterator[tuple[bytes, list[Frame]]]:
        self._has_read_ahead = False
        for name, peer in list(self._peers.items()):
            yield from self._read(name, peer)

    def _read(self, name: bytes, peer: MessageSocket) -> Iterator[tuple[bytes, list[Frame]]]:
        try:
            for _ in range(_MOST_AT_ONCE):
                message = peer.receive()
                if message is None:
                    return
                yield name, message
                if not peer.has_read_ahead:  # asking the system again would mostly be in vain, and takes as long
                    return
            self._has_read_ahead = True
        except ConnectionLost:
            self._forget(name, peer)

    def _let_in(self) -> None:
        for peer, is_channel in self._entrance.admitted():
            if is_channel:
                self.channels.admit(peer)
                continue
            if len(self._peers) >= _MOST_PEERS:
                self._forget(*next(iter(self._peers.items())))
            self._peers[b"%d" % next(self._numbers)] = peer
            self._poll.register(peer.fileno(), select.EPOLLIN)
            self._has_read_ahead |= peer.has_read_ahead

    def _forget(self, name: bytes, peer: MessageSocket) -> None:
        self._poll.unregister(peer.fileno())
        peer.close()
        self._peers.pop(name, None)

    def orders(self) -> Iterator[Order]:
        """Yield what was ordered; channels that are handed over are taken here."""
        for order in self.control.read():
            if isinstance(order, Handed):
                self.channels.take(*order)
            else:
                yield order

    def prepare(self) -> bool:
        """Get more of the memory ready that notebooks share; False if all is. Called while nobody waits."""
        return self._rooms.prepare()

    def lend(self, name: bytes | None, size: int) -> Bytes | None:
        """Return memory for ``size`` bytes that is sent by connection ``name`` as it is; None if there is none now."""
        peer = self._peers.get(name) if name is not None else None
        return peer.lend(size) if peer is not None else None

    def send(self, outbox: Outbox) -> None:
        """Send what the sockets take now; the rest stays in ``outbox``."""
        if outbox:
            outbox.send(self._send_to)

    def _send_to(self, name: bytes, message: Message) -> bool:
        peer = self._peers.get(name)
        if peer is None:
            return True  # what it has not read is kept, and sent again after the next Hello
        try:
            return peer.send(message)
        except ConnectionLost:
            self._forget(name, peer)
            return True  # as above

    def close(self) -> None:
        """Close the sockets; what the system has taken still arrives."""
        self._push()
        self.channels.close()
        self._poll.close()
        self.control.close()
        self._entrance.close()
        for peer in self._peers.values():
            peer.close()
        self.watch_owner(None)
