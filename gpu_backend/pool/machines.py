"""Which machines a pool has, for its operator on its head: invited, drained, removed. Changes count at once."""

from __future__ import annotations

from time import time
from typing import NamedTuple

from gpu_backend.gateway.directory import Directory, Node
from gpu_backend.pool import invitation
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.invitation import Invitation
from gpu_backend.pool.joined import NAME
from gpu_backend.pool.people import records_of
from gpu_backend.pool.state import PoolState
from gpu_backend.transport import curve
from gpu_backend.wire.bounds import invitation_hours
from gpu_backend.wire.errors import PoolRefusal, quoted

_HOUR = 3_600.0


class Invited(NamedTuple):
    """What the operator of a machine must be told, that it joins: by a safe way, for the token is a secret."""

    node: str
    address: str
    token: str
    #: Seconds since 1970.
    expires_at: float

    def __repr__(self) -> str:  # a token in a log or a traceback would be one that is given away
        return f"Invited(node={self.node!r}, address={self.address!r}, token=..., expires_at={self.expires_at!r})"


def invite(state: PoolState, name: str, hours: float) -> Invited:
    """Let a machine join as the node ``name``, once, within so many hours; an earlier invitation is good no more.

    Raises
    ------
    PoolRefusal
        If the pool hears no other machines, the name is none, or it is that of the pool's own machine; or if it
        cannot be good for so long.
    """
    state.need()
    try:
        invitation_hours(hours)
    except ValueError as error:
        raise PoolRefusal(f"--hours: {error}.") from None
    settings = pool_settings.read(state.settings_file)
    if not settings.nodes_host:
        raise PoolRefusal(
            f"This pool hears no other machines. Set nodes_host in {state.settings_file} to an address of this machine "
            "on which they reach it, and run `workbench pool reload`."
        )
    if not NAME.fullmatch(name):
        raise PoolRefusal(f"{quoted(name)} is no name of a machine: use up to 60 letters, digits and . _ -.")
    keys, expires_at = curve.generate(), time() + hours * _HOUR
    with records_of(state) as records:
        if any(node.name == name and node.joined_at is None for node in records.nodes()):
            raise PoolRefusal(f"{name} is this machine, which has the pool's gateway. Give the other another name.")
        records.invite(name, keys.public.decode(), expires_at)
    token = invitation.token_of(Invitation(curve.load(state.gateway_key).public, keys))
    host = settings.advertise_host or settings.nodes_host
    return Invited(name, f"tcp://{host}:{settings.nodes_port}", token, expires_at)


def drain(state: PoolState, name: str) -> None:
    """Let a node take no new sessions; those that it has go on.

    Raises
    ------
    PoolRefusal
        If there is no such node.
    """
    with records_of(state) as records:
        _need(records, name)
        records.drain_node(name, time())


def resume(state: PoolState, name: str) -> None:
    """Let a node that was drained take new sessions again.

    Raises
    ------
    PoolRefusal
        If there is no such node.
    """
    with records_of(state) as records:
        _need(records, name)
        records.drain_node(name, None)


def remove(state: PoolState, name: str) -> None:
    """Let a machine be no node any more: its key is good no more, and its sessions are lost within a second.

    Raises
    ------
    PoolRefusal
        If there is no such node, it is the pool's own machine, or it would be back at once.
    """
    cluster = pool_settings.read(state.settings_file).ray_address
    if cluster:
        raise PoolRefusal(
            f"Every node of the Ray cluster at {cluster} is a machine of this pool: take {quoted(name)} out of the "
            "cluster, or let it take no sessions with `workbench node drain`."
        )
    with records_of(state) as records:
        if _need(records, name).joined_at is None:
            raise PoolRefusal(f"{name} is this machine, which has the pool's gateway: `workbench pool down` ends it.")
        with records.together():
            records.remove_node(name)


def _need(records: Directory, name: str) -> Node:
    found = next((node for node in records.nodes() if node.name == name), None)
    if found is None:
        raise PoolRefusal(f"There is no node {quoted(name)} in this pool. `workbench node list` shows them.")
    return found
