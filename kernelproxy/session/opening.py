"""Opening a session: with the ticket that the provisioner took, else by asking the gateway for one."""

from __future__ import annotations

import secrets
from pathlib import Path

import msgspec

from gpu_backend.wire import control
from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import SessionLost
from kernelproxy.session import handover
from kernelproxy.session.granting import granted
from kernelproxy.session.lease import Lease
from kernelproxy.session.signs import Signs
from kernelproxy.session.wishes import Wishes
from kernelproxy.settings import ClientSettings


def asked_for(
    settings: ClientSettings, wishes: Wishes, signs: Signs, label: str, may_wait: bool, sessions: int = 1
) -> Lease:
    """Ask the gateway for a session and return the lease on it; raises as `kernelproxy.open_session` does.

    As many ``sessions`` are asked for at once; the lease knows the tickets of the others.
    """
    wish, memory_bytes = wishes.wished(settings)
    waiter = secrets.token_hex(8) if may_wait else ""
    wish = msgspec.structs.replace(wish, sessions=sessions)
    request = control.OpenSession(0, label or wishes.label, "", memory_bytes, wish, waiter)
    return Lease(granted(settings, request, signs), settings, wishes, signs)


def handed_over(path: Path, settings: ClientSettings, wishes: Wishes, signs: Signs, sessions: int = 1) -> Lease:
    """Open the session that we were handed in the file ``path``; if it has ended meanwhile, unused, another one.

    Where there is none yet, as many ``sessions`` are asked for at once.
    """
    handed = handover.read(path)
    if isinstance(handed, control.OpenSession):
        handed = _named(handed, wishes, settings, sessions)
    try:
        ticket = handed if isinstance(handed, Ticket) else granted(settings, handed, signs)
    except SessionLost:
        return _another(path, settings, wishes, signs, sessions)
    if isinstance(handed, control.OpenSession):
        _keep(ticket, path)
    try:
        return Lease(ticket, settings, wishes, signs, path)
    except SessionLost:
        return _another(path, settings, wishes, signs, sessions)
    except BaseException:  # an interrupt too: its place was given back, and whoever tries again asks for another
        handover.write(wishes.opening(settings), path)
        raise


def _another(path: Path, settings: ClientSettings, wishes: Wishes, signs: Signs, sessions: int) -> Lease:
    """Open a session in place of the one that we were handed, which nobody used for longer than its lease."""
    opening = wishes.opening(settings)
    handover.write(opening, path)
    ticket = granted(settings, _named(opening, wishes, settings, sessions), signs)
    _keep(ticket, path)
    return Lease(ticket, settings, wishes, signs, path)


def _named(
    opening: control.OpenSession, wishes: Wishes, settings: ClientSettings, sessions: int
) -> control.OpenSession:
    """Return how it is asked: under another name each time, as who has left the queue under one is not let in again."""
    wish = msgspec.structs.replace(wishes.wished(settings).wish, sessions=sessions)
    return msgspec.structs.replace(opening, wish=wish, waiter=secrets.token_hex(8))


def _keep(ticket: Ticket, path: Path) -> None:
    """Leave the ticket to the provisioner, which gives it back, or to the kernel after this one.

    The sessions beside it are this kernel's own and end with it.
    """
    handover.write(msgspec.structs.replace(ticket, beside=()), path)
