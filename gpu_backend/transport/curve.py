"""CURVE keys: making, keeping and reading them. Secret keys live in files that only their owner can read."""

from __future__ import annotations

import stat
import struct
from pathlib import Path
from typing import NamedTuple

import zmq
from zmq.utils import z85

from gpu_backend.transport.private_files import replace_private
from gpu_backend.wire.errors import NotAuthorized


class KeyPair(NamedTuple):
    """A CURVE key pair, each half 40 bytes of Z85."""

    public: bytes
    secret: bytes

    def __repr__(self) -> str:  # a key pair in a log or a traceback must not give itself away
        return f"KeyPair(public={self.public!r}, secret=...)"


def generate() -> KeyPair:
    """Return a new key pair."""
    return KeyPair(*zmq.curve_keypair())


def save(keys: KeyPair, path: Path) -> None:
    """Write ``keys`` to ``path`` with mode 0600, in a directory made with mode 0700. Replaces the file atomically."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # zmq.auth.create_certificates would leave the secret world-readable.
    replace_private(path, keys.public + b"\n" + keys.secret + b"\n")


def load(path: Path) -> KeyPair:
    """Return the key pair in ``path``.

    Raises
    ------
    NotAuthorized
        If there is no such file, if others can read it, or if it holds no key pair.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        lines = path.read_bytes().split()
    except OSError as error:
        raise NotAuthorized(f"No key at {path} ({error.strerror}). Run `workbench connect` to get one.") from None
    if mode & 0o077:
        raise NotAuthorized(f"The key {path} can be read by others (mode {mode:04o}). Run `chmod 600 {path}`.")
    if len(lines) != 2 or not _belong_together(*lines):
        raise NotAuthorized(f"{path} does not hold a key pair. Ask your operator for a new key.")
    return KeyPair(lines[0], lines[1])


def load_or_generate(path: Path) -> KeyPair:
    """Return the key pair in ``path``, made now if the file does not exist."""
    if not path.exists():
        save(generate(), path)
    return load(path)


def is_public_key(text: str) -> bool:
    """Tell whether ``text`` can be a public key: 32 bytes as 40 characters of Z85."""
    try:
        return len(text) == 40 and len(z85.decode(text.encode("ascii"))) == 32
    except (ValueError, KeyError, struct.error):  # the last for groups of characters above 32 bits
        return False


def _belong_together(public: bytes, secret: bytes) -> bool:
    try:
        return zmq.curve_public(secret) == public
    except (ValueError, zmq.ZMQError):
        return False
