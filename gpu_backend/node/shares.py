"""Whose an executor is and what it is entitled to: kept in its directory, for the next agent and for the arbiter."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import msgspec

from gpu_backend.arbiter import gate
from gpu_backend.arbiter.terms import SessionTerms
from gpu_backend.wire.control import Assign, Terms

log = logging.getLogger("node.shares")

_SHARE = "share.json"
#: In memory wherever there is such a place: pages of a disk's files are written back, and stall their writers.
_MEMORY = Path("/dev/shm")


class Share(msgspec.Struct, frozen=True):
    """Who uses an executor, on which terms."""

    user: str
    terms: Terms


def note(directory: Path, share: Share) -> None:
    """Keep ``share`` in an executor's directory."""
    fresh = directory / f".{_SHARE}.{os.getpid()}"
    fresh.write_bytes(msgspec.json.encode(share))
    fresh.replace(directory / _SHARE)


def noted(directory: Path, order: Assign) -> Share:
    """Return what was kept for the executor in ``directory``; its client's key stands for a user that was not named."""
    try:
        return msgspec.json.decode((directory / _SHARE).read_bytes(), type=Share)
    except (OSError, msgspec.DecodeError):
        return Share(order.client_key, Terms())


def session_terms(order: Assign, share: Share) -> SessionTerms:
    """Return the terms as the arbiter takes them; the ordinary ones if the gateway's make no sense."""
    key = f"{order.session}/{order.epoch}"
    named = {name: getattr(share.terms, name) for name in Terms.__struct_fields__}
    try:
        return msgspec.convert({"session": key, "user": share.user, **named}, SessionTerms)
    except msgspec.ValidationError as error:
        log.error("session %s is shared on ordinary terms, because its own make no sense: %s", order.session, error)
        return SessionTerms(session=key, user=share.user, group=share.terms.group)


def page_of(directory: Path) -> Path:
    """Return the file of the page between an arbiter and the executor of ``directory``.

    Nobody else can guess it, for the directory's name is random and its parent private.
    """
    if not os.access(_MEMORY, os.W_OK | os.X_OK):
        return directory / "gate"
    name = hashlib.sha256(os.fsencode(directory)).hexdigest()[:24]
    return _MEMORY / f"gpu-workbench-{os.geteuid()}-{name}"


def make_page(directory: Path) -> Path:
    """Make that page, and return its file."""
    path = page_of(directory)
    gate.create(path)
    return path
