"""Results lie in memory as the notebook proved: NumPy and SciPy give some in another order than CuPy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.wire.errors import ProtocolError
from gpu_backend.wire.memory_order import axes_of, holds, strides_of

__all__ = ["LayingOut"]


class LayingOut:
    """Sees to it that arrays lie as the notebook believes, by copying those that do not.

    Parameters
    ----------
    resolve
        Gives the device's object of a public name.
    """

    def __init__(self, device: Device, resolve: Callable[[str], Any]) -> None:
        self._device = device
        self._resolve = resolve

    def results(self, orders: Sequence[str] | None, result: Any) -> Any:
        """Return the result of an op with its arrays in these memory orders, those of `Op`.

        Raises
        ------
        ProtocolError
            If an array can have no such order.
        """
        if type(result) is tuple or type(result) is list:
            wanted = ("C",) * len(result) if orders is None else orders
            return [self.array(item, order) for item, order in zip(result, wanted, strict=False)]
        return self.array(result, "C" if orders is None else orders[0])

    def array(self, found: Any, order: str) -> Any:
        """Return ``found`` itself if it is no array, or lies in ``order``; else a copy that does.

        Raises
        ------
        ProtocolError
            If it can have no such order.
        """
        if not order or not self._device.is_array(found):
            return found
        lies = self._device.memory_order(found)
        if lies == order or holds(order, lies):
            return found
        if order[:1] == "?":
            return self._with_gaps(found, order[1:])
        copy = self._resolve("cupy.array")
        if order in ("C", "F"):  # the copy owns its memory, and counts the views on it
            return copy(found, order=order)
        try:
            axes = axes_of(order, found.ndim)
        except ValueError as error:
            raise ProtocolError(f"An array cannot be laid out so: {error}.") from None
        laid = copy(found.transpose(axes), order="C")
        return laid.transpose([axes.index(axis) for axis in range(found.ndim)])

    def _with_gaps(self, found: Any, steps: str) -> Any:
        """Return a copy of ``found`` as a part of larger memory, the strides of its axes longer than one as given."""
        try:
            strides, span = strides_of(steps, found.shape, found.dtype.itemsize)
        except ValueError as error:
            raise ProtocolError(f"An array cannot be laid out so: {error}.") from None
        memory = self._resolve("cupy.empty")((span,), np.uint8)
        laid = self._device.view(memory, 0, found.shape, strides, found.dtype)
        self._resolve("cupy.copyto")(laid, found)
        return laid
