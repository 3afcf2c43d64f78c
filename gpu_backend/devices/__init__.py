"""The devices an executor can compute on, behind the seam in `base`."""

from __future__ import annotations

from pathlib import Path

from gpu_backend.devices.base import Device

__all__ = ["open_device"]


def open_device(kind: str, ordinal: int = 0, prepared: Path | None = None, count: int = 1) -> Device:
    """Return ``count`` devices of ``kind``. Called once by an executor, in the process that will compute.

    Parameters
    ----------
    kind
        "cuda" for real CuPy, "cpu" for NumPy, SciPy and compiled kernels.
    ordinal
        The first of the devices of this kind that the process sees; the CPU stands for any number.
    prepared
        The folder of kernels that the pool compiles for GPUs beforehand; None if it does not.
    count
        How many devices, one after the other.

    Raises
    ------
    ValueError
        If there is no such kind.
    ImportError
        If the array library of the device is not installed.
    """
    if kind == "cpu":
        from gpu_backend.devices.cpu.device import CpuDevice

        return CpuDevice(count)
    if kind == "cuda":
        from gpu_backend.devices.cuda import CudaDevice

        return CudaDevice(ordinal, prepared, count)
    raise ValueError(f"there is no device kind {kind!r}; the kinds are 'cuda' and 'cpu'")
