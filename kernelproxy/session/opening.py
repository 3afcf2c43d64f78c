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


def asked_for(settings: ClientSettings, wishes: Wishes, signs: Signs, label: str, may_wait: bool) -> Lease:
    """Ask the gateway for a session and return the lease on it; raises as `kernelproxy.open_session` does."""
    wish, memory_bytes = wishes.wished(settings)
    waiter = secrets.token_hex(8) if may_wait else ""
    request = control.OpenSession(0, label or wishes.label, "", memory_bytes, wish, waiter)
    return Lease(granted(settings, request, signs), settings, wishes, signs)


def handed_over(path: Path, settings: ClientSettings, wishes: Wishes, signs: Signs) -> Lease:
    """Open the session that we were handed in the file ``path``; if it has ended meanwhile, unused, another one."""
    handed = handover.read(path)
    if isinstance(handed, control.OpenSession):
        # Another name each time: whoever has left the queue under one is not let in again under it.
        handed = msgspec.structs.replace(handed, wish=wishes.wished(settings).wish, waiter=secrets.token_hex(8))
    try:
        ticket = handed if isinstance(handed, Ticket) else granted(settings, handed, signs)
    except SessionLost:
        return _another(path, settings, wishes, signs)
    if isinstance(handed, control.OpenSession):
        handover.write(ticket, path)  # the provisioner gives it back, or to the kernel after this one
    try:
        return Lease(ticket, settings, wishes, signs, path)
    except SessionLost:
        return _another(path, settings, wishes, signs)
    except BaseException:  # an interrupt too: its place was given back, and whoever tries again asks for another
        handover.write(wishes.opening(settings), path)
        raise


def _another(path: Path, settings: ClientSettings, wishes: Wishes, signs: Signs) -> Lease:
    """Open a session in place of the one that we were handed, which nobody used for longer than its lease."""
    opening = wishes.opening(settings)
    handover.write(opening, path)
    ticket = granted(settings, msgspec.structs.replace(opening, waiter=secrets.token_hex(8)), signs)
    handover.write(ticket, path)
    return Lease(ticket, settings, wishes, signs, path)
