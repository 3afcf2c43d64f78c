"""The policies by name: those that come with the package, and those that others add."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from gpu_backend.arbiter.policies.antman import AntMan
from gpu_backend.arbiter.policies.base import DividesByWeights, SharingPolicy
from gpu_backend.arbiter.policies.driver import Driver
from gpu_backend.arbiter.policies.fair_share import FairShare
from gpu_backend.arbiter.policies.fifo import Fifo
from gpu_backend.arbiter.policies.gaiagpu import GaiaGpu
from gpu_backend.arbiter.policies.gemini import Gemini
from gpu_backend.arbiter.policies.iadeep import IADeep
from gpu_backend.arbiter.policies.kubeshare import KubeShare
from gpu_backend.arbiter.policies.muxflow import MuxFlow
from gpu_backend.arbiter.policies.orion import Orion
from gpu_backend.arbiter.policies.paella import Paella
from gpu_backend.arbiter.policies.reef import Reef
from gpu_backend.arbiter.policies.tgs import Tgs

__all__ = ["BUILT_IN", "ENTRY_POINTS", "UnknownPolicy", "make", "names", "steered"]

#: Group of entry points under which another package offers policies: a name, and a callable that makes one.
ENTRY_POINTS = "gpu_workbench.policies"

#: What comes with the package; the first is the default.
BUILT_IN: dict[str, Callable[[], SharingPolicy]] = {
    kind.name: kind
    for kind in (
        FairShare, Driver, Fifo, Gemini, KubeShare, GaiaGpu, Tgs, AntMan, Reef, Paella, Orion, MuxFlow, IADeep
    )
}  # fmt: skip


class UnknownPolicy(LookupError):
    """No policy of that name is installed. The message names those that are."""


def names() -> tuple[str, ...]:
    """Return the names of all policies: our own, then those of other packages."""
    others = {point.name for point in entry_points(group=ENTRY_POINTS)} - BUILT_IN.keys()
    return (*BUILT_IN, *sorted(others))


def steered() -> frozenset[str]:
    """Return the names of the policies that a pool of several devices can steer: those that divide by weights."""
    return frozenset(name for name in names() if isinstance(make(name), DividesByWeights))


def make(name: str) -> SharingPolicy:
    """Return a new policy object for one device. A built-in name cannot be taken over by another package.

    Raises
    ------
    UnknownPolicy
        If nobody offers ``name``.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]()
    for point in entry_points(group=ENTRY_POINTS, name=name):
        policy: SharingPolicy = point.load()()
        return policy
    raise UnknownPolicy(f"There is no policy {name!r}. Installed are: {', '.join(names())}.")
