"""Whether a machine has what its settings insist on, tried before anything is ended for them."""

from __future__ import annotations

from gpu_backend.node import inventory
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.wire.errors import PoolRefusal


def refuse_no_gpu(settings: PoolSettings) -> None:
    """Go on only if there is a GPU where the settings insist on one: an agent that finds none offers nothing.

    Raises
    ------
    PoolRefusal
        If there is none; the message says why, and what to set.
    """
    if settings.devices != "cuda":
        return
    try:
        inventory.devices(settings.devices, settings.cpu_devices)
    except PoolRefusal as error:
        raise PoolRefusal(f"{error} Nothing was changed.") from None
