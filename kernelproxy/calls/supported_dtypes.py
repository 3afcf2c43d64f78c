"""What an array on a device can hold."""

from __future__ import annotations

from gpu_backend.opstream.layout import NUMBERS, DType


def require_supported(dtype: DType) -> None:
    """Refuse, as CuPy does, what no device array can hold.

    Raises
    ------
    ValueError
        For objects, texts, dates, and numbers of more than 64 bits a part.
    """
    if (dtype.char not in NUMBERS and dtype.kind != "V") or dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"Unsupported dtype {dtype}")
