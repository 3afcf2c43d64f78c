"""The executor's sockets: data for its notebook, control for its agent, each open to exactly one key."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import zmq

from gpu_backend.arbiter.bell import Bell
from gpu_backend.executor.config import ExecutorConfig
from gpu_backend.executor.outbox import Message, Outbox
from gpu_backend.transport import curve
from gpu_backend.transport.admission import AllowedKeys, guard_thread
from gpu_backend.transport.local import LocalClosed, LocalListener, LocalSocket, PeerProcess
from gpu_backend.transport.sockets import as_server, has_message
from gpu_backend.wire import control
from gpu_backend.wire.codec import Codec, Frame, encode
from gpu_backend.wire.errors import WireError

#: Messages read in one go; the rest waits its turn in the socket.
_MOST_AT_ONCE = 64
#: How often ZeroMQ's sockets are looked at while a notebook of this host speaks, seconds: a look takes 2 µs.
_FAR_SECONDS = 1e-3
#: Messages that ZeroMQ takes from a notebook while a long op runs; the rest waits at the notebook's own side.
_MOST_WAITING = 16
#: The ZAP domain of the control socket: the agent's key opens it, and no other.
_CONTROL = "control"

_orders: Codec[control.ToExecutorControl] = Codec(control.ToExecutorControl)


class Ready(NamedTuple):
    """Which sockets have messages."""

    data: bool
    control: bool


_ONLY_DATA = Ready(True, False)


class Ports:
    """Binds the sockets and writes ``state.json``, by which an agent finds this executor again."""

    def __init__(self, context: zmq.Context[Any], directory: Path, config: ExecutorConfig) -> None:
        keys = curve.generate()
        self._directory = directory
        self._allowed = AllowedKeys()
        self._guard = guard_thread(context, self._allowed, {_CONTROL: AllowedKeys([config.agent_key.encode()])})
        self._data = as_server(context.socket(zmq.ROUTER), keys)
        self._data.router_mandatory = True
        self._data.rcvhwm = _MOST_WAITING
        self._data.bind(f"ipc://{directory}/data")
        port = self._data.bind_to_random_port(f"tcp://{config.bind_host}")
        self._listener = LocalListener(directory / "local")
        self._locals: dict[bytes, LocalSocket] = {}
        self._local_numbers = count()
        self._looks_far, self._far_at = True, 0.0  # at ZeroMQ's sockets too, and when they are due
        self._owner: PeerProcess | None = None
        self._has_read_ahead = False  # messages were read that are still to be yielded: no socket tells of these
        self._control = as_server(context.socket(zmq.ROUTER), keys, zap_domain=_CONTROL)
        self._control.bind(f"ipc://{directory}/control")
        self._agent: bytes | None = None
        self._poller = zmq.Poller()
        self._poller.register(self._data, zmq.POLLIN)
        self._poller.register(self._control, zmq.POLLIN)
        self._poller.register(self._listener.fileno(), zmq.POLLIN)
        #: Rung when the gate opens; wakes whoever waits.
        self._bell = Bell(directory / "bell")
        self._poller.register(self._bell.fileno(), zmq.POLLIN)
        self._local_poll = select.poll()
        self._local_poll.register(self._listener.fileno(), select.POLLIN)
        self._heard: list[tuple[int, int]] = []  # what that poll said last, if nothing was read since
        self.server_key = keys.public.decode()
        self.endpoints = (
            f"unix://{directory}/local",
            f"ipc://{directory}/data",
            f"tcp://{config.bind_host}:{port}",
        )
        self._write_state({})

    def admit(self, client_key: bytes) -> None:
        """Let the holder of ``client_key`` in from now on."""
        self._allowed.replace([client_key])

    def wait(self, timeout_seconds: float) -> Ready:
        """Wait until a socket has a message, at most ``timeout_seconds``."""
        if not timeout_seconds or self._has_read_ahead:
            local, self._heard = self._heard or self._local_poll.poll(0), []
            if local and local[0][0] == self._listener.fileno():  # found first: it was registered first
                self._accept()
            now = monotonic()
            self._looks_far = not local or now >= self._far_at
            if not self._looks_far:
                return _ONLY_DATA
            self._far_at = now + _FAR_SECONDS
            hears = bool(local) or self._has_read_ahead or has_message(self._data)
            return Ready(hears, has_message(self._control))
        self._looks_far = True
        self._push_locals()
        ready = dict(self._poller.poll(int(timeout_seconds * 1_000)))
        if self._listener.fileno() in ready:
            self._accept()
        if self._bell.fileno() in ready:
            self._bell.clear()
        heard = any(socket.fileno() in ready for socket in self._locals.values())
        return Ready(heard or self._data in ready, self._control in ready)

    def hears_locally(self) -> bool:
        """Tell whether a notebook has spoken; the cheap question, for a loop that waits for little else."""
        if not self._locals:
            return has_message(self._data)
        self._heard = self._local_poll.poll(0)
        return bool(self._heard) or self._has_read_ahead

    def watch_owner(self, peer: bytes | None) -> None:
        """Watch the process at the other end of the connection ``peer`` from now on, if it is one of this host."""
        socket = self._locals.get(peer) if peer is not None else None
        if self._owner is not None:
            self._owner.close()
        self._owner = socket.take_process() if socket is not None else None

    def has_owner_ended(self) -> bool:
        """Tell whether the process that is watched has ended."""
        return self._owner is not None and self._owner.has_ended()

    def _push_locals(self) -> None:
        for peer, socket in list(self._locals.items()):
            try:
                done = socket.push()
            except LocalClosed:
                self._forget(peer, socket)
                continue
            self._poller.modify(socket.fileno(), zmq.POLLIN if done else zmq.POLLIN | zmq.POLLOUT)

    def read_data(self) -> Iterator[tuple[bytes, list[Frame]]]:
        """Yield what has come from notebooks: the connection and its message."""
        self._has_read_ahead = False
        for peer, socket in list(self._locals.items()):
            yield from self._read_local(peer, socket)
        if not self._looks_far:
            return
        data = self._data
        for _ in range(_MOST_AT_ONCE):
            if not has_message(data):
                return
            peer = data.recv(zmq.NOBLOCK)
            frames: list[Frame] = []
            while data.rcvmore:
                frames.append(data.recv() if not frames else data.recv(copy=False).buffer)
            yield peer, frames

    def _read_local(self, peer: bytes, socket: LocalSocket) -> Iterator[tuple[bytes, list[Frame]]]:
        try:
            for _ in range(_MOST_AT_ONCE):
                message = socket.receive()
                if message is None:
                    return
                yield peer, message
                if not socket.has_read_ahead:  # asking the system again would mostly be in vain, and takes as long
                    return
            self._has_read_ahead = True
        except LocalClosed:
            self._forget(peer, socket)

    def _accept(self) -> None:
        socket = self._listener.accept()
        if socket is not None:
            # ZeroMQ's own routing ids start with a zero byte, so these are never taken for one.
            self._locals[b"local-%d" % next(self._local_numbers)] = socket
            self._poller.register(socket.fileno(), zmq.POLLIN)
            self._local_poll.register(socket.fileno(), select.POLLIN)

    def _forget(self, peer: bytes, socket: LocalSocket) -> None:
        self._poller.unregister(socket.fileno())
        self._local_poll.unregister(socket.fileno())
        socket.close()
        self._locals.pop(peer, None)

    def read_control(self) -> Iterator[control.ToExecutorControl]:
        """Yield the agent's orders. What does not decode is dropped: the agent is ours and of this version."""
        for _ in range(_MOST_AT_ONCE):
            if not has_message(self._control):
                return
            self._agent, *frames = self._control.recv_multipart(zmq.NOBLOCK)
            try:
                yield _orders.decode(frames)
            except WireError:
                continue

    def send(self, outbox: Outbox) -> None:
        """Send what the sockets take now; the rest stays in ``outbox``."""
        if outbox:
            outbox.send(self._send_to)

    def _send_to(self, peer: bytes, message: Message) -> bool:
        socket = self._locals.get(peer)
        return self._send_local(peer, socket, message) if socket is not None else self._send_far(peer, message)

    def _send_local(self, peer: bytes, socket: LocalSocket, message: Message) -> bool:
        try:
            return socket.send(message)
        except LocalClosed:
            self._forget(peer, socket)
            return True  # what it has not read is kept, and sent again after the next Hello

    def _send_far(self, peer: bytes, message: Message) -> bool:
        try:
            self._data.send_multipart([peer, *message], zmq.NOBLOCK, copy=len(message) == 1)
        except zmq.Again:
            return False
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            # The connection is gone. What it has not read is kept and sent again after the next Hello.
        return True

    def report(self, report: control.Report) -> None:
        """Tell the agent, if one has called; what it misses it learns with its next lease renewal."""
        if self._agent is not None:
            try:
                self._control.send_multipart([self._agent, *encode(report)], zmq.NOBLOCK)
            except zmq.Again:
                return

    def note_end(self, reason: str, cause: str) -> None:
        """Leave word of why this executor ended: in words, and as an `EndCause`."""
        self._write_state({"ended": reason, "cause": cause})

    def close(self) -> None:
        """Close the sockets; what was sent gets a moment to leave."""
        self._data.close(linger=500)
        self._control.close(linger=500)
        self._listener.close()
        self._bell.close()
        for socket in self._locals.values():
            socket.close()
        self.watch_owner(None)
        self._guard.stop()

    def _write_state(self, more: dict[str, str]) -> None:
        state = {
            "pid": os.getpid(),
            "start_time": _start_time(),
            "server_key": self.server_key,
            "endpoints": self.endpoints,
            "control": f"ipc://{self._directory}/control",
            **more,
        }
        fresh = self._directory / f".state.{os.getpid()}"
        fresh.write_text(json.dumps(state))
        fresh.replace(self._directory / "state.json")


def _start_time() -> int:
    """Return this process's start in clock ticks since boot; with the pid it names a process for good."""
    # The command's name may hold spaces, so count fields from behind its closing parenthesis.
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
