"""What an agent is told when it starts: the file ``config.json`` in its state directory."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from gpu_backend.executor.config import KEPT_BYTES, PASSES, PassName
from gpu_backend.node.mps_files import MpsSharing
from gpu_backend.wire.errors import PoolRefusal

CONFIG = "config.json"
#: The policy that needs no arbiter: the driver's own turns.
NO_GATE = "driver"


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one agent, fixed for its life."""

    #: The node's name, as the gateway knows it by the agent's key.
    node: str
    #: Where the gateway hears agents.
    gateway: str
    #: The gateway's public CURVE key (Z85).
    gateway_key: str
    #: The agent's own key pair, a file of mode 0600.
    key_file: str
    #: A private directory with a short path, for the executors' directories: ipc paths have at most 107 bytes.
    runtime_dir: str
    #: Where the logs of executors that crashed are kept.
    log_dir: str
    #: Where compiled kernels are kept, of each user apart.
    cache_dir: str
    #: Further directories of the pool that no executor may see.
    private: tuple[str, ...] = ()
    #: Whether executors are shut in, where the system can.
    has_walls: bool = True
    #: Further directories that executors may read.
    sandbox_reads: tuple[str, ...] = ()
    #: Whether an executor on several GPUs may make the calls that CUDA needs for it; see `executor.sandbox.Walls`.
    gives_several_gpus: bool = False
    #: "auto" (GPUs if there are any that CuPy can use, else the CPU), "cuda" or "cpu".
    devices: str = "auto"
    #: The optimisations of the op stream that executors use.
    passes: tuple[PassName, ...] = PASSES
    #: Most bytes of uploads that an executor keeps, so that they need not be sent again.
    kept_bytes: int = KEPT_BYTES
    #: UUIDs of devices on which nobody gets a session any more.
    withheld_devices: tuple[str, ...] = ()
    #: How many CPU devices the node offers where it offers the CPU.
    cpu_devices: int = 1
    #: Executors kept ready per device. Each holds a CUDA context: some 560 MB of GPU memory.
    warm_count: int = 1
    #: How devices are shared: the name of a policy.
    policy: str = "fair_share"
    #: Other policies for some of the devices, by ordinal.
    device_policies: dict[int, str] = {}
    #: The devices that are shared by MPS, by ordinal: there are no turns, and no policy.
    mps_devices: dict[int, MpsSharing] = {}
    #: For how long an op that runs when its session's turn ends may go on while others want the device, seconds; then
    #: its executor is ended. 0 for ever.
    overrun_seconds: float = 3600.0
    #: Address that executors listen on for notebooks of other hosts.
    bind_host: str = "127.0.0.1"
    #: The first and the last TCP port that executors may listen on; 0 and 0 for any that is free.
    executor_ports: tuple[int, int] = (0, 0)
    #: Name or address under which notebooks of other hosts reach this node; empty for ``bind_host``.
    advertise_host: str = ""
    #: Without their agent for this long, executors end. An agent is back within seconds.
    orphan_seconds: float = 120.0
    #: How long an executor may take to come up.
    start_seconds: float = 60.0
    #: How long an executor has to end after it was told to, before it is killed.
    stop_seconds: float = 5.0
    #: How long executors beyond ``warm_count`` are kept ready.
    linger_seconds: float = 60.0
    #: The command that runs an executor; its directory is appended.
    executor_command: tuple[str, ...] = (sys.executable, "-m", "gpu_backend.executor")
    #: The command that runs the arbiter of a device; its directory is appended.
    arbiter_command: tuple[str, ...] = (sys.executable, "-m", "gpu_backend.arbiter")

    def withholds(self, uuid: str) -> bool:
        """Tell whether nobody gets a session on a device any more."""
        return uuid in self.withheld_devices

    def kept_ready(self, uuid: str) -> int:
        """Return how many executors are kept ready on a device."""
        return 0 if self.withholds(uuid) else self.warm_count

    def policy_of(self, ordinal: int) -> str:
        """Return the name of the policy by which a device is shared."""
        if ordinal in self.mps_devices:
            return NO_GATE
        return self.device_policies.get(ordinal, self.policy)


class _Named(msgspec.Struct):
    node: str


def name_in(state: Path) -> str:
    """Return the node's name in the state directory of an agent, of whatever version the rest is; "" for none."""
    try:
        return msgspec.json.decode((state / CONFIG).read_bytes(), type=_Named).node
    except (OSError, msgspec.DecodeError):
        return ""


def read(state: Path) -> NodeSettings:
    """Return the settings in the state directory of an agent.

    Raises
    ------
    PoolRefusal
        If they cannot be read or do not fit.
    """
    try:
        return msgspec.json.decode((state / CONFIG).read_bytes(), type=NodeSettings)
    except (OSError, msgspec.DecodeError) as error:
        raise PoolRefusal(f"The agent has no settings in {state}: {error}. Start it by `workbench pool up`.") from None
