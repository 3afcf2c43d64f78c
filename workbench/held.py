"""Which sessions calls of this process have, so that a call which a quota refuses can wait for another to be over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from kernelproxy.client import Client
from workbench.call_client import CallClient

#: How often whoever waits for another call looks whether it still wants to, seconds.
_LOOK_SECONDS = 1.0


class Held:
    """The sessions that calls have for themselves. A part of the process's own client."""

    def __init__(self, client: Client) -> None:
        self._changed = threading.Condition()
        self._asking: set[CallClient] = set()
        self._clients: set[CallClient] = set()
        self._given_back = 0

    def ask(self, client: CallClient) -> int:
        """Note that the pool is asked for a session; return how many have been given back so far."""
        with self._changed:
            self._asking.add(client)
            return self._given_back

    def settle(self, client: CallClient, has_session: bool) -> None:
        """Note that the pool has answered, and whether the call has a session for itself now."""
        with self._changed:
            self._asking.discard(client)
            if has_session:
                self._clients.add(client)
            self._changed.notify_all()

    def give_back(self, client: CallClient) -> None:
        """Give a session back."""
        client.close()
        with self._changed:
            self._clients.discard(client)
            self._given_back += 1
            self._changed.notify_all()

    def wait_for_another(self, given_back: int, callers: Collection[Client], is_wanted: Callable[[], bool]) -> bool:
        """Wait until more than ``given_back`` were given back, or nobody ``is_wanted`` any more.

        False if there is none that could be, but for those of the ``callers``, who wait themselves.
        """
        with self._changed:
            return self._another_was(given_back, callers, is_wanted)

    def _another_was(self, given_back: int, callers: Collection[Client], is_wanted: Callable[[], bool]) -> bool:
        while self._given_back == given_back and is_wanted():
            if not (self._clients | self._asking).difference(callers):
                return False
            self._changed.wait(_LOOK_SECONDS)
        return True
