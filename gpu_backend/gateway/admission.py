"""Who may have a session: limits against what is held already. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpu_backend.lifecycle.states import HELD, Session
from gpu_backend.wire.errors import RefusalCode


@dataclass(frozen=True, slots=True)
class Limits:
    """What one user may hold at a time; 0 means no limit."""

    sessions: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, and what to do."""

    code: RefusalCode
    message: str
    remedy: str


def admit(user: str, memory_bytes: int, sessions: Iterable[Session], limits: Limits) -> Refusal | None:
    """Return why ``user`` may not have another session with ``memory_bytes``; None if they may.

    Parameters
    ----------
    user
        Who asks.
    memory_bytes
        Device memory limit of the session asked for; 0 for no limit of its own.
    sessions
        All sessions of the pool.
    limits
        What one user may hold.
    """
    held = [session for session in sessions if session.user == user and session.state in HELD]
    if limits.sessions and len(held) >= limits.sessions:
        return Refusal(
            RefusalCode.QUOTA,
            f"You have {len(held)} of {limits.sessions} sessions that one user may have in this pool{_names(held)}.",
            "Shut down a kernel that you do not need (Running Terminals and Kernels), then try again.",
        )
    used = sum(session.memory_limit_bytes for session in held)
    if not limits.memory_bytes:
        return None
    if memory_bytes == 0:
        return Refusal(
            RefusalCode.QUOTA,
            f"A session without a memory limit was asked for; one user may have {_gib(limits.memory_bytes)} in all.",
            "Ask for a certain amount of memory.",
        )
    if used + memory_bytes > limits.memory_bytes:
        return Refusal(
            RefusalCode.QUOTA,
            f"Your {len(held)} sessions hold {_gib(used)} of the {_gib(limits.memory_bytes)} of device memory that one "
            f"user may have; this one asks for {_gib(memory_bytes)}.",
            "Shut down a kernel that you do not need, or ask for less memory.",
        )
    return None


def _names(held: list[Session]) -> str:
    labels = [session.label for session in held if session.label]
    return f" ({', '.join(labels[:5])}{', ...' if len(labels) > 5 else ''})" if labels else ""


def _gib(count: int) -> str:
    return f"{count / 2**30:.3g} GiB"
