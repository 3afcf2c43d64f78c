"""What happens to sessions, and what is then to be done. Plain values; nothing here acts."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpu_backend.lifecycle.states import Session
from gpu_backend.wire.wish import Wish

# --- events ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """A device of the pool."""

    node: str
    ordinal: int
    kind: str
    #: Why this one, in words.
    why: str = ""
    #: Further devices of the node that go with it.
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAdmitted:
    """A user may have a new session, there."""

    session: str
    user: str
    client_key: str
    label: str
    place: Place
    memory_limit_bytes: int
    lease_seconds: float
    opened_at: float
    wish: Wish = field(default_factory=Wish)
    waiter: str = ""
    has_promise: bool = True


@dataclass(frozen=True, slots=True)
class WishChanged:
    """The session wants to share its device in another way."""

    session: str
    wish: Wish


@dataclass(frozen=True, slots=True)
class ExecutorReady:
    """An executor serves the session under this epoch."""

    session: str
    epoch: int
    endpoints: tuple[str, ...]
    secret: str = field(repr=False)
    certificate: str


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """No executor could be had."""

    session: str
    epoch: int
    message: str


@dataclass(frozen=True, slots=True)
class ExecutorEnded:
    """The executor of the session is gone. ``is_final`` if by its client's will: nobody will come back for it."""

    session: str
    epoch: int
    is_final: bool
    detail: str


@dataclass(frozen=True, slots=True)
class TicketWanted:
    """The client asks for its way again. ``place`` is where a new executor would go; None if nowhere is room."""

    session: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class RestartWanted:
    """The client wants a fresh executor under the same lease, at ``place``."""

    session: str
    place: Place


@dataclass(frozen=True, slots=True)
class CloseWanted:
    """The session is to end, whoever wants it."""

    session: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveExecutor:
    """An executor that a node says it has. ``user`` is whose key it serves, empty if the pool knows no such user."""

    session: str
    epoch: int
    ordinal: int
    kind: str
    user: str
    client_key: str
    endpoints: tuple[str, ...]
    secret: str = field(repr=False)
    certificate: str
    memory_limit_bytes: int
    lease_seconds: float
    idle_seconds: float
    #: Whether the pool itself gave the node this session in this epoch, as its seal shows.
    is_sealed: bool
    #: Whether its notebook was ever heard.
    has_joined: bool = True
    #: Its further devices.
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeReported:
    """All executors that serve a session on ``node``. What is not listed is not there."""

    node: str
    executors: tuple[LiveExecutor, ...]
    #: Seconds since 1970, for sessions that are learned from it.
    reported_at: float


@dataclass(frozen=True, slots=True)
class NodeLost:
    """A node is gone with everything on it."""

    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Nothing happened but time."""


Event = (
    SessionAdmitted
    | WishChanged
    | ExecutorReady
    | LaunchFailed
    | ExecutorEnded
    | TicketWanted
    | RestartWanted
    | CloseWanted
    | NodeReported
    | NodeLost
    | TimePassed
)

# --- instructions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Save:
    """Put the session into the directory, before anything that follows is done."""

    session: Session


@dataclass(frozen=True, slots=True)
class Launch:
    """Ask the session's node for an executor under the session's epoch."""

    session: Session


@dataclass(frozen=True, slots=True)
class StopExecutor:
    """Tell a node to end the executor of this session and epoch."""

    node: str
    session: str
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class Grant:
    """Give the ticket to whoever waits for this session."""

    session: Session


@dataclass(frozen=True, slots=True)
class Refuse:
    """Tell whoever waits for this session that there is none."""

    session: str
    reason: str


Instruction = Save | Launch | StopExecutor | Grant | Refuse
