"""Whose an executor is and what it is entitled to: kept in its directory, for the next agent and for the arbiter."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec

from gpu_backend.gate.terms import SessionTerms
from gpu_backend.wire.control import Terms
from gpu_backend.wire.orders import Assign

log = logging.getLogger("node.shares")

_SHARE = "share.json"


class Share(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who uses an executor, on which terms, and the gateway's seal of having given it to them here.

    ``user_since`` tells the user from one who had the same name before.
    """

    user: str
    terms: Terms
    seal: str = ""
    user_since: str = ""


def note(directory: Path, share: Share) -> None:
    """Keep ``share`` in an executor's directory."""
    fresh = directory / f".{_SHARE}.{os.getpid()}"
    fresh.write_bytes(msgspec.json.encode(share))
    fresh.replace(directory / _SHARE)


def noted(directory: Path, order: Assign) -> Share:
    """Return what was kept for the executor in ``directory``; its client's key stands for a user that was not named."""
    try:
        return msgspec.json.decode((directory / _SHARE).read_bytes(), type=Share)
    except FileNotFoundError:
        return Share(order.client_key, Terms())
    except (OSError, msgspec.DecodeError) as error:
        log.error("whose session %s is cannot be read, so it is on ordinary terms: %s", order.session, error)
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
