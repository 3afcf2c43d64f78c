"""What a gateway is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpu_backend.gateway.entitlements import Entitlements
from gpu_backend.gateway.placing import DEFAULT_RULES
from gpu_backend.wire.clusters import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Settings of one gateway, fixed for its life."""

    #: The pool's name, for people.
    pool: str
    #: Version of the software, for people.
    version: str
    #: ZeroMQ endpoints for notebooks and the command line.
    client_endpoints: tuple[str, ...]
    #: ZeroMQ endpoints for agents.
    agent_endpoints: tuple[str, ...]
    #: What users and groups may hold, use and ask for unless something else is set for them.
    defaults: Entitlements = field(default_factory=Entitlements)
    #: Most sessions on one device.
    sessions_per_device: int
    #: Memory limit of a session that asks for none; 0 for no limit.
    default_memory_bytes: int
    #: How long a session's client may be silent.
    lease_seconds: float
    #: Within this time every request is answered. Clients wait for two seconds, and the way takes time as well.
    answer_seconds: float = 1.6
    #: An agent that was not heard for so long gets no new sessions. It reports once a second.
    node_silence_seconds: float = 5.0
    #: The agent of a machine that joined and was not heard for so long is taken for lost, with the node's sessions.
    node_lost_seconds: float = 20.0
    #: How long executors have to end when the pool goes down.
    stop_seconds: float = 10.0
    #: Loopback port on which Prometheus is answered; 0 for none.
    metrics_port: int = 0
    #: Whether its figures tell users apart.
    metrics_by_user: bool = False
    #: Whether users other than operators are refused where nothing keeps them apart.
    needs_walls: bool = False
    #: Whether a session may have several GPUs.
    gives_several_gpus: bool = False
    #: Whether sessions of users whose GPU time is used up are closed; else they run on what others leave.
    closes_over_quota: bool = False
    #: Policies under which a device divides by weights, so that shares can be of the pool and not of each device.
    steered_policies: frozenset[str] = frozenset()
    #: The rules of placement, the first first.
    placement: tuple[str, ...] = DEFAULT_RULES
    #: The Ray cluster of the pool's machines, as it is told to them; without an address there is none.
    cluster: Cluster = field(default_factory=lambda: Cluster(0))

    @property
    def engine(self) -> str:
        """What keeps the pool's machines together, in a word."""
        return "ray" if self.cluster.address else "local"
