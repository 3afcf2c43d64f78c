"""Whether CUDA computes by an MPS daemon: where it finds none it begins without, and says nothing."""

from __future__ import annotations

from cupy.cuda import runtime

#: cudaDevAttrMpsEnabled, for which CuPy has no name.
_MPS_ENABLED = 133


def require_client(ordinal: int) -> None:
    """Go on only if this process computes on the GPU ``ordinal`` as a client of MPS.

    Raises
    ------
    RuntimeError
        If it does not.
    """
    if not runtime.deviceGetAttribute(_MPS_ENABLED, ordinal):
        raise RuntimeError("the device is to be shared by MPS, and CUDA began without: its daemon does not answer")
