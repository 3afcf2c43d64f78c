"""What an executor is told by its agent and its arbiter, and what it reports, over a Unix socket of one node."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpu_backend.wire.channels import TakeChannel
from gpu_backend.wire.control import Usage


class Assign(msgspec.Struct, frozen=True, array_like=True, tag="assign"):
    """Agent to a warm executor: you serve this session now. ``memory_rule`` as in `Launch`."""

    session: str
    epoch: int
    client_key: str
    memory_limit_bytes: int
    lease_seconds: float
    memory_rule: str = ""


class RenewLease(msgspec.Struct, frozen=True, array_like=True, tag="renew_lease"):
    """Agent to executor: you are still wanted for so long. Without it the executor ends by itself."""

    seconds: float


class Stop(msgspec.Struct, frozen=True, array_like=True, tag="stop"):
    """Agent to executor: end now. The notebook is told ``reason``."""

    reason: str


class TakeGate(msgspec.Struct, frozen=True, array_like=True, tag="take_gate"):
    """Arbiter to executor: obey me from now on. Three descriptors come with it: order page, right of way, bell.

    ``device`` is which of the executor's devices the arbiter is of.
    """

    device: int = 0


class Phase(StrEnum):
    """How far an executor is."""

    WARM = "warm"  #: device open, no session yet
    SERVING = "serving"  #: assigned to a session; its client may or may not be connected
    ENDING = "ending"  #: about to exit; ``detail`` says why


class Report(msgspec.Struct, frozen=True, array_like=True, tag="report"):
    """Executor to agent: sent on every change and with every lease renewal.

    ``idle_seconds`` is how long the notebook has not been heard of; the executor ends itself with phase "ending" when
    that passes the session's lease. With phase "ending", ``cause`` is an `EndCause` and ``detail`` says it in words.
    """

    phase: str
    session: str
    epoch: int
    pid: int
    used_bytes: int
    ops: int
    idle_seconds: float
    detail: str = ""
    cause: str = ""
    usage: Usage = Usage()


ToExecutorControl = Assign | RenewLease | Stop | TakeGate | TakeChannel
FromExecutorControl = Report
