"""For programs that know one session: the current client's."""

from __future__ import annotations

from kernelproxy.client import current
from kernelproxy.stream.session import Session

__all__ = ["adopt_session", "current_session", "open_session"]


def open_session(label: str = "", may_wait: bool = True) -> Session:
    """Open a session as `Client.open` does."""
    return current().open(label, may_wait)


def current_session() -> Session:
    """Return the session of the current client, opened on first use. Raises as `open_session` does."""
    return current().session


def adopt_session(session: Session | None) -> None:
    """Make ``session`` the current client's; None forgets the present one without closing it."""
    current().adopt(session)
