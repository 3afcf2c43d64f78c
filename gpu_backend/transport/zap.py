"""Who may come in: the ZAP handler behind every server socket. The user is derived from the key that was shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import zmq.asyncio
import zmq.auth.asyncio


class LookedUpKeys:
    """Admits whatever keys a function says are known; for a door whose list lives elsewhere (a database)."""

    def __init__(self, is_known: Callable[[bytes], bool]) -> None:
        self._is_known = is_known

    def callback(self, domain: str, key: bytes) -> bool:
        """Tell whether ``key`` is admitted. Called by pyzmq's authenticator."""
        return self._is_known(key)


def guard_async(
    context: zmq.asyncio.Context, doors: Mapping[str, LookedUpKeys]
) -> zmq.auth.asyncio.AsyncioAuthenticator:
    """Start the authenticator of ``context`` in the running event loop; ``doors`` are the keys of each ZAP domain."""
    authenticator = zmq.auth.asyncio.AsyncioAuthenticator(context)
    authenticator.start()
    for domain, keys in doors.items():
        authenticator.configure_curve_callback(domain=domain, credentials_provider=keys)
    return authenticator
