"""The devices an executor can compute on, behind the seam in `base`."""

from __future__ import annotations

from pathlib import Path

from gpu_backend.devices.base import Device

__all__ = ["open_device"]


def open_device(kind: str, ordinal: int = 0, prepared: Path | None = None) -> Device:
    """Return the device ``ordinal`` of ``kind``. Called once by an executor, in the process that will compute.

    Parameters
    ----------
    kind
        "cuda" for real CuPy, "cpu" for NumPy, SciPy and compiled kernels.
    ordinal
        Which of the devices of this kind; a machine has one CPU device, number 0.
    prepared
        The folder of kernels that the pool compiles for GPUs beforehand; None if it does not.

    Raises
    ------
    ValueError
        If there is no such kind.
    ImportError
        If the array library of the device is not installed.
    """
    if kind == "cpu":
        from gpu_backend.devices.cpu.device import CpuDevice

        return CpuDevice()
    if kind == "cuda":
        from gpu_backend.devices.cuda import CudaDevice

        return CudaDevice(ordinal, prepared)
    raise ValueError(f"there is no device kind {kind!r}; the kinds are 'cuda' and 'cpu'")
