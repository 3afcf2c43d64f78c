"""Who may come in: the ZAP handler behind every server socket. The user is derived from the key that was shown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

import zmq
import zmq.asyncio
import zmq.auth.asyncio
import zmq.auth.thread

from gpu_backend.transport.sockets import ZAP_DOMAIN


class AllowedKeys:
    """The public keys that may come in. May be changed while the authenticator runs."""

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        self._keys = frozenset(keys)
        self._lock = threading.Lock()

    def replace(self, keys: Iterable[bytes]) -> None:
        """Admit exactly ``keys`` from the next handshake on; open connections stay."""
        with self._lock:
            self._keys = frozenset(keys)

    def callback(self, domain: str, key: bytes) -> bool:
        """Tell whether ``key`` is admitted. Called by pyzmq's authenticator, in its own thread."""
        return key in self._keys


class LookedUpKeys:
    """Admits whatever keys a function says are known; for a door whose list lives elsewhere (a database)."""

    def __init__(self, is_known: Callable[[bytes], bool]) -> None:
        self._is_known = is_known

    def callback(self, domain: str, key: bytes) -> bool:
        """Tell whether ``key`` is admitted. Called by pyzmq's authenticator."""
        return self._is_known(key)


def guard_thread(
    context: zmq.Context[zmq.Socket[bytes]], keys: AllowedKeys, more: Mapping[str, AllowedKeys] | None = None
) -> zmq.auth.thread.ThreadAuthenticator:
    """Start the authenticator of ``context`` in a thread of its own, for processes without an event loop.

    ``more`` names the keys of further ZAP domains, for a process whose doors are open to different peers.
    """
    authenticator = zmq.auth.thread.ThreadAuthenticator(context)
    authenticator.start()
    for domain, allowed in {ZAP_DOMAIN: keys, **(more or {})}.items():
        authenticator.configure_curve_callback(domain=domain, credentials_provider=allowed)
    return authenticator


def guard_async(
    context: zmq.asyncio.Context, keys: AllowedKeys | LookedUpKeys
) -> zmq.auth.asyncio.AsyncioAuthenticator:
    """Start the authenticator of ``context`` in the running event loop."""
    authenticator = zmq.auth.asyncio.AsyncioAuthenticator(context)
    authenticator.start()
    authenticator.configure_curve_callback(domain=ZAP_DOMAIN, credentials_provider=keys)
    return authenticator
