"""``empty_like`` and its kin after an array of NumPy: what counts is how that lies, so its contents stay here."""

from __future__ import annotations

from typing import Any

from gpu_backend.opstream.layout import Layout, strided
from gpu_backend.opstream.proof import prove
from gpu_backend.opstream.proof.shadow import like
from gpu_backend.wire.memory_order import axes_of
from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import HostArray

#: Functions that make an array like another, and what makes it where its shape, dtype and order are known.
MAKERS = {f"cupy.{name}_like": f"cupy.{name}" for name in ("empty", "zeros", "ones", "full")}
_NUMBERS = "biufc"


def made_like(qualname: str, host: HostArray, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Return ``qualname(host, *args, **kwargs)`` without sending ``host``.

    Raises
    ------
    Exception
        What CuPy raises for these arguments.
    """
    if host.dtype.kind not in _NUMBERS or not host.dtype.isnative:
        return dispatch.call(qualname, (host, *args), kwargs)  # it may count that the dtype is none of a device's
    shown = strided(host.shape, host.strides, host.dtype)
    proof = prove(qualname, (shown, *dispatch.layouts(args)), dispatch.layouts(kwargs))
    if not isinstance(proof, Layout) or proof.memory_order not in ("", "C", "F"):
        return dispatch.call(qualname, (_stand_in(shown), *args), kwargs)
    filling = _filling(args, kwargs) if qualname == "cupy.full_like" else ()
    return dispatch.call(MAKERS[qualname], (proof.shape, *filling, proof.dtype, proof.memory_order or "C"), {})


def _filling(args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[Any, ...]:
    return args[:1] or (kwargs["fill_value"],)


def _stand_in(shown: Layout) -> Any:
    """Return a remote array whose axes follow each other in memory as those of an array of the host."""
    dense = like(shown, shown.dtype, "K")
    axes = axes_of(dense.memory_order or "C", dense.ndim)
    laid = dispatch.call("cupy.empty", (tuple([dense.shape[axis] for axis in axes]), dense.dtype), {})
    return laid.transpose([axes.index(axis) for axis in range(dense.ndim)])
