"""The token of an invitation: what a machine must hold to join a pool, once. It names the pool's key, and brings one.

The machine shows the key that it brings at the agents' door, and accepts nobody there but the pool with that key; so
the token is never sent. What it joins with is a key of its own, which nobody else ever has.
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

import zmq
from zmq.utils import z85

from gpu_backend.transport.curve import KeyPair
from gpu_backend.wire.errors import PoolRefusal

_PREFIX = "node-"
_KEY_BYTES = 32


class Invitation(NamedTuple):
    """The pool's public key (Z85), and the key pair of the invitation."""

    server_key: bytes
    keys: KeyPair

    def __repr__(self) -> str:
        return f"Invitation(server_key={self.server_key!r}, keys=...)"


def token_of(invitation: Invitation) -> str:
    """Return the token of an invitation: letters, digits, hyphens and underscores."""
    raw = z85.decode(invitation.server_key) + z85.decode(invitation.keys.secret)
    return _PREFIX + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read(token: str) -> Invitation:
    """Return the invitation of a token.

    Raises
    ------
    PoolRefusal
        If it is none, or not all of one.
    """
    text = token.strip()
    try:
        raw = base64.b64decode(text.removeprefix(_PREFIX) + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if not text.startswith(_PREFIX) or len(raw) != 2 * _KEY_BYTES:
        raise PoolRefusal(
            "This is no token of an invitation, or not all of one: it begins with `node-`, and "
            "`workbench node invite NAME` on the pool's head shows it."
        )
    secret = z85.encode(raw[_KEY_BYTES:])
    return Invitation(z85.encode(raw[:_KEY_BYTES]), KeyPair(zmq.curve_public(secret), secret))
