"""Two processes prove to each other that they know the same secret, without saying it.

The executor, which listens, opens with a nonce. Who connects answers with a nonce and a MAC; only if that is right does
the executor compute anything with the secret for the other to see: its own MAC. So whoever does not know the secret
gets nothing to work with. Each MAC covers both nonces, whose it is, and the way they speak on, so that none is of use
a second time, to the other side, or on another way.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence

from gpu_backend.wire.version import MAGIC, PROTOCOL_VERSION

#: The secret that a ticket brings, bytes.
SECRET_BYTES = 32
_NONCE_BYTES = 32
_MAC_BYTES = 32
_VERSION = bytes((MAGIC, PROTOCOL_VERSION))
#: How much each of the three messages is.
OPENING_BYTES = len(_VERSION) + _NONCE_BYTES
ANSWER_BYTES = _NONCE_BYTES + _MAC_BYTES
VERDICT_BYTES = _MAC_BYTES
#: By what a connection is known to both of its sides: the nonce of the one that connects.
NAME_BYTES = _NONCE_BYTES
#: The verdict on an answer that is wrong: no MAC is that.
REFUSAL = bytes(VERDICT_BYTES)
#: The way of a socket that only this host's system carries. A way that is encrypted is named by its certificate.
LOCAL_WAY = b"local"

_LISTENS, _CONNECTS = b"listens", b"connects"
_CHANNEL = b"gpu-workbench: a channel from another executor"


class UnknownVersion(ConnectionError):
    """The opening is not that of an executor of this version."""


def channel_secret(secret: bytes) -> bytes:
    """Return what another executor of the same user proves to know, where notebooks prove to know ``secret``.

    It follows from that and does not lead back to it: who knows it is let in for a channel, and for nothing else.
    """
    return hmac.digest(secret, _CHANNEL, "sha256")


class Listening:
    """The half of the side that listens; for one connection. ``known`` are the secrets, one of which it is."""

    def __init__(self, known: Sequence[bytes], way: bytes) -> None:
        self._secrets, self._way = tuple(known), way
        self._nonce = secrets.token_bytes(_NONCE_BYTES)
        #: What to send first.
        self.opening = _VERSION + self._nonce
        #: Which of the secrets was proved; None while none is.
        self.proved: int | None = None

    def verdict(self, answer: bytes) -> bytes:
        """Return what to send to whoever gave this ``answer``: our own proof if theirs is right, else `REFUSAL`."""
        nonces, said = self._nonce + answer[:_NONCE_BYTES], answer[_NONCE_BYTES:]
        for number, secret in enumerate(self._secrets):
            if hmac.compare_digest(said, _mac(secret, _CONNECTS, self._way, nonces)):
                self.proved = number
                return _mac(secret, _LISTENS, self._way, nonces)
        return REFUSAL


class Connecting:
    """The half of the side that connects.

    Raises
    ------
    UnknownVersion
        If nothing that this side can answer sent the ``opening``.
    """

    def __init__(self, secret: bytes, way: bytes, opening: bytes) -> None:
        if len(opening) != OPENING_BYTES or not opening.startswith(_VERSION):
            raise UnknownVersion("what answers there is no executor of this version")
        nonce = secrets.token_bytes(_NONCE_BYTES)
        nonces = opening[len(_VERSION) :] + nonce
        self._expected = _mac(secret, _LISTENS, way, nonces)
        #: What both sides know the connection by.
        self.name = nonce
        #: What to answer.
        self.answer = nonce + _mac(secret, _CONNECTS, way, nonces)

    def is_proved_by(self, verdict: bytes) -> bool:
        """Tell whether the other side knows the secret as well."""
        return hmac.compare_digest(verdict, self._expected)


def _mac(secret: bytes, role: bytes, way: bytes, nonces: bytes) -> bytes:
    parts = (b"gpu-workbench", _VERSION, role, way, nonces)
    return hmac.digest(secret, b"".join(len(part).to_bytes(2, "little") + part for part in parts), "sha256")
