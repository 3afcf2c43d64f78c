"""Sockets with the options that every connection of ours has: CURVE, bounded queues, no linger, signs of life.

Clients send heartbeats, servers none: libzmq 4.3.5 ends a server's process by an assertion (`stream_engine_base.cpp`,
`out_event`) when a heartbeat of its own falls due after a peer hung up whose queue is full. That a client's machine has
gone is told by TCP, see `forecourt`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import zmq
import zmq.asyncio

from gpu_backend.transport.curve import KeyPair

#: The ZAP domains of server sockets: who is known at one door is not let in at the other.
ZAP_DOMAIN = "workbench"
AGENTS_DOMAIN = "workbench-agents"
#: Largest single frame a server reads; libzmq drops the connection of whoever sends more. Bulk data is chunked far
#: below it.
MAX_FRAME_BYTES = 64 << 20

S = TypeVar("S", bound="zmq.Socket[Any]")


def as_server(socket: S, keys: KeyPair, max_frame_bytes: int = MAX_FRAME_BYTES, domain: str = ZAP_DOMAIN) -> S:
    """Make ``socket`` admit only peers that its context's authenticator knows in ``domain``. Bind it afterwards."""
    _common(socket)
    socket.curve_server = True
    socket.curve_secretkey = keys.secret
    socket.curve_publickey = keys.public
    socket.zap_domain = domain.encode()
    socket.maxmsgsize = max_frame_bytes
    socket.handshake_ivl = 5_000
    return socket


def as_client(socket: S, keys: KeyPair, server_key: bytes) -> S:
    """Make ``socket`` show ``keys`` and accept only the server that owns ``server_key``. Connect it afterwards."""
    _common(socket)
    socket.curve_secretkey = keys.secret
    socket.curve_publickey = keys.public
    socket.curve_serverkey = server_key
    socket.heartbeat_ivl = 2_000
    socket.heartbeat_timeout = 10_000
    socket.reconnect_ivl = 50
    socket.reconnect_ivl_max = 1_000
    return socket


def send_now(socket: zmq.asyncio.Socket, frames: Sequence[bytes | bytearray | memoryview]) -> bool:
    """Send without waiting, from an event loop; tell whether it was sent. What cannot be sent now is dropped."""
    # An asyncio socket tries NOBLOCK sends at once: what it returns is settled.
    sending = cast("asyncio.Future[object]", socket.send_multipart(frames, flags=zmq.NOBLOCK))
    return sending.done() and sending.exception() is None


def _common(socket: zmq.Socket[Any]) -> None:
    socket.linger = 0
    # Flow control is by credits; the high-water marks only bound what a peer that ignores them can pile up.
    socket.sndhwm = 1_000
    socket.rcvhwm = 1_000
    socket.tcp_keepalive = 1
