"""What a session is entitled to: set by the operator and, within their rights, by the user."""

from __future__ import annotations

from enum import StrEnum

import msgspec

__all__ = ["SessionClass", "SessionTerms"]


class SessionClass(StrEnum):
    """How a session wants to be treated. Policies that know no classes ignore it."""

    #: Keeps its speed, whatever the others do.
    PRODUCTION = "production"
    #: Somebody waits for each result.
    INTERACTIVE = "interactive"
    #: Takes what is left.
    BEST_EFFORT = "best-effort"


class SessionTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One session's part in the sharing of a device.

    Raises
    ------
    ValueError
        If a weight is not positive, or not ``0 <= request <= limit <= 1``.
    """

    session: str
    user: str
    group: str = ""
    user_weight: float = 1.0
    group_weight: float = 1.0
    kind: SessionClass = SessionClass.INTERACTIVE
    #: Guaranteed part of the device's time; 0 asks for no guarantee.
    request: float = 0.0
    #: Largest part of the device's time.
    limit: float = 1.0
    #: Higher goes first, where a policy looks at it: fair_share does among the sessions of one user.
    priority: int = 0

    def __post_init__(self) -> None:
        if not (self.user_weight > 0 and self.group_weight > 0):
            raise ValueError(f"The weights of session {self.session} must be positive.")
        if not 0 <= self.request <= self.limit <= 1 or self.limit == 0:
            raise ValueError(
                f"Session {self.session} has request {self.request} and limit {self.limit}; "
                "it must be 0 <= request <= limit <= 1, and the limit above 0."
            )
