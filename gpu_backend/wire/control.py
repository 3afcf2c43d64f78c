"""The messages of the control plane: notebook to gateway, gateway to agent.

Requests and answers carry a ``request`` number, so that an answer that comes late is not taken for another's.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpu_backend.wire.channels import DialChannel, OpenChannel
from gpu_backend.wire.clusters import Cluster
from gpu_backend.wire.devices import DeviceReport
from gpu_backend.wire.groups import Group, JoinGroup
from gpu_backend.wire.secrecy import HoldsSecret
from gpu_backend.wire.views import Membership, PoolView, UsageView
from gpu_backend.wire.wish import Wish

# --- notebook, provisioner or command line -> gateway -------------------------------------------------------------


class OpenSession(msgspec.Struct, frozen=True, array_like=True, tag="open_session"):
    """I want a session. Answered by ``Ticket``, ``Queued`` or ``Denied``, within two seconds.

    ``label`` is for people (the notebook's path) and is shown to its owner only. ``device_kind`` is "cuda", "cpu" or
    "" for whatever the pool has. ``memory_bytes`` 0 asks for the pool's default limit. ``waiter`` is a random name
    under which the asker waits if the pool is full, by asking again and again; without one a full pool is a refusal.
    """

    request: int
    label: str
    device_kind: str = ""
    memory_bytes: int = 0
    wish: Wish = Wish()
    waiter: str = ""


class RenewTicket(msgspec.Struct, frozen=True, array_like=True, tag="renew_ticket"):
    """Where is my session now? Asked after the connection to its executor was lost. Answered like `OpenSession`.

    A session that lost its executor waits for a place under its own name if ``may_wait``.
    """

    request: int
    session: str
    may_wait: bool = False


class RestartSession(msgspec.Struct, frozen=True, array_like=True, tag="restart_session"):
    """Keep the lease, drop the arrays: a fresh executor under the next epoch. Answered like `RenewTicket`."""

    request: int
    session: str
    may_wait: bool = False


class CloseSession(msgspec.Struct, frozen=True, array_like=True, tag="close_session"):
    """The notebook is gone for good. Idempotent. Answered by ``Done``."""

    request: int
    session: str


class SetWish(msgspec.Struct, frozen=True, array_like=True, tag="set_wish"):
    """My session wants to share its device in another way from now on. Answered by ``Done`` or ``Denied``."""

    request: int
    session: str
    wish: Wish


class LeaveQueue(msgspec.Struct, frozen=True, array_like=True, tag="leave_queue"):
    """I do not wait any more; a session that was opened for me just now is closed. Idempotent. Answered by ``Done``."""

    request: int
    waiter: str


class AskUsage(msgspec.Struct, frozen=True, array_like=True, tag="ask_usage"):
    """What was used since the day ``since`` ("2026-01-31", "" for ever)? Answered by ``UsageView``.

    ``by`` is "user", "group", "session", "notebook", "day" or "class" (of ops).
    """

    request: int
    by: str = "user"
    since: str = ""


class AskPool(msgspec.Struct, frozen=True, array_like=True, tag="ask_pool"):
    """How is the pool? Answered by ``PoolView``. Other users' labels and keys are left out of it."""

    request: int


class StopPool(msgspec.Struct, frozen=True, array_like=True, tag="stop_pool"):
    """End every session and the pool itself. For its operator only. Answered by ``Done``."""

    request: int


class Ticket(HoldsSecret, frozen=True, array_like=True, tag="ticket"):
    """The way to an executor: where, how to know it and be known there, which epoch.

    ``endpoints`` are in order of preference: ``unix-abstract://PLACE/NAME`` of one host and network, ``tls://HOST:PORT``
    for all others. ``secret`` is what both sides prove to know: 32 bytes in hexadecimal. ``certificate`` is the SHA-256
    of the executor's certificate, in hexadecimal. ``former_end`` says why the pool ended the session's executor before
    this one, if it did. ``beside`` are the tickets of the other sessions that were asked for with this one.
    """

    request: int
    session: str
    epoch: int
    endpoints: tuple[str, ...]
    secret: str
    certificate: str
    device: str
    device_kind: str
    memory_limit_bytes: int
    lease_seconds: float
    former_end: str = ""
    beside: tuple[Ticket, ...] = ()


class Queued(msgspec.Struct, frozen=True, array_like=True, tag="queued"):
    """Not yet: the pool is full and you wait. Ask the same again; whoever is not heard for some seconds has left.

    ``place`` counts from 1, of ``length`` that wait. ``expected_seconds`` is a guess from the lengths of recent
    sessions, negative if there were too few. ``reason`` says what is full.
    """

    request: int
    place: int
    length: int
    expected_seconds: float
    reason: str


class Denied(msgspec.Struct, frozen=True, array_like=True, tag="denied"):
    """The request was not granted. ``message`` says why, ``remedy`` what the user can do."""

    request: int
    code: str
    message: str
    remedy: str = ""


class Done(msgspec.Struct, frozen=True, array_like=True, tag="done"):
    """The request was carried out and has no other answer."""

    request: int


ToGateway = (
    OpenSession | RenewTicket | RestartSession | CloseSession | SetWish | LeaveQueue | OpenChannel | JoinGroup | AskPool
    | AskUsage | StopPool
)  # fmt: skip
FromGateway = Ticket | Queued | Denied | Done | Group | PoolView | UsageView | Membership | Cluster

# --- agent <-> gateway ----------------------------------------------------------------------------------------------


class Terms(msgspec.Struct, frozen=True, array_like=True):
    """A session's part in the sharing of its device, as the gateway grants it. See ``gpu_backend.gate.terms``."""

    group: str = ""
    user_weight: float = 1.0
    group_weight: float = 1.0
    kind: str = "interactive"
    request: float = 0.0
    limit: float = 1.0
    priority: int = 0


class Usage(msgspec.Struct, frozen=True, array_like=True):
    """What an executor has used since it was assigned its session. Only grows."""

    gpu_seconds: float = 0.0
    peak_bytes: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    #: GPU seconds by class of op, in the order of `op_classes.OP_CLASSES`; empty if the executor does not tell.
    by_class: tuple[float, ...] = ()


class Booked(msgspec.Struct, frozen=True, array_like=True):
    """What the arbiter of an executor's device has on its books of it, where the executor cannot write.

    ``used_seconds``, and ``wanted_seconds`` as far as it said so, up to ``at_seconds`` by its node's clock: 0 if none.
    All only grow, but for ``unused_seconds``: for how long anybody wanted its device and nobody used it, as is known.
    """

    used_seconds: float = 0.0
    wanted_seconds: float = 0.0
    at_seconds: float = 0.0
    unused_seconds: float = 0.0


class Launch(msgspec.Struct, frozen=True, array_like=True, tag="launch"):
    """Gateway to agent: have an executor serve this session on that device. Idempotent by session and epoch.

    Answered by a ``NodeReport`` that lists the executor with the same ``seal``, or by ``LaunchFailed``. ``memory_rule``
    says in words whose limit the session's memory limit is, for its notebook when the memory is full. ``user_since``
    tells a user from one who had the same name before. ``others`` are further devices that the executor has as well;
    the memory limit is that of each.
    """

    session: str
    epoch: int
    ordinal: int
    client_key: str
    memory_limit_bytes: int
    lease_seconds: float
    user: str = ""
    terms: Terms = Terms()
    memory_rule: str = ""
    seal: str = ""
    user_since: str = ""
    others: tuple[int, ...] = ()


class SetTerms(msgspec.Struct, frozen=True, array_like=True, tag="set_terms"):
    """Gateway to agent: the session is entitled to something else from now on. Idempotent."""

    session: str
    terms: Terms


class StopExecutor(msgspec.Struct, frozen=True, array_like=True, tag="stop_executor"):
    """Gateway to agent: end the executor of this session and epoch; a launch under way is given up. Idempotent."""

    session: str
    epoch: int
    reason: str


class StopNode(msgspec.Struct, frozen=True, array_like=True, tag="stop_node"):
    """Gateway to agent: end every executor, and start none any more."""

    reason: str


class ExecutorReport(HoldsSecret, frozen=True, array_like=True):
    """An executor that serves a session, what its ticket says, and the seal with which its node was given it.

    ``others`` are its further devices, ``others_booked`` what is on their books; ``held`` is what it holds on each.
    """

    session: str
    epoch: int
    ordinal: int
    client_key: str
    endpoints: tuple[str, ...]
    secret: str
    certificate: str
    memory_limit_bytes: int
    lease_seconds: float
    used_bytes: int
    ops: int
    idle_seconds: float
    usage: Usage = Usage()
    booked: Booked = Booked()
    seal: str = ""
    others: tuple[int, ...] = ()
    others_booked: tuple[Booked, ...] = ()
    held: tuple[int, ...] = ()


class NodeReport(msgspec.Struct, frozen=True, array_like=True, tag="node_report"):
    """Agent to gateway: everything on this node, once a second and after every change.

    Each report is the whole truth, so a lost one does no harm and a restarted gateway learns all from the first.
    ``processes`` counts all executor processes, those that start, wait or end among them. ``version`` is that of the
    software, ``clock`` the time by the node's own clock in seconds since 1970, 0 if it does not tell.
    """

    devices: tuple[DeviceReport, ...]
    executors: tuple[ExecutorReport, ...]
    processes: int
    version: str = ""
    clock: float = 0.0


class LaunchFailed(msgspec.Struct, frozen=True, array_like=True, tag="launch_failed"):
    """Agent to gateway: no executor could be had for the session."""

    session: str
    epoch: int
    message: str


class EndCause(StrEnum):
    """Why an executor ended."""

    RELEASED = "released"  #: its client said ``Bye``
    LEASE_LAPSED = "lease_lapsed"  #: its client was not heard for the session's lease
    CLIENT_ENDED = "client_ended"  #: the process that owned the session has ended without a ``Bye``
    STOPPED = "stopped"  #: its agent said ``Stop``
    KILLED = "killed"  #: its agent said ``Stop``, and killed it as it did not hear: it was in the middle of an op
    ORPHANED = "orphaned"  #: its agent was not heard for ``orphan_seconds``
    DEVICE_FAULT = "device_fault"  #: its device is unusable for this process (a sticky CUDA error)
    EVICTED = "evicted"  #: its arbiter ended it: it computed though its gate was shut
    CRASHED = "crashed"  #: it died without a word


class ExecutorEnded(msgspec.Struct, frozen=True, array_like=True, tag="executor_ended"):
    """Agent to gateway: the executor of this session and epoch is gone. ``cause`` is an `EndCause`.

    A ``NodeReport`` that still lists it, with all that it used, goes before.
    """

    session: str
    epoch: int
    cause: str
    detail: str


ToAgent = Launch | SetTerms | StopExecutor | StopNode | DialChannel
FromAgent = NodeReport | LaunchFailed | ExecutorEnded
