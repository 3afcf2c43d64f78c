"""What a launcher tells the executor that it starts: the file ``config.json`` in the executor's directory.

The agent is its only writer; agent and executor read it by the same description, so neither can mean what the other
does not know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import msgspec

from gpu_backend.engine.detached import ProcessId, write_identity
from gpu_backend.executor.sandbox.walls import Walls
from gpu_backend.wire.secrecy import HoldsSecret

#: The files of an executor's directory that its launcher and itself agree on.
CONFIG, PROCESS = "config.json", "process.json"
#: The folder there that is the executor's own.
OWN = "own"
#: In that folder: its certificate and the key to it, for notebooks of other hosts.
CERTIFICATE = "tls.pem"
#: The socket there, for whoever gives orders.
CONTROL = "control"

#: An optimisation of the op stream.
PassName = Literal["store", "reuse", "segments", "products", "replay", "reductions"]
#: All of them, in the order in which they are asked.
PASSES: tuple[PassName, ...] = get_args(PassName)
#: How much of what was uploaded is kept unless a pool says otherwise, bytes.
KEPT_BYTES = 256 << 20


class Descriptors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers of the descriptors that were handed over: sockets that listen already."""

    #: Unix stream socket, for notebooks of this host.
    local: int
    #: Unix socket of whole messages, for the agent and the arbiter.
    control: int
    #: TCP socket, for notebooks of other hosts.
    far: int
    #: Memory in which it says what it used and what waits: its report page, of its first device.
    report: int
    #: The report pages of its other devices.
    other_reports: tuple[int, ...] = ()

    @property
    def reports(self) -> tuple[int, ...]:
        """The report pages, in the order of the devices."""
        return (self.report, *self.other_reports)

    @property
    def numbers(self) -> tuple[int, ...]:
        """All of them."""
        return (self.local, self.control, self.far, *self.reports)


class ExecutorConfig(HoldsSecret, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one executor, fixed for its life."""

    #: "cuda" or "cpu".
    device_kind: str
    #: Which device of that kind, the first of them if it has several.
    ordinal: int = 0
    #: How many devices it has.
    devices: int = 1
    #: Their numbers on the node.
    on_node: tuple[int, ...] = ()
    #: Its own directory: where it works, and the only place where it may write.
    own: str
    #: The walls around it; none where the system has none, or the pool's settings do without.
    walls: Walls | None = None
    #: The public CURVE key (Z85) of the agent that started it: another pool's agent leaves it alone.
    agent_key: str
    #: What it listens on, and on which descriptors.
    endpoints: tuple[str, ...]
    descriptors: Descriptors
    #: The folder of kernels that the pool compiles beforehand for GPUs of this kind; it may read it. Empty for none.
    prepared: str = ""
    #: The group whose sessions share its fate: all of them reach their device through one MPS daemon. Empty for none.
    group: str = ""
    #: As what the agent knows that daemon.
    daemon: str = ""
    #: What notebooks prove to know, and it to them: 32 bytes in hexadecimal.
    secret: str
    #: SHA-256 of its certificate, in hexadecimal.
    certificate: str
    #: Most memory of each device that may be held before a session says otherwise; 0 for no limit.
    memory_limit_bytes: int = 0
    #: Whether its device has an arbiter, which then hands its pages over; else the gate is always open.
    has_arbiter: bool = True
    #: Without a word from the agent for this long the executor ends.
    orphan_seconds: float = 120.0
    #: Most ops that a notebook may have under way.
    credit_ops: int = 16_384
    #: Most bytes of uploads that a notebook may have under way.
    credit_bytes: int = 256 << 20
    #: Most bytes of what a notebook of another host has uploaded that are kept, so that they need not be sent again:
    #: host memory, taken as it is used.
    kept_bytes: int = KEPT_BYTES
    #: The optimisations of the op stream that are used; without any each op is run as it came. Results are the same.
    passes: tuple[PassName, ...] = PASSES


def read(directory: Path) -> ExecutorConfig:
    """Return the configuration in ``directory``.

    Raises
    ------
    msgspec.DecodeError
        If the file does not fit.
    OSError
        If it cannot be read.
    """
    return msgspec.json.decode((directory / CONFIG).read_bytes(), type=ExecutorConfig)


def note_process(directory: Path) -> None:
    """Note this process in ``directory``: whoever started it may have died before doing so."""
    write_identity(directory / PROCESS, ProcessId.mine())
