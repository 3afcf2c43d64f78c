"""Who is asking: users and nodes by the CURVE key that a connection showed, never by what a message says."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from time import time

import zmq

from gpu_backend.gateway.directory import Directory, User
from gpu_backend.wire.errors import MalformedMessage

log = logging.getLogger("gateway.authenticator")


class Authenticator:
    """Looks keys up in the directory, so that a key added or revoked there counts from the next message on."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def is_user(self, key: bytes) -> bool:
        """Tell whether the holder of ``key`` may come in at the users' door. Asked at each handshake."""
        return self._is_known(key, self._directory.user_of)

    def is_agent(self, key: bytes) -> bool:
        """Tell whether the holder of ``key`` may come in at the agents' door: a node, or somebody who is to become one.

        Asked at each handshake.
        """
        return self._is_known(key, self._speaker)

    def _speaker(self, key: str) -> str | None:
        return self._directory.node_of(key) or self._directory.invited(key, time())

    def is_invited(self, key: str) -> bool:
        """Tell whether the holder of this key may become a node."""
        return self._directory.invited(key, time()) is not None

    @staticmethod
    def _is_known(key: bytes, owner_of: Callable[[str], object]) -> bool:
        try:
            return owner_of(key.decode("ascii")) is not None
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # An exception here would end the ZAP handler and lock everybody out until the gateway is restarted.
            log.error("a key could not be looked up: %s", error)
            return False

    def user(self, key: str) -> User | None:
        """Return the user whose good key this is."""
        return self._directory.user_of(key)

    def shut_out(self, key: str, user: str) -> str:
        """Return why what ``user`` has opened with ``key`` must end, in words for that user; "" if it need not."""
        now = self.user(key)
        if now is not None and now.name == user:
            return ""
        if self._directory.is_revoked(key):
            return "The operator of this pool has revoked the key that opened this session."
        return f"The operator of this pool has removed the user {user}."

    def node(self, key: str) -> str | None:
        """Return the node whose agent has this key."""
        return self._directory.node_of(key)


def key_of(frames: Sequence[zmq.Frame]) -> str:
    """Return the public key (Z85) that the sender of ``frames`` showed; libzmq attaches it to every frame.

    Raises
    ------
    MalformedMessage
        If there is none, which a CURVE socket does not let happen.
    """
    try:
        return str(frames[-1].get("User-Id"))
    except zmq.ZMQError:
        raise MalformedMessage("The message comes without a key.") from None
