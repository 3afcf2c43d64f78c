"""What ``workbench doctor`` looks at where a pool's machines are kept together by Ray, on its head and on a node."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_backend.engine.detached import read_identity
from gpu_backend.engine.ray_cluster import RayCluster, need_ray
from gpu_backend.pool import clusters, joined, running
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.own_root import default_root
from gpu_backend.pool.state import PoolState, at
from gpu_backend.wire.errors import PoolError, PoolRefusal
from workbench.finding import Finding, State

_SUBJECT = "Ray cluster"
_TO_ANOTHER = "Put the cluster's own token there (`ray get-auth-token`) and run `workbench pool reload`."
_TO_ITS_OWN = "Run `workbench pool down` and `workbench pool up`: its head was started with another one."
_TO_A_NODE = "Run `workbench node up`, which asks the pool's head for it again."


def of_head(state: PoolState | None = None) -> Iterator[Finding]:
    """Check the Ray cluster of the pool on this machine, if one is up and has one."""
    state = state or at(default_root())
    if read_identity(state.process_file("supervisor")) is None:
        return
    try:
        settings = pool_settings.read(state.settings_file)
    except PoolError as error:
        yield Finding("pool's settings", State.PROBLEM, str(error))
        return
    if settings.engine == "ray":
        yield _looked(clusters.of_head(state, settings), _TO_ANOTHER if settings.ray_address else _TO_ITS_OWN)


def of_node(state: PoolState) -> Iterator[Finding]:
    """Check the way of this machine, which has joined a pool on Ray, to the pool's cluster, and its own part of it."""
    try:
        cluster = clusters.of_node(state, joined.read_settings(state))
    except PoolError as error:
        yield Finding(_SUBJECT, State.PROBLEM, str(error))
        return
    found = _looked(cluster, _TO_A_NODE)
    is_down = not any(one.role == "ray" for one in running.processes(state))
    if found.state is State.OK and is_down and read_identity(state.process_file("supervisor")) is not None:
        words = f"Ray does not come up on this machine: see {state.logs / 'ray.log'}"
        found = Finding(_SUBJECT, State.PROBLEM, words, "Mend what it says; its keeper goes on trying.")
    yield found


def _looked(cluster: RayCluster, other_token: str) -> Finding:
    try:
        need_ray()
    except PoolRefusal as error:
        return Finding(_SUBJECT, State.PROBLEM, str(error))
    looked = cluster.look()
    trouble = clusters.trouble_of(cluster, looked, other_token)
    if trouble is not None:
        return Finding(_SUBJECT, State.PROBLEM, trouble.found, trouble.remedy)
    return Finding(_SUBJECT, State.OK, f"{cluster.address} lets this machine in: Ray {looked.ray} on {looked.python}")
