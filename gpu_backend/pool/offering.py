"""Whether a machine has what its settings insist on, tried before anything is ended for them."""

from __future__ import annotations

from pathlib import Path

from gpu_backend.node import inventory
from gpu_backend.node import settings as node_settings
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.wire.errors import PoolRefusal


def refuse_no_gpu(settings: PoolSettings, node: Path) -> None:
    """Go on only if there is a GPU where the settings insist on one: an agent that finds none offers nothing.

    Where the agent whose directory is ``node`` was told the same before, it has found out by itself: in another
    environment than ours, as of a service.

    Raises
    ------
    PoolRefusal
        If there is none; the message says why, and what to set.
    """
    if settings.devices != "cuda":
        return
    if (node / node_settings.CONFIG).exists() and node_settings.read(node).devices == "cuda":
        return
    try:
        inventory.devices(settings.devices, settings.cpu_devices)
    except PoolRefusal as error:
        raise PoolRefusal(f"{error} Nothing was changed.") from None
